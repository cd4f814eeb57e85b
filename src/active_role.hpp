// Whether this process is the one coordinator of its store now, and until when: what every answer
// is measured by, when a request comes in and again just before its answer leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

#include "leasehold/protocol/reason.hpp"

namespace leasehold::server {

enum class server_role : std::uint8_t {
  standby,     ///< another coordinator has the store, or nobody yet
  recovering,  ///< the epoch is ours, and the store is being read
  active,
};
std::string_view word(server_role role) noexcept;

/// One for the process. Any thread.
class active_role {
 public:
  static constexpr std::int64_t for_ever = std::numeric_limits<std::int64_t>::max();

  /// A standby. `boottime_ms`: CLOCK_BOOTTIME, which goes on while the machine sleeps.
  explicit active_role(std::function<std::int64_t()> boottime_ms)
      : boottime_ms_(std::move(boottime_ms)) {}

  /// True: this process may answer as the coordinator at this moment.
  [[nodiscard]] bool may_answer() const noexcept {
    const std::int64_t until = answers_until_ms_.load(std::memory_order_acquire);
    return until == for_ever || boottime_ms_() < until;
  }
  /// Why it may not: standby or not_ready; none: it may.
  [[nodiscard]] protocol::reason why_silent() const noexcept;

  [[nodiscard]] server_role role() const noexcept;
  /// Of the store, as far as it is known; 0: the store has none.
  [[nodiscard]] std::int64_t epoch() const noexcept { return epoch_.load(); }
  /// How often this process took the store over.
  [[nodiscard]] std::int64_t takeovers() const noexcept { return takeovers_.load(); }
  /// Where the active coordinator is reached, as it told the store; empty: nobody is known.
  [[nodiscard]] std::string active() const;

  /// The store is one that no other coordinator can have: active from now on.
  void serve_for_ever();
  /// The epoch was taken; nothing is answered yet. `over`: from somebody who had not released it.
  void take(std::int64_t epoch, const std::string& own_address, bool over);
  /// Everything is recovered: answers until the lease of the epoch ends.
  void serve();
  /// The lease of the epoch was made longer.
  void extend(std::int64_t until_boot_ms);
  /// Nothing is answered any more, whatever else is called.
  void end();
  /// Who else has the epoch.
  void watch(std::int64_t epoch, const std::string& active);

 private:
  void publish();

  std::function<std::int64_t()> boottime_ms_;
  std::atomic<std::int64_t> answers_until_ms_{0};  // 0: it does not answer
  std::atomic<std::int64_t> epoch_{0};
  std::atomic<std::int64_t> takeovers_{0};
  mutable std::mutex mutex_;  // guards what follows, and writes to what is above
  server_role role_ = server_role::standby;
  bool ended_ = false;
  std::int64_t until_ms_ = 0;
  std::string active_;
};

}  // namespace leasehold::server
