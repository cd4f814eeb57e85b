// The command as the watchdog's child: the leader of its group, which keeps the group's number
// until the group is ended.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/child_process.hpp"
#include "tools/exec/watch_protocol.hpp"
#include "tools/exec/watchdog.hpp"

namespace leasehold::tools {

/// What a leader begins with.
struct leader_surroundings {
  const std::vector<std::string>& environment;  ///< KEY=VALUE, all of it
  const sigset_t& mask;
  const death_line& line;  ///< tied to the new group
};

class group_leader {
 public:
  /// Forks it; the process must have one thread. It dies with that. Nothing with errno set when it
  /// cannot be forked; that the program cannot be run is told by read_start_fault().
  static std::optional<group_leader> start(const watched_command& command,
                                           const leader_surroundings& around);

  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// Readable once it is known whether the program could be run; -1 after that.
  [[nodiscard]] int start_fault() const noexcept { return fault_.number(); }
  /// The errno of a program that could not be run; 0: it could, or it is not known yet.
  int read_start_fault() noexcept;
  /// What has become of it since the last call: a stop, or, once, its end.
  std::optional<watch_report> next_change() noexcept;
  /// Waits for children that are not the leader: orphans of the group that have ended.
  void collect_orphans() const noexcept;
  /// Kills what is left of the group, waits for it for a while, and gives up the number.
  void end() noexcept;

 private:
  group_leader(pid_t id, descriptor fault) : id_(id), fault_(std::move(fault)) {}
  pid_t id_;
  descriptor fault_;
  bool has_ended_ = false;
};

}  // namespace leasehold::tools
