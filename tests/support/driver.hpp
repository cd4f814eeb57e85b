// The load of the crash tests: sessions that speak in messages of one or of many frames, with both
// directions reordered, and keep everything that the coordinator has told somebody.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/protocol/frame.hpp"

namespace leasehold::tests {

/// A Verdict, as it came.
struct kept_verdict {
  std::int64_t epoch = 0;
  std::int64_t frame_id = 0;
  std::string lease;
  std::int64_t gen = 0;
  std::int64_t row = 0;
  protocol::decision decision{};
  protocol::reason reason{};
};

/// An Offer, or what else names the row of a lease.
struct kept_standing {
  std::string lease;
  std::int64_t gen = 0;
  std::int64_t row = 0;
  std::string offered_to;  ///< empty: it was no Offer
};

/// The answer to an operation.
struct kept_answer {
  protocol::event_kind kind{};
  std::string lease;
  std::int64_t row = 0;
  protocol::decision decision{};
  protocol::reason reason{};
};

/// The frames of one message, in its order.
struct kept_message {
  std::int64_t epoch = 0;
  std::vector<std::pair<std::int64_t, std::string>> frames;  ///< id and lease
};

/// What was said and heard, over all lives of one store. Any thread.
class driver_log {
 public:
  void keep(kept_verdict what) { add(verdicts_, std::move(what)); }
  void keep(kept_standing what) { add(standings_, std::move(what)); }
  void keep(kept_answer what) { add(answers_, std::move(what)); }
  void keep(kept_message what) { add(messages_, std::move(what)); }
  /// A submit went out.
  void keep_submit(const std::string& job, const std::string& payload) {
    const std::lock_guard lock(mutex_);
    submits_[job] = payload;
  }

  [[nodiscard]] std::size_t heard() const {
    const std::lock_guard lock(mutex_);
    return verdicts_.size();
  }

  // ---- once everybody has gone
  [[nodiscard]] const std::vector<kept_verdict>& verdicts() const { return verdicts_; }
  [[nodiscard]] const std::vector<kept_standing>& standings() const { return standings_; }
  [[nodiscard]] const std::vector<kept_answer>& answers() const { return answers_; }
  [[nodiscard]] const std::vector<kept_message>& messages() const { return messages_; }
  [[nodiscard]] const std::map<std::string, std::string>& submits() const { return submits_; }

 private:
  template <class T>
  void add(std::vector<T>& to, T what) {
    const std::lock_guard lock(mutex_);
    to.push_back(std::move(what));
  }

  mutable std::mutex mutex_;
  std::vector<kept_verdict> verdicts_;
  std::vector<kept_standing> standings_;
  std::vector<kept_answer> answers_;
  std::vector<kept_message> messages_;
  std::map<std::string, std::string> submits_;  ///< payload by job
};

/// One session without its transport: it is told what came, and asked what to say. One thread.
class driven_session {
 public:
  struct options {
    std::string incarnation;  ///< 32 hex digits
    std::size_t batch = 1;    ///< frames of a message
    std::int64_t slots = 4;   ///< leases held at once
    std::uint64_t seed = 0;
    std::string queue = "q";
  };
  using message = std::vector<protocol::worker_frame>;

  /// `clock` says what time it is by the coordinator's clock.
  driven_session(options how, driver_log& log, std::function<protocol::instant()> clock);

  /// The first message.
  [[nodiscard]] message hello();
  void hear(std::span<const protocol::coordinator_frame> frames);
  /// What is to be said now; nothing while it waits for more to come.
  std::optional<message> next_message();
  [[nodiscard]] bool welcomed() const noexcept { return epoch_ != 0; }

 private:
  using body = decltype(protocol::worker_frame::body);

  void take(const protocol::coordinator_frame& frame);
  void take_welcome(const protocol::welcome& what);
  void take_offer(const protocol::offer& what);
  void take_verdict(const protocol::frame_verdict& what);
  void go_on(const protocol::lease_standing& standing);
  void keep(const protocol::lease_standing& standing, std::string offered_to = {});
  void want(body what);
  [[nodiscard]] protocol::lease_frame frame(const protocol::lease_standing& about,
                                            protocol::event_kind kind, std::int64_t seq = 0) const;
  [[nodiscard]] bool chance(unsigned in_a_hundred) { return random_() % 100 < in_a_hundred; }

  options how_;
  driver_log& log_;
  std::function<protocol::instant()> clock_;
  std::mt19937_64 random_;
  protocol::holder holder_;
  std::int64_t epoch_ = 0;
  std::int64_t next_frame_ = 1;
  std::vector<protocol::coordinator_frame> inbox_;
  std::vector<body> outbox_;
  std::set<std::int64_t> unanswered_;
};

}  // namespace leasehold::tests
