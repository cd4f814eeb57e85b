#include "tools/exec/watching.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tools/exec/group_leader.hpp"
#include "tools/exec/look_pace.hpp"
#include "tools/exec/process_group.hpp"

namespace leasehold::tools {
namespace {

sigset_t only(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

/// One group at a time, and its end.
class watching {
 public:
  watching(watch_ties ties, watched_work work)
      : orders_(std::move(ties.orders)),
        parent_(std::move(ties.parent)),
        line_(std::move(ties.line)),
        work_(std::move(work)) {
    const auto child = only(SIGCHLD);
    children_ = descriptor(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  /// Until it is told to finish, or exec is gone and the group too.
  void run();

 private:
  void wait_for_something();
  void take_orders();
  void take(const watch_order& order);
  void start(std::size_t number);
  void take_start_fault();
  void look_at_children();
  void leave_when_parent_is_gone();
  void keep_the_deadline();
  void end_group() noexcept;
  void report(watch_report::kind what, int value) const noexcept;

  descriptor orders_;
  descriptor parent_;
  death_line line_;
  watched_work work_;
  descriptor children_;
  boot_timer timer_;
  std::optional<group_leader> leader_;
  std::optional<boot_time> kill_at_;  ///< set while the group is being ended without exec
  look_pace looks_;                   ///< at the group that is to end
  bool is_killed_ = false;            ///< the time for its KILL has come
  bool is_group_gone_ = false;
  bool is_told_to_finish_ = false;
  bool is_alone_ = false;  ///< exec is gone
};

void watching::report(watch_report::kind what, int value) const noexcept {
  const watch_report message{what, value};
  send(orders_.number(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void watching::run() {
  while (!is_told_to_finish_) {
    keep_the_deadline();
    if (is_alone_ && (!leader_ || is_group_gone_)) break;
    wait_for_something();
    take_start_fault();
    look_at_children();
    if (!is_alone_) take_orders();
  }
  end_group();
}

/// The group dies at the time for it, whoever is left to want it.
void watching::keep_the_deadline() {
  if (!leader_) return timer_.clear();
  const auto last = watchdog_time(work_.deadline, work_.plan);
  const auto kill_at = std::min(kill_at_.value_or(last), last);
  const auto now = boot_clock::now();
  const bool is_kill_due = now >= kill_at;
  if (is_kill_due && !std::exchange(is_killed_, true)) looks_.begin();
  if (!is_kill_due && !is_alone_) return timer_.set(kill_at);
  if (looks_.is_due(now)) {
    if (is_kill_due) signal_group(leader_->id(), SIGKILL);
    is_group_gone_ = !group_lives(leader_->id());
    looks_.looked(now);
  }
  if (is_group_gone_) return timer_.clear();
  timer_.set(is_kill_due ? looks_.next() : std::min(looks_.next(), kill_at));
}

void watching::wait_for_something() {
  const int fault = leader_ ? leader_->start_fault() : -1;
  std::array<pollfd, 5> all{{{orders_.number(), POLLIN, 0},
                             {parent_.number(), POLLIN, 0},
                             {children_.number(), POLLIN, 0},
                             {timer_.number(), POLLIN, 0},
                             {fault, POLLIN, 0}}};
  if (is_alone_) all[0].fd = all[1].fd = -1;
  poll(all.data(), all.size(), -1);
  if (all[1].revents != 0) leave_when_parent_is_gone();
}

void watching::take_orders() {
  for (;;) {
    watch_order order;
    const auto size = recv(orders_.number(), &order, sizeof order, MSG_DONTWAIT);
    if (size == sizeof order) {
      take(order);
    } else if (size < 0 && errno == EINTR) {
      continue;
    } else {
      if (size >= 0 || errno != EAGAIN) leave_when_parent_is_gone();
      return;
    }
  }
}

void watching::take(const watch_order& order) {
  switch (order.what) {
    case watch_order::kind::deadline:
      work_.deadline = boot_time(std::chrono::nanoseconds(order.at_ns));
      break;
    case watch_order::kind::start:
      start(static_cast<std::size_t>(order.command));
      break;
    case watch_order::kind::finish:
      is_told_to_finish_ = true;
      break;
  }
}

void watching::start(std::size_t number) {
  end_group();
  const auto environment = work_.environment(work_.deadline);
  leader_ = group_leader::start(work_.commands.at(number), {environment, work_.signal_mask, line_});
  if (leader_) {
    report(watch_report::kind::forked, leader_->id());
  } else {
    report(watch_report::kind::not_started, errno);
  }
}

void watching::take_start_fault() {
  if (!leader_) return;
  if (const int fault = leader_->read_start_fault(); fault != 0) {
    end_group();
    report(watch_report::kind::not_started, fault);
  }
}

void watching::look_at_children() {
  signalfd_siginfo ignored;
  while (read(children_.number(), &ignored, sizeof ignored) > 0) {
  }
  if (!leader_) return;
  while (const auto change = leader_->next_change()) {
    report(change->what, change->value);
    looks_.begin();
  }
  leader_->collect_orphans();
}

void watching::leave_when_parent_is_gone() {
  if (std::exchange(is_alone_, true) || !leader_) return;
  ask_group_to_end(leader_->id());
  looks_.begin();
  kill_at_ = boot_clock::now() + work_.plan.grace;
}

void watching::end_group() noexcept {
  if (leader_) leader_->end();
  leader_.reset();
  is_killed_ = is_group_gone_ = false;
}

}  // namespace

void watch(watch_ties ties, watched_work work) noexcept {
  // In a group of its own, so that what a terminal or a shell sends to exec's does not end it.
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "leasehold-watch");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  watching(std::move(ties), std::move(work)).run();
  _exit(0);
}

}  // namespace leasehold::tools
