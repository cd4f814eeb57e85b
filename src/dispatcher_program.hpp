// `leaseholdd dispatcher`: the supervisor of cancellation dispatch in a process of its own
// (cancellation-dispatch.md, Who runs it).
#pragma once

#include <string>
#include <vector>

#include "src/options.hpp"

namespace leasehold::server {

inline constexpr int exit_left_at_work = 3;

/// Runs until SIGTERM or SIGINT, or for one cycle. Yields the exit code: 0, 1 (the store),
/// exit_bad_options, or exit_left_at_work: a controller was still at work when the time to stop was
/// over.
int run_dispatcher(std::vector<std::string> arguments, const environment& variables);

}  // namespace leasehold::server
