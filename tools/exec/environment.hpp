// What a command of `leasehold exec` finds in its environment.
#pragma once

#include <string>
#include <vector>

#include "tools/exec/authority.hpp"
#include "tools/exec/lock_client.hpp"

namespace leasehold::tools {

/// The caller's environment without any variable that begins with LEASEHOLD_, so that neither a
/// credential nor the way to one is handed on, and
///   LEASEHOLD_TOKEN        the fencing token
///   LEASEHOLD_KEY          the canonical key
///   LEASEHOLD_LEASE_ID     k:...
///   LEASEHOLD_DEADLINE     when the term ends that runs at the start: ms of CLOCK_BOOTTIME, the
///                          clock of /proc/uptime; renews move the end later
///   LEASEHOLD_DEADLINE_MS  the same as ms from `now`
std::vector<std::string> command_environment(const char* const* caller, const lock_grant& grant,
                                             boot_time deadline, boot_time now);

}  // namespace leasehold::tools
