// Runs one command under the watchdog while the lock is held, and ends its whole group before the
// lock may be anybody else's.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tools/exec/authority.hpp"
#include "tools/exec/job_control.hpp"
#include "tools/exec/lock_keeper.hpp"
#include "tools/exec/look_pace.hpp"
#include "tools/exec/watchdog.hpp"

namespace leasehold::tools {

/// Where the standing of the lock comes from.
struct standing_source {
  std::function<lock_standing()> look;
  std::function<void()> clear_bell;
  int bell = -1;  ///< readable once the standing has changed
};

/// The signals that are passed on to the command's group: those that the caller does not ignore.
const sigset_t& forwarded_signals();
/// Those of them that ask for an end.
const sigset_t& ending_signals();

struct run_end {
  enum class kind {
    exited,        ///< `code` is the command's own, or 128 and the signal that ended it
    not_started,   ///< `code` is an errno
    lost,          ///< authority ended, or would have; `why` says how that was known
    watchdog_gone  ///< the watchdog ended before its time
  };
  kind what = kind::exited;
  int code = 0;
  std::string why;
  bool group_is_gone = true;  ///< false: something of the group has outlived its KILL
};

/// Signals that came in, the watchdog's reports, the lock's standing and the time in one loop, on
/// one thread. The signals of forwarded_signals() must be blocked in every thread.
class supervision {
 public:
  supervision(watchdog& guard, standing_source source, term_plan plan);

  /// Runs the command to the end of its group.
  run_end run(std::size_t command);
  /// The first signal that asked for an end, whatever became of it; 0: none came.
  [[nodiscard]] int asked_to_end() const noexcept { return asked_to_end_; }

 private:
  void wait_for_something();
  void take_signals();
  void forward(int number);
  void take_reports();
  void take(const watch_report& report);
  void take_standing();
  void look_at_time();
  void begin_end(run_end::kind what, std::string why);
  void go_on_ending();
  [[nodiscard]] boot_time kill_deadline() const;

  watchdog& guard_;
  standing_source source_;
  term_plan plan_;
  job_control terminal_;
  descriptor signals_;
  boot_timer timer_;
  int asked_to_end_ = 0;
  bool is_unguarded_ = false;  ///< the watchdog is gone
  int early_signal_ = 0;       ///< came before there was a group; 0: none

  // Of the run that goes on.
  lock_standing standing_;
  pid_t group_ = 0;  ///< 0: not there yet, or not any more
  run_end end_;
  std::optional<boot_time> ending_since_;
  std::optional<boot_time> killed_at_;
  look_pace looks_;  ///< at the group that is to end
  bool is_over_ = false;
};

}  // namespace leasehold::tools
