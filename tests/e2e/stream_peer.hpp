// A worker by hand: one session of the stream that sends any frame in any order, and any bytes, and
// keeps what comes back until a test asks for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/protocol/codec.hpp"
#include "live_server.hpp"
#include "support/raw_http.hpp"

namespace leasehold::e2e {

using frame_body = decltype(protocol::worker_frame::body);

class stream_peer {
 public:
  /// Upgrades. `digit` makes the incarnation: the same again is the same process come back.
  stream_peer(const live_server& server, const std::string& principal, char digit = 'a',
              protocol::encoding how = protocol::encoding::protobuf);

  [[nodiscard]] bool upgraded() const noexcept { return upgraded_; }
  /// The answer to the upgrade request, with its headers.
  [[nodiscard]] const std::string& upgrade_answer() const noexcept { return upgrade_answer_; }

  // ---- sending
  /// Hello for one queue; Welcome must follow.
  protocol::welcome hello(std::vector<protocol::running_lease> running = {},
                          const std::string& queue = "q");
  void credit(std::int64_t slots, const std::string& queue = "q");
  /// One frame as one message; yields its frame id.
  std::int64_t say(frame_body body);
  /// Several frames in one message: one ingress. Yields the first one's id.
  std::int64_t say_all(std::vector<frame_body> bodies);
  /// A message of any bytes.
  void send_message(std::string_view bytes, int opcode = 2);
  /// Ends the connection without a word.
  void vanish() { socket_.close(); }

  [[nodiscard]] protocol::lease_frame frame(protocol::event_kind kind, const std::string& lease,
                                            std::int64_t gen, std::int64_t seq = 0) const;
  [[nodiscard]] protocol::lease_frame progress(const std::string& lease, std::int64_t gen,
                                               std::int64_t seq, std::string value) const;
  [[nodiscard]] protocol::lease_frame result(const std::string& lease, std::int64_t gen,
                                             protocol::outcome how, std::string detail = {},
                                             bool retryable = false) const;
  /// Sends the frame and yields its first answer.
  protocol::frame_verdict tell(protocol::lease_frame f);
  /// ACKs and waits for the Activated that follows.
  protocol::activated start(const std::string& lease, std::int64_t gen);

  // ---- what came back
  /// The first frame of this kind that fits; it is taken out. Waits for it.
  template <class Body, class Fits>
  std::optional<Body> await(Fits fits) {
    const auto by = std::chrono::steady_clock::now() + patience;
    for (std::size_t looked = 0;; ++looked) {
      while (looked >= inbox_.size()) {
        if (std::chrono::steady_clock::now() > by || !read_more()) return std::nullopt;
      }
      const auto* body = std::get_if<Body>(&inbox_[looked].body);
      if (body == nullptr || !fits(*body)) continue;
      Body found = *body;
      inbox_.erase(inbox_.begin() + static_cast<std::ptrdiff_t>(looked));
      return found;
    }
  }
  template <class Body>
  std::optional<Body> await() {
    return await<Body>([](const Body&) { return true; });
  }
  std::optional<protocol::frame_verdict> verdict_of(std::int64_t frame_id);
  std::optional<protocol::offer> offer_of(const std::string& lease);
  std::optional<protocol::lease_lost> loss_of(const std::string& lease);
  /// Reads until the server has closed: its close code, 0 when it closed without one, nothing when
  /// it does not close.
  std::optional<int> close_code();
  /// How many frames of a kind came and were not taken out.
  template <class Body>
  [[nodiscard]] std::ptrdiff_t waiting() const {
    return std::ranges::count_if(
        inbox_, [](const auto& f) { return std::holds_alternative<Body>(f.body); });
  }

  /// The newest message of the server, as it came.
  [[nodiscard]] const std::string& newest_message() const noexcept { return newest_message_; }

  /// By the reckoning of a worker: the welcomed server time and the time since.
  [[nodiscard]] protocol::instant now() const;
  [[nodiscard]] const protocol::holder& holder() const noexcept { return holder_; }

 private:
  bool read_more();

  std::string incarnation_;
  protocol::codec codec_;
  test::raw_peer socket_;
  bool upgraded_ = false;
  std::string upgrade_answer_;
  bool ended_ = false;
  int close_code_ = 0;
  std::deque<protocol::coordinator_frame> inbox_;
  std::string newest_message_;
  protocol::holder holder_;
  std::int64_t epoch_ = 0;
  std::int64_t frame_id_ = 0;
  std::int64_t credit_sequence_ = 0;
  protocol::instant welcomed_at_{1};
  std::chrono::steady_clock::time_point welcome_read_ = std::chrono::steady_clock::now();
};

}  // namespace leasehold::e2e
