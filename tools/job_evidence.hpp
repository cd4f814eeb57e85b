// `leasehold job evidence`, added by `leasehold job`.
#pragma once

#include "tools/subcommands.hpp"

namespace leasehold::tools {

void add_job_evidence(CLI::App& job_command, command_line& line);

}  // namespace leasehold::tools
