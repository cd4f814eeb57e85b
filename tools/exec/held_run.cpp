#include "tools/exec/held_run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include "tools/api.hpp"
#include "tools/exec/environment.hpp"
#include "tools/exec/exec_codes.hpp"
#include "tools/exec/process_group.hpp"
#include "tools/exec/supervision.hpp"

extern char** environ;

namespace leasehold::tools {
namespace {

std::string error_text(int number) { return std::generic_category().message(number); }

renew_schedule schedule_of(const acquired_lock& lock, const term_plan& term) {
  std::minstd_rand dice(std::random_device{}());
  return {term.term, lock.sent, lock.grant.term,
          [dice]() mutable { return std::uniform_real_distribution<double>(0, 1)(dice); }};
}

/// Signals wait in descriptors from here on, in every thread that is started.
sigset_t block_signals() {
  auto all = forwarded_signals();
  for (const int number : {SIGCHLD, SIGTTIN, SIGTTOU}) sigaddset(&all, number);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

/// Gets the lock, or gives up when a signal asks for an end.
std::variant<acquired_lock, not_acquired> acquire_unless_ended(client_options connection,
                                                               acquire_plan plan) {
  const descriptor ended(signalfd(-1, &ending_signals(), SFD_CLOEXEC | SFD_NONBLOCK));
  connection.stop_descriptor = plan.stop_descriptor = ended.number();
  lock_client client(std::move(connection));
  auto outcome = acquire(client, std::move(plan));
  signalfd_siginfo seen{};
  auto* refused = std::get_if<not_acquired>(&outcome);
  if (refused != nullptr && refused->code == exit_code::interrupted &&
      read(ended.number(), &seen, sizeof seen) == sizeof seen) {
    refused->code = code_of_signal(static_cast<int>(seen.ssi_signo));
  }
  return outcome;
}

/// Why the command was not started, by the code of the hook before it.
std::string hook_fault(const std::vector<std::string>& hook, int code) {
  const bool is_unrunnable = code == static_cast<int>(exit_code::not_executable) ||
                             code == static_cast<int>(exit_code::not_found);
  const bool is_line = hook.size() > 1;
  return fmt::format("the token hook{} ended with {}: the command was not started",
                     is_line && is_unrunnable
                         ? ", which is the path of no executable file and so a line for a shell,"
                         : "",
                     code);
}

class held_run {
 public:
  held_run(const client_options& connection, exec_plan plan, const acquired_lock& lock)
      : connection_(connection),
        plan_(std::move(plan)),
        grant_(lock.grant),
        keeper_(connection, lock.grant, schedule_of(lock, plan_.term)) {}

  exit_code run(const sigset_t& mask);

 private:
  [[nodiscard]] watched_work work(const sigset_t& mask) const;
  exit_code under(watchdog& guard);
  exit_code judge(const run_end& end, const std::string& command);
  exit_code give_back(exit_code code);

  client_options connection_;
  exec_plan plan_;
  lock_grant grant_;
  lock_keeper keeper_;
  bool is_releasable_ = true;
};

watched_work held_run::work(const sigset_t& mask) const {
  watched_work work;
  work.commands = {{plan_.command, false}};
  if (!plan_.hook.empty()) work.commands.push_back({plan_.hook, true});
  work.environment = [grant = grant_](boot_time deadline) {
    return command_environment(environ, grant, deadline, boot_clock::now());
  };
  work.plan = plan_.term;
  work.deadline = keeper_.standing().holds.deadline;
  work.signal_mask = mask;
  return work;
}

exit_code held_run::run(const sigset_t& mask) {
  // The grant may be as old as the wait for it; whether it still holds, the coordinator says.
  if (!keeper_.renew_first(boot_clock::now() + plan_.term.term)) {
    return give_back(
        complain(exit_code::lock_lost,
                 fmt::format("{}: the lock could not be renewed before its command was started: {}",
                             grant_.key, keeper_.standing().why)));
  }
  // The process has one thread until the watchdog is there.
  auto guard = watchdog::start(work(mask));
  if (!guard) {
    return give_back(
        complain(exit_code::exec_failed,
                 fmt::format("the watchdog cannot be started: {}", error_text(errno))));
  }
  keeper_.start();
  const auto code = under(*guard);
  // The group is gone, or will not go; either way nobody needs the lock to be renewed any more.
  keeper_.stop();
  guard->finish();
  return give_back(code);
}

exit_code held_run::under(watchdog& guard) {
  supervision runs(
      guard,
      {[this] { return keeper_.standing(); }, [this] { keeper_.clear_bell(); }, keeper_.bell()},
      plan_.term);
  if (!plan_.hook.empty()) {
    const auto end = runs.run(1);
    is_releasable_ = end.group_is_gone;
    if (runs.asked_to_end() != 0) return code_of_signal(runs.asked_to_end());
    const bool is_done = end.what == run_end::kind::exited && end.code == 0;
    if (end.what == run_end::kind::exited && !is_done) {
      return complain(exit_code::exec_failed, hook_fault(plan_.hook, end.code));
    }
    if (end.what == run_end::kind::not_started) {
      return complain(exit_code::exec_failed,
                      fmt::format("the token hook cannot be run: {}", error_text(end.code)));
    }
    if (!is_done) return judge(end, "the token hook");
  }
  return judge(runs.run(0), plan_.command.front());
}

exit_code held_run::judge(const run_end& end, const std::string& command) {
  is_releasable_ = end.group_is_gone;
  const auto code = code_of(end);
  switch (end.what) {
    case run_end::kind::exited:
      break;
    case run_end::kind::not_started:
      complain(code, fmt::format("{} cannot be run: {}", command, error_text(end.code)));
      break;
    case run_end::kind::lost:
      complain(code, fmt::format("{}: the lock was lost, {} was ended: {}", grant_.key, command,
                                 end.why));
      break;
    case run_end::kind::watchdog_gone:
      complain(code, fmt::format("{}, so {} was ended", end.why, command));
      break;
  }
  return code;
}

exit_code held_run::give_back(exit_code code) {
  const auto standing = keeper_.standing();
  if (standing.is_lost) return code;
  if (!is_releasable_) {
    complain(code, fmt::format("{}: processes have outlived their KILL, so the lock is not "
                               "released; it ends with its term",
                               grant_.key));
    return code;
  }
  std::string why;
  switch (release_lock(connection_, grant_, standing.holds.deadline, why)) {
    case release_end::released:
      break;
    case release_end::lost_before:
      return complain(exit_code::lock_lost,
                      fmt::format("{}: the lock was lost before it was released (the command's "
                                  "code was {}): {}",
                                  grant_.key, static_cast<int>(code), why));
    case release_end::unknown:
      complain(code, fmt::format("{}: the lock was not released and ends with its term: {}",
                                 grant_.key, why));
      break;
  }
  return code;
}

}  // namespace

exit_code run_held(const client_options& connection, exec_plan plan) {
  if (!processes_can_be_seen()) {
    return complain(exit_code::exec_failed,
                    "/proc cannot be read, so that the end of a command "
                    "could not be seen: mount it");
  }
  const auto mask = block_signals();
  auto outcome = acquire_unless_ended(connection, plan.acquire);
  if (const auto* refused = std::get_if<not_acquired>(&outcome)) {
    const bool is_held = refused->code == exit_code::not_acquired;
    return complain(is_held ? static_cast<exit_code>(plan.conflict_exit_code) : refused->code,
                    fmt::format("the lock was not acquired: {}", refused->sentence));
  }
  return held_run(connection, std::move(plan), std::get<acquired_lock>(outcome)).run(mask);
}

}  // namespace leasehold::tools
