// What the clock shim and the test that turns its clocks share: one mapped file.
#pragma once

#include <atomic>
#include <cstdint>

namespace leasehold::tests {

/// The variable that names the file.
inline constexpr const char* clock_shim_variable = "CLOCK_SHIM_STATE";
/// With this after its name: the file that is read in place of the kernel's boot id, if it is
/// there.
inline constexpr const char* boot_id_ending = ".boot_id";

/// Zeros: the machine's own clocks. All are read anew at every call.
struct shim_state {
  std::atomic<std::int64_t> realtime_ms;   ///< added to CLOCK_REALTIME
  std::atomic<std::int64_t> monotonic_ms;  ///< added to CLOCK_MONOTONIC
  std::atomic<std::int64_t> boottime_ms;   ///< added to CLOCK_BOOTTIME
  /// Raised and woken (futex) after a change: timers that wait for a clock which was moved on are
  /// set anew, as the kernel's own fire at the end of a suspend.
  std::atomic<std::uint32_t> changes;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace leasehold::tests
