#include "tools/exec/group_leader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tools/exec/process_group.hpp"

namespace leasehold::tools {
namespace {

constexpr int patience_ms = 5000;
constexpr int first_look_ms = 5;
constexpr int longest_look_ms = 100;

/// Of a program that is to be run.
struct leader_start {
  char* const* arguments;
  char* const* environment;
  const leader_surroundings& around;
  bool is_apart;
  int fault;  ///< takes the errno when it cannot be run
  pid_t parent;
};

void part_from_standard_streams() noexcept {
  const int nothing = open("/dev/null", O_RDWR);
  if (dup2(nothing, STDIN_FILENO) < 0) close(STDIN_FILENO);
  if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) dup2(nothing, STDOUT_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
}

/// In the child: only calls that are safe between fork and exec.
[[noreturn]] void become(const leader_start& what) {
  setpgid(0, 0);
  what.around.line.tie_own_group();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != what.parent) _exit(127);
  // The program ignores PIPE for itself; what the caller of exec ignores stays ignored.
  ::signal(SIGPIPE, SIG_DFL);
  if (what.is_apart) part_from_standard_streams();
  sigprocmask(SIG_SETMASK, &what.around.mask, nullptr);
  execvpe(what.arguments[0], what.arguments, what.environment);
  const int why = errno;
  [[maybe_unused]] const auto written = write(what.fault, &why, sizeof why);
  _exit(127);
}

}  // namespace

std::optional<group_leader> group_leader::start(const watched_command& command,
                                                const leader_surroundings& around) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  descriptor fault(ends[0]);
  const descriptor writes(ends[1]);
  fcntl(fault.number(), F_SETFL, O_NONBLOCK);
  const auto arguments = pointers_to(command.words);
  const auto variables = pointers_to(around.environment);
  const leader_start what{arguments.data(), variables.data(), around,
                          command.is_apart, writes.number(),  getpid()};
  const auto id = fork();
  if (id < 0) return std::nullopt;
  if (id == 0) become(what);
  setpgid(id, id);  // whoever is first: the group exists before anybody signals it
  return group_leader(id, std::move(fault));
}

int group_leader::read_start_fault() noexcept {
  if (!fault_) return 0;
  int why = 0;
  const auto size = read(fault_.number(), &why, sizeof why);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  fault_.close();
  return size == sizeof why ? why : 0;
}

std::optional<watch_report> group_leader::next_change() noexcept {
  using kind = watch_report::kind;
  const auto who = static_cast<id_t>(id_);
  siginfo_t seen{};
  if (waitid(P_PID, who, &seen, WSTOPPED | WNOHANG) == 0 && seen.si_pid == id_) {
    return watch_report{kind::stopped, seen.si_status};
  }
  // While the program is not run yet, an end is the end of a failed start.
  if (has_ended_ || fault_) return std::nullopt;
  seen.si_pid = 0;
  if (waitid(P_PID, who, &seen, WEXITED | WNOHANG | WNOWAIT) != 0 || seen.si_pid != id_) {
    return std::nullopt;
  }
  has_ended_ = true;
  return watch_report{seen.si_code == CLD_EXITED ? kind::exited : kind::killed, seen.si_status};
}

void group_leader::collect_orphans() const noexcept {
  siginfo_t seen{};
  while (waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT) == 0 && seen.si_pid != 0 &&
         seen.si_pid != id_) {
    waitpid(seen.si_pid, nullptr, WNOHANG);
    seen.si_pid = 0;
  }
}

void group_leader::end() noexcept {
  // Nobody has waited for the leader yet, so its number, and with it the group's, is still its own.
  signal_group(id_, SIGKILL);
  int look_ms = first_look_ms;
  for (int waited = 0; waited < patience_ms && group_lives(id_); waited += look_ms) {
    look_ms = std::min(2 * look_ms, longest_look_ms);
    poll(nullptr, 0, look_ms);
    signal_group(id_, SIGKILL);
  }
  waitpid(id_, nullptr, WNOHANG);
  collect_orphans();
}

}  // namespace leasehold::tools
