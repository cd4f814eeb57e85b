// A process that was given the number of one that has ended. The kernel gives a chosen number
// (clone3 with set_tid) to whoever may change the pid namespace: root, or anybody within a user and
// pid namespace of his own, where the test then runs once more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "leasehold/protocol/process_handle.hpp"
#include "target_process.hpp"

namespace leasehold::tests {

struct recycled_number {
  recycled_number();
  protocol::process_handle former;         ///< of the process that has ended
  std::unique_ptr<target_process> target;  ///< has its number now
};

enum class recycling : std::uint8_t {
  done_elsewhere,  ///< the test ran in namespaces of its own, and passed
  impossible,      ///< or it failed there, or there are none
  not_wanted,      ///< impossible, and LEASEHOLD_NO_RECYCLED_PIDS=1 says that it need not be
};
inline constexpr const char* recycling_is_impossible =
    "This machine lets nobody choose a pid (clone3 with set_tid), not even in namespaces of its "
    "own, "
    "so it was NOT shown that a recycled pid is never signalled. Run the test as root or allow "
    "user "
    "namespaces; LEASEHOLD_NO_RECYCLED_PIDS=1 skips it.";
inline constexpr const char* recycling_is_skipped =
    "NOT shown: that a recycled pid is never signalled (LEASEHOLD_NO_RECYCLED_PIDS is set).";

/// Nothing: a number can be recycled here, and the test goes on.
std::optional<recycling> why_not_recycled(const std::string& test);

}  // namespace leasehold::tests
