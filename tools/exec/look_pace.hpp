// How often a group that is to end is looked at: often at first, since most end at once, and then
// ever less, since a look goes through all processes of the machine. Pure: the time is handed in.
#pragma once

#include <algorithm>
#include <chrono>

#include "tools/exec/boot_clock.hpp"

namespace leasehold::tools {

class look_pace {
 public:
  /// The next look is due at once.
  void begin() noexcept { *this = {}; }
  [[nodiscard]] bool is_due(boot_time now) const noexcept { return now >= next_; }
  /// It was looked at: the next look is due after 10 ms, 20, 40 and so on, and always after 100.
  void looked(boot_time now) noexcept {
    next_ = now + pause_;
    pause_ = std::min(2 * pause_, longest);
  }
  [[nodiscard]] boot_time next() const noexcept { return next_; }

 private:
  static constexpr std::chrono::milliseconds first{10};
  static constexpr std::chrono::milliseconds longest{100};
  boot_time next_{};
  std::chrono::milliseconds pause_ = first;
};

}  // namespace leasehold::tools
