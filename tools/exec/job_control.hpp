// The terminal and the shell around `leasehold exec`: who has the terminal, and what a stop from
// the keyboard means for both groups.
#pragma once

#include <sys/types.h>

#include "tools/child_process.hpp"

namespace leasehold::tools {

/// Gives the terminal to the command's group when that asks for it, and takes it back. Without a
/// controlling terminal it does nothing but stop with the command.
class job_control {
 public:
  job_control();
  /// Takes the terminal back if it was given away.
  ~job_control();
  job_control(const job_control&) = delete;
  job_control& operator=(const job_control&) = delete;

  /// The command's group was stopped by this signal. One that wanted the terminal gets it when it
  /// is ours to give; else exec stops too, as its shell expects, and when it goes on, the group
  /// does. A stop that came from elsewhere (STOP) is not ours to end.
  void group_stopped(pid_t group, int number);
  void take_terminal_back() noexcept;

 private:
  [[nodiscard]] bool has_terminal() const noexcept;
  void give_terminal_to(pid_t group) noexcept;

  descriptor terminal_;
  bool is_given_ = false;
};

}  // namespace leasehold::tools
