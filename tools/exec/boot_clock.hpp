// The clock that deadlines of a held lock are kept in: it counts suspend, and no wall clock moves
// it.
#pragma once

#include <chrono>
#include <cstdint>

#include "tools/child_process.hpp"

namespace leasehold::tools {

/// CLOCK_BOOTTIME: time since the machine was started. /proc/uptime shows the same clock.
struct boot_clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<boot_clock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

using boot_time = boot_clock::time_point;

/// Whole ms since the machine was started, rounded down.
std::int64_t boot_ms(boot_time at) noexcept;

/// A descriptor that becomes readable at a time of the boot clock, also when the machine slept over
/// it.
class boot_timer {
 public:
  boot_timer();
  /// Takes the place of the time set before. A time that has passed makes it readable at once.
  void set(boot_time at) noexcept;
  /// Makes it unreadable until it is set again.
  void clear() noexcept;
  [[nodiscard]] int number() const noexcept { return timer_.number(); }

 private:
  descriptor timer_;
};

}  // namespace leasehold::tools
