// The inside of the watchdog process.
#pragma once

#include "tools/child_process.hpp"
#include "tools/exec/watchdog.hpp"

namespace leasehold::tools {

/// What ties the watchdog to exec.
struct watch_ties {
  descriptor orders;  ///< its end of the socket pair
  descriptor parent;  ///< refers to exec; empty: only the socket tells that exec is gone
  death_line line;
};

/// Runs the watchdog in this process and ends it.
[[noreturn]] void watch(watch_ties ties, watched_work work) noexcept;

}  // namespace leasehold::tools
