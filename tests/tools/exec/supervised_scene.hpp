// `leasehold exec` without a coordinator: a process of its own that supervises a command under its
// watchdog, with a deadline that the test sets.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "support/temporary_directory.hpp"
#include "tools/exec/authority.hpp"

namespace leasehold::tests {

class supervised_scene {
 public:
  /// Starts it; `script` is run by a shell, with $D as a directory of its own. The term begins now.
  supervised_scene(const std::string& script, std::chrono::milliseconds term,
                   std::chrono::milliseconds grace = std::chrono::milliseconds(0));
  ~supervised_scene();

  /// Waits until the script has written $D/NAME, and yields what.
  std::string written(const std::string& name) const;
  [[nodiscard]] bool has_written(const std::string& name) const;

  /// To the supervising process, or to the watchdog.
  void signal_exec(int number) const;
  void signal_watchdog(int number) const;
  /// Moves the deadline to one term from now.
  void renew() const;
  /// The lock is lost.
  void lose() const;

  /// The exit code of the supervising process; nothing when it does not end.
  std::optional<int> wait();
  /// When the group was first seen to be gone, before the deadline and how long; nothing: never.
  std::optional<std::chrono::milliseconds> gone_after_deadline();
  [[nodiscard]] bool lives() const;
  /// How many reads the supervising process has made; nothing where the kernel does not tell.
  [[nodiscard]] std::optional<long> reads_of_exec() const;
  /// The group's number, once the script has written it to $D/group.
  [[nodiscard]] pid_t group() const;
  void await_start() const { written("group"); }

 private:
  [[noreturn]] void supervise(const std::string& script, int orders) const;

  temporary_directory kept_;
  tools::term_plan plan_;
  tools::boot_time deadline_;
  pid_t exec_ = -1;
  int orders_ = -1;
  std::optional<int> ended_;
};

}  // namespace leasehold::tests
