#include "tools/exec/exec_codes.hpp"

#include <cerrno>

namespace leasehold::tools {
namespace {

exit_code code_of_start_fault(int number) noexcept {
  if (number == ENOENT || number == ENOTDIR) return exit_code::not_found;
  // There was no room for one more process: that says nothing about the command.
  if (number == EAGAIN || number == ENOMEM) return exit_code::exec_failed;
  return exit_code::not_executable;
}

}  // namespace

exit_code code_of_signal(int number) noexcept { return static_cast<exit_code>(128 + number); }

exit_code code_of(const run_end& end) noexcept {
  switch (end.what) {
    case run_end::kind::exited:
      return static_cast<exit_code>(end.code);
    case run_end::kind::not_started:
      return code_of_start_fault(end.code);
    case run_end::kind::lost:
      return exit_code::lock_lost;
    case run_end::kind::watchdog_gone:
      return exit_code::exec_failed;
  }
  return exit_code::exec_failed;
}

}  // namespace leasehold::tools
