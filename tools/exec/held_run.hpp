// The whole of `leasehold exec` once its options are understood.
#pragma once

#include "tools/exec/exec_plan.hpp"
#include "tools/exit_codes.hpp"
#include "tools/http_client.hpp"

namespace leasehold::tools {

/// Acquires, runs the command while the lock is held, releases. The process must have one thread;
/// signals are blocked and the process becomes a reaper of orphans, so it is to end afterwards.
/// Yields the command's own exit code, or one of those of `exec`.
exit_code run_held(const client_options& connection, exec_plan plan);

}  // namespace leasehold::tools
