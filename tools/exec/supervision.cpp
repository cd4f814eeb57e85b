#include "tools/exec/supervision.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "tools/exec/process_group.hpp"

namespace leasehold::tools {
namespace {

/// How long what was killed may take to go before it is given up.
constexpr std::chrono::seconds after_kill{5};

/// What the caller ignores, as nohup does, stays ignored; blocked, it would be heard.
bool is_ignored(int number) noexcept {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t heard_of(std::initializer_list<int> numbers) noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) {
    if (!is_ignored(number)) sigaddset(&set, number);
  }
  return set;
}

descriptor watched_signals() {
  auto set = forwarded_signals();
  sigaddset(&set, SIGCHLD);
  return descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

constexpr int by_signal = 128;

}  // namespace

const sigset_t& forwarded_signals() {
  static const sigset_t set =
      heard_of({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT});
  return set;
}

const sigset_t& ending_signals() {
  static const sigset_t set = heard_of({SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  return set;
}

supervision::supervision(watchdog& guard, standing_source source, term_plan plan)
    : guard_(guard), source_(std::move(source)), plan_(plan), signals_(watched_signals()) {}

run_end supervision::run(std::size_t command) {
  end_ = {};
  group_ = 0;
  is_over_ = false;
  ending_since_.reset();
  killed_at_.reset();
  looks_.begin();
  take_standing();
  look_at_time();
  if (!ending_since_) guard_.start_command(command);
  is_over_ = ending_since_.has_value();
  while (!is_over_) {
    look_at_time();
    if (is_over_) break;
    wait_for_something();
    take_signals();
    // Before the reports: a command that ended after its time, perhaps by the watchdog, was lost.
    take_standing();
    look_at_time();
    if (!is_over_) take_reports();
  }
  terminal_.take_terminal_back();
  return end_;
}

void supervision::wait_for_something() {
  std::array<pollfd, 4> all{{{signals_.number(), POLLIN, 0},
                             {guard_.reports(), POLLIN, 0},
                             {source_.bell, POLLIN, 0},
                             {timer_.number(), POLLIN, 0}}};
  // The end of a watchdog that is known would be told without end.
  if (is_unguarded_) all[1].fd = -1;
  poll(all.data(), all.size(), -1);
}

// ---- what comes in -----------------------------------------------------------------------------

void supervision::take_signals() {
  signalfd_siginfo seen{};
  while (read(signals_.number(), &seen, sizeof seen) == sizeof seen) {
    const auto number = static_cast<int>(seen.ssi_signo);
    if (number != SIGCHLD) forward(number);
  }
}

void supervision::forward(int number) {
  const bool asks_for_end = sigismember(&ending_signals(), number) == 1;
  if (asks_for_end && asked_to_end_ == 0) asked_to_end_ = number;
  // What asks for an end before the command is there is kept for it.
  if (group_ == 0) {
    if (asks_for_end) early_signal_ = number;
  } else {
    signal_group(group_, number);
  }
}

void supervision::take_reports() {
  while (const auto report = guard_.next_report()) take(*report);
  if (is_unguarded_ || !guard_.is_gone()) return;
  // Without it nothing would end the group if exec were gone too: the safe answer is to end it now.
  is_unguarded_ = true;
  begin_end(run_end::kind::watchdog_gone, "the watchdog has ended");
}

void supervision::take(const watch_report& report) {
  switch (report.what) {
    case watch_report::kind::forked:
      group_ = report.value;
      if (const int early = std::exchange(early_signal_, 0)) signal_group(group_, early);
      if (ending_since_) ask_group_to_end(group_);
      break;
    case watch_report::kind::not_started:
      end_.what = run_end::kind::not_started;
      end_.code = report.value;
      is_over_ = true;
      break;
    case watch_report::kind::stopped:
      if (!ending_since_) terminal_.group_stopped(group_, report.value);
      break;
    case watch_report::kind::exited:
    case watch_report::kind::killed:
      end_.code = report.value + (report.what == watch_report::kind::killed ? by_signal : 0);
      looks_.begin();
      // What it left running works under the same lock, so that goes before the lock does.
      begin_end(run_end::kind::exited, {});
      break;
  }
}

void supervision::take_standing() {
  source_.clear_bell();
  const auto before = standing_.holds.deadline;
  standing_ = source_.look();
  if (standing_.holds.deadline != before) guard_.tell_deadline(standing_.holds.deadline);
  if (standing_.is_lost) begin_end(run_end::kind::lost, standing_.why);
}

// ---- the end -----------------------------------------------------------------------------------

boot_time supervision::kill_deadline() const {
  const auto last = kill_time(standing_.holds.deadline, plan_);
  return std::min<boot_time>(*ending_since_ + plan_.grace, last);
}

void supervision::begin_end(run_end::kind what, std::string why) {
  const bool was_ending = ending_since_.has_value();
  if (!was_ending) ending_since_ = boot_clock::now();
  // A loss while the rest of the group ends is a loss: the rest may have worked without authority.
  if (!was_ending || (what == run_end::kind::lost && end_.what == run_end::kind::exited)) {
    end_.what = what;
    end_.why = std::move(why);
  }
  if (!was_ending) ask_group_to_end(group_);
}

void supervision::look_at_time() {
  const auto now = boot_clock::now();
  const auto stop_at = stop_time(standing_.holds.deadline, plan_);
  if (!ending_since_ && now >= stop_at) {
    begin_end(run_end::kind::lost, standing_.why.empty() ? "the term ends" : standing_.why);
  }
  if (ending_since_) {
    go_on_ending();
  } else {
    timer_.set(stop_at);
  }
}

void supervision::go_on_ending() {
  const auto now = boot_clock::now();
  const bool is_kill_due = now >= kill_deadline();
  if (is_kill_due && !killed_at_) {
    killed_at_ = now;
    looks_.begin();
  }
  if (looks_.is_due(now)) {
    if (is_kill_due) signal_group(group_, SIGKILL);
    const bool is_gone = group_ == 0 ? is_kill_due : !group_lives(group_);
    const bool is_given_up = killed_at_ && now >= *killed_at_ + after_kill;
    if (is_gone || is_given_up) {
      end_.group_is_gone = is_gone;
      is_over_ = true;
    }
    looks_.looked(now);
  }
  timer_.set(killed_at_ ? looks_.next() : std::min(looks_.next(), kill_deadline()));
}

}  // namespace leasehold::tools
