// What the exit codes of `leasehold` mean; docs/OPERATING.md repeats this list.
#pragma once

namespace leasehold::tools {

enum class exit_code : int {
  ok = 0,
  differs = 1,  ///< it worked, and the answer is no: a check differs, a job failed, a wait ran out
  malformed = 2,     ///< wrong usage, or a file that cannot be read as what it should be
  refused = 3,       ///< the coordinator answered with a refusal; its reason is printed
  unreachable = 4,   ///< no coordinator there, or it is not ready
  forbidden = 5,     ///< no credential, an unknown one, or one that does not allow this
  broken = 6,        ///< something outside failed: a file, a disk, a child process, the output
  interrupted = 130  ///< ended by SIGINT
};

}  // namespace leasehold::tools
