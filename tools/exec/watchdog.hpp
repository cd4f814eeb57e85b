// The watchdog: a process of its own that is the parent of the command, and ends the command's
// group at the deadline or when `leasehold exec` is gone.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/exec/authority.hpp"
#include "tools/exec/death_line.hpp"
#include "tools/exec/watch_protocol.hpp"

namespace leasehold::tools {

struct watched_command {
  /// A program with its arguments; looked up in PATH as a shell does.
  std::vector<std::string> words;
  /// It has nothing to do with exec's standard input and output: it reads nothing, and what it
  /// prints goes to standard error.
  bool is_apart = false;
};

/// What the watchdog may be told to start.
struct watched_work {
  std::vector<watched_command> commands;
  /// KEY=VALUE, all of it, for a command that starts now and has until `deadline`.
  std::function<std::vector<std::string>(boot_time deadline)> environment;
  term_plan plan;
  boot_time deadline;      ///< the first; later ones are told
  sigset_t signal_mask{};  ///< that the commands begin with
};

/// Exec's end of it. The watchdog lives as long as it is not told to finish and exec lives; when it
/// ends before that, the kernel kills the group, and its children become exec's.
class watchdog {
 public:
  /// Forks it; the process must have one thread. Empty with errno set when it cannot be.
  static std::unique_ptr<watchdog> start(watched_work work);
  /// Tells it to finish and waits for its end.
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  void tell_deadline(boot_time deadline) const noexcept;
  void start_command(std::size_t number) const noexcept;
  /// Ends it, and with it the number of the group. KILL after a while when it does not go.
  void finish() noexcept;

  /// The next message, if there is one.
  [[nodiscard]] std::optional<watch_report> next_report() const noexcept;
  /// Readable when there is a message, and when the watchdog is gone.
  [[nodiscard]] int reports() const noexcept { return socket_.number(); }
  /// True once the process has ended. One that was stopped is woken: nobody may stop a watchdog.
  [[nodiscard]] bool is_gone() noexcept;
  [[nodiscard]] pid_t id() const noexcept { return id_; }

 private:
  watchdog(pid_t id, descriptor socket, death_line line)
      : id_(id), socket_(std::move(socket)), line_(std::move(line)) {}
  void tell(const watch_order& order) const noexcept;

  pid_t id_;
  descriptor socket_;
  death_line line_;
  bool is_gone_ = false;
};

}  // namespace leasehold::tools
