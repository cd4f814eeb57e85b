#include "tools/exec/job_control.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "tools/exec/process_group.hpp"

namespace leasehold::tools {
namespace {

/// Stops this process by a signal that is otherwise blocked; returns when it goes on. Nothing
/// happens where no shell is there to let it go on.
void stop_by(int number) noexcept {
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, number);
  raise(number);
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

job_control::job_control() : terminal_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
  // A group that is not in the foreground is stopped for changing who is.
  sigset_t wanting;
  sigemptyset(&wanting);
  for (const int number : {SIGTTIN, SIGTTOU, SIGTSTP}) sigaddset(&wanting, number);
  pthread_sigmask(SIG_BLOCK, &wanting, nullptr);
}

job_control::~job_control() { take_terminal_back(); }

bool job_control::has_terminal() const noexcept {
  return terminal_ && tcgetpgrp(terminal_.number()) == getpgrp();
}

void job_control::give_terminal_to(pid_t group) noexcept {
  is_given_ = tcsetpgrp(terminal_.number(), group) == 0;
}

void job_control::take_terminal_back() noexcept {
  if (std::exchange(is_given_, false)) tcsetpgrp(terminal_.number(), getpgrp());
}

void job_control::group_stopped(pid_t group, int number) {
  if (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU) return;
  const bool wants_terminal = number != SIGTSTP;
  if (!wants_terminal || !has_terminal()) {
    const bool had_terminal = is_given_;
    take_terminal_back();
    stop_by(number);
    if ((had_terminal || wants_terminal) && has_terminal()) give_terminal_to(group);
  } else {
    give_terminal_to(group);
  }
  signal_group(group, SIGCONT);
}

}  // namespace leasehold::tools
