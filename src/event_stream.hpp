// A live reader of evidence: hears that rows became durable, reads them from the store at its own
// pace, and sends those that it was asked for. However slow its socket is, nobody else waits for
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/http_api_evidence.hpp"
#include "src/routes.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// Which rows a reader wants; an empty field wants all.
struct event_filter {
  std::string job;
  std::string queue;
  std::string event;
  std::string decision;
  std::string reason;
  protocol::row_number until;  ///< the last row; 0: there is none
  [[nodiscard]] bool wants(const shown_row& shown, const evidence_cursor& cursor) const;
};

/// Lives on its socket's thread. A row is one text message, its JSON line. A reader that is far
/// behind hears {"behind": rows, "next_row": N, "last_row": N} and goes on from there. With a last
/// row the socket is closed in good order once the log has passed it, wanted or not.
class event_stream final : public socket_events,
                           public credentialed,
                           public std::enable_shared_from_this<event_stream> {
 public:
  /// Rows behind the newest at which a reader is told so.
  static constexpr std::int64_t far_behind = 1000;
  /// Bytes waiting for the socket at which no more are read for it.
  static constexpr std::size_t enough_waiting = 64 << 10;

  /// `from`: the first row; 0: the next one that comes.
  event_stream(const call& admitted, event_filter wanted, protocol::row_number from);

  void start(std::shared_ptr<socket> on);
  void on_message(std::span<const std::byte> message, bool text) override;
  void on_close() override;
  void check_credential() override;

 private:
  /// What one read of the store brought.
  struct portion {
    std::vector<std::string> lines;
    std::optional<std::string> fault;
  };

  void find_place();
  void hear(protocol::row_number last);
  void pump();
  void pump_after(protocol::duration pause);
  [[nodiscard]] bool is_complete() const;
  void read();
  void take(portion got);
  void tell_if_behind();
  static portion read_portion(evidence_cursor& cursor, const event_filter& wanted);

  std::shared_ptr<api_context> api_;
  credential credential_;
  event_filter wanted_;
  protocol::row_number from_;
  std::shared_ptr<socket> socket_;           ///< null once it is closed
  std::shared_ptr<evidence_cursor> cursor_;  ///< the reading thread's while reading_
  protocol::row_number last_;                ///< the newest row heard of
  std::int64_t watch_ = 0;
  bool reading_ = false;
  bool resting_ = false;
  bool told_behind_ = false;
};

}  // namespace leasehold::server
