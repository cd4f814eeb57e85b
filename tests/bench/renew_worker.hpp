// A worker of a load: takes as many leases as it is told, then renews them one after another, so
// many in a message, so many messages unanswered at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/protocol/codec.hpp"
#include "load_stream.hpp"
#include "server_clock.hpp"

namespace leasehold::bench {

/// What came of the renews since it was taken last.
struct renew_tally {
  std::int64_t accepted = 0;
  std::int64_t refused = 0;
  std::vector<std::uint32_t> latencies_us;  ///< of messages, to their last answer
};

class renew_worker {
 public:
  struct options {
    std::uint16_t port = 0;
    std::string token;
    std::string incarnation;
    std::string queue = "q";
    std::int64_t leases = 0;
  };

  explicit renew_worker(const options& how);

  [[nodiscard]] load_socket& socket() noexcept { return stream_.socket(); }
  [[nodiscard]] bool holds_all() const noexcept {
    return static_cast<std::int64_t>(held_.size()) == how_.leases;
  }
  [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }
  [[nodiscard]] bool answered() const noexcept { return flying_.empty(); }
  /// Leases that it was told it lost.
  [[nodiscard]] std::int64_t lost() const noexcept { return lost_; }

  /// From now on renews `batch` leases a message with `messages` unanswered; 0: no more.
  void renew(std::size_t batch, std::size_t messages);
  /// Renews the next lease, whatever is unanswered.
  void renew_one();
  /// Takes what has come and says what follows.
  void turn();
  renew_tally take_tally() { return std::exchange(tally_, {}); }

 private:
  struct held_lease {
    protocol::lease_id lease;
    protocol::generation gen;
    std::int64_t renews = 0;
  };
  struct message {
    std::int64_t first = 0;  ///< frame id
    std::size_t unanswered = 0;
    std::chrono::steady_clock::time_point sent;
  };

  void hear(const protocol::coordinator_frame& frame);
  void welcomed(const protocol::welcome& what);
  void answered(const protocol::frame_verdict& what);
  void accept_offers();
  void send_renews();
  void send_message();
  void say();
  protocol::lease_frame& next_frame(protocol::event_kind kind);

  options how_;
  load_stream stream_;
  protocol::codec codec_{protocol::encoding::protobuf};
  protocol::holder holder_;
  server_clock clock_;
  std::int64_t next_frame_ = 1;
  std::vector<protocol::worker_frame> frames_;
  std::size_t used_ = 0;  ///< of frames_
  std::string bytes_;
  std::vector<protocol::lease_standing> offered_;
  std::vector<held_lease> held_;
  std::int64_t lost_ = 0;
  std::size_t next_held_ = 0;
  std::size_t batch_ = 1;
  std::size_t messages_ = 0;
  std::deque<message> flying_;
  renew_tally tally_;
};

}  // namespace leasehold::bench
