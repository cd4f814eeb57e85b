// A process that may be cancelled: leads a group of its own and tells a file each signal that it
// gets, one line each (PID WORD), so that somebody else can count them.
//
//   target FILE [ignore] [child] [named NAME]
//
// ignore: TERM does not end it. child: another one runs in its group, and ignores TERM if it does.
// named: as ps shows it. USR1 makes it leave its group for its parent's, USR2 makes it end and
// leave its child behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace {

int record = -1;
bool ignores_term = false;
bool is_leader = true;

void tell(const char* word) {
  char line[64];
  const int size = std::snprintf(line, sizeof line, "%d %s\n", static_cast<int>(getpid()), word);
  (void)!write(record, line, static_cast<std::size_t>(size));
}

extern "C" void take(int signal) {
  if (signal == SIGUSR1) {
    const bool moved = is_leader && setpgid(0, getpgid(getppid())) == 0;
    return tell(moved ? "moved" : "stays");
  }
  if (signal == SIGUSR2) {
    if (is_leader) _exit(0);
    return;
  }
  tell(signal == SIGTERM ? "TERM" : "signal");
  if (signal == SIGTERM && !ignores_term) _exit(0);
}

}  // namespace

int main(int count, char** values) {
  record = open(count > 1 ? values[1] : "", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (record < 0 || (getpgrp() != getpid() && setpgid(0, 0) != 0)) return 2;
  bool has_child = false;
  for (int i = 2; i < count; ++i) {
    const std::string_view word(values[i]);
    ignores_term = ignores_term || word == "ignore";
    has_child = has_child || word == "child";
    if (word == "named" && i + 1 < count) prctl(PR_SET_NAME, values[++i]);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction how {};
    how.sa_handler = take;
    if (signal != SIGKILL && signal != SIGSTOP && signal != SIGCHLD)
      sigaction(signal, &how, nullptr);
  }
  if (has_child) {
    is_leader = fork() != 0;
    // It may outlive the leader, but not a minute.
    if (!is_leader) alarm(60);
  }
  tell("ready");
  for (;;) pause();
}
