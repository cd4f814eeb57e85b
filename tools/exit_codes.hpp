// What the exit codes of `leasehold` mean; docs/OPERATING.md repeats this list.
#pragma once

namespace leasehold::tools {

enum class exit_code : int {
  ok = 0,
  differs = 1,  ///< it worked, and the answer is no: a check differs, a job failed, a wait ran out
  malformed = 2,         ///< wrong usage, or a file that cannot be read as what it should be
  refused = 3,           ///< the coordinator answered with a refusal; its reason is printed
  unreachable = 4,       ///< no coordinator there, or it is not ready
  forbidden = 5,         ///< no credential, an unknown one, or one that does not allow this
  broken = 6,            ///< something outside failed: a file, a disk, a child process, the output
  not_acquired = 75,     ///< of exec: another holds the lock
  lock_lost = 120,       ///< of exec: its command was ended before it was done
  wait_passed = 124,     ///< of exec: others held the lock for as long as it was waited for
  exec_failed = 125,     ///< of exec: it could not do its own part
  not_executable = 126,  ///< of exec: the command is there and cannot be run
  not_found = 127,       ///< of exec: there is no such command
  interrupted = 130      ///< ended by SIGINT
};

}  // namespace leasehold::tools
