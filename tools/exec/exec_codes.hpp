// What the exit code of `leasehold exec` is, for each way that a run can end.
#pragma once

#include "tools/exec/supervision.hpp"
#include "tools/exit_codes.hpp"

namespace leasehold::tools {

/// 128 and the signal, as shells do.
exit_code code_of_signal(int number) noexcept;

exit_code code_of(const run_end& end) noexcept;

}  // namespace leasehold::tools
