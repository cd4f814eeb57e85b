#include "tools/exec/watchdog.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/exec/watching.hpp"

namespace leasehold::tools {
namespace {

constexpr int patience_ms = 2000;
constexpr int look_ms = 2;

descriptor own_pidfd() {
  return descriptor(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
}

}  // namespace

std::unique_ptr<watchdog> watchdog::start(watched_work work) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  descriptor ours(ends[0]);
  descriptor its(ends[1]);
  // Opened before the fork: the watchdog could find that its parent is somebody else already.
  auto parent = own_pidfd();
  death_line line;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto id = fork();
  if (id < 0) return nullptr;
  if (id == 0) {
    ours.close();
    watch({std::move(its), std::move(parent), std::move(line)}, std::move(work));
  }
  line.keep_reading_ends();
  return std::unique_ptr<watchdog>(new watchdog(id, std::move(ours), std::move(line)));
}

watchdog::~watchdog() { finish(); }

void watchdog::tell(const watch_order& order) const noexcept {
  // A watchdog that takes nothing any more is stopped, or gone; both are noticed elsewhere.
  while (send(socket_.number(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
         errno == EINTR) {
  }
}

void watchdog::tell_deadline(boot_time deadline) const noexcept {
  tell({watch_order::kind::deadline, 0, deadline.time_since_epoch().count()});
}

void watchdog::start_command(std::size_t number) const noexcept {
  tell({watch_order::kind::start, static_cast<std::int32_t>(number), 0});
}

std::optional<watch_report> watchdog::next_report() const noexcept {
  watch_report report;
  const auto size = recv(socket_.number(), &report, sizeof report, MSG_DONTWAIT);
  return size == sizeof report ? std::optional(report) : std::nullopt;
}

bool watchdog::is_gone() noexcept {
  siginfo_t seen{};
  while (!is_gone_) {
    seen.si_pid = 0;
    if (waitid(P_PID, static_cast<id_t>(id_), &seen, WEXITED | WSTOPPED | WNOHANG) != 0) {
      if (errno == EINTR) continue;
      is_gone_ = true;
      break;
    }
    if (seen.si_pid == 0) break;
    if (seen.si_code == CLD_STOPPED || seen.si_code == CLD_TRAPPED) {
      kill(id_, SIGCONT);
    } else {
      is_gone_ = true;
    }
  }
  return is_gone_;
}

void watchdog::finish() noexcept {
  if (is_gone()) return;
  tell({watch_order::kind::finish, 0, 0});
  for (int waited = 0; waited < patience_ms && !is_gone(); waited += look_ms) {
    poll(nullptr, 0, look_ms);
  }
  if (is_gone()) return;
  kill(id_, SIGKILL);
  waitpid(id_, nullptr, 0);
  is_gone_ = true;
}

}  // namespace leasehold::tools
