// The inside of the watchdog process.
#pragma once

#include "tools/child_process.hpp"
#include "tools/exec/watchdog.hpp"

namespace leasehold::tools {

/// Runs the watchdog in this process and ends it. `orders` is its end of the socket pair; `parent`
/// refers to exec and may be empty: then only the socket tells that exec is gone.
[[noreturn]] void watch(descriptor orders, descriptor parent, watched_work work) noexcept;

}  // namespace leasehold::tools
