// Lets the kernel kill a process group when the watchdog dies, also where no process is left that
// could: exec stopped, or killed too.
#pragma once

#include <array>

#include "tools/child_process.hpp"

namespace leasehold::tools {

/// A pipe that nothing is ever written to. Its reading end belongs to exec and the watchdog
/// together, its writing end to the watchdog alone: when that is closed, the kernel sends KILL to
/// the group that the line was tied to, whatever state the reader is in (F_SETSIG of fcntl(2)).
class death_line {
 public:
  /// In exec, before the watchdog is forked. One that cannot be made is tied to nothing.
  death_line();
  /// In exec, once the watchdog has it.
  void keep_reading_ends() noexcept;
  /// In a new leader of a group, whose number is its own; safe between fork and exec. The group
  /// that the line was tied to before is let go.
  void tie_own_group() const noexcept;

 private:
  struct line {
    descriptor read;
    descriptor write;
  };
  // Where exec has died before, the watchdog closes both ends itself, and only the order of writing
  // end first tells. Which order the kernel takes is its own affair, so there is a line for each.
  std::array<line, 2> lines_;
};

}  // namespace leasehold::tools
