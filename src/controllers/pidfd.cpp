#include "src/controllers/pidfd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace leasehold::controllers {

namespace {

/// PIDFD_SIGNAL_PROCESS_GROUP, which the headers of Debian 12 do not have.
constexpr unsigned to_process_group = 1U << 2U;

bool send(int to, int signal, unsigned flags) noexcept {
  return syscall(SYS_pidfd_send_signal, to, signal, nullptr, flags) == 0;
}

}  // namespace

pidfd pidfd::open(std::int64_t pid) noexcept {
  return pidfd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U)));
}

pidfd::pidfd(pidfd&& from) noexcept : number_(std::exchange(from.number_, -1)) {}

pidfd& pidfd::operator=(pidfd&& from) noexcept {
  std::swap(number_, from.number_);
  return *this;
}

pidfd::~pidfd() {
  if (number_ >= 0) close(number_);
}

bool pidfd::has_exited() const noexcept {
  pollfd ended{number_, POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

bool pidfd::signal(int signal) const noexcept { return send(number_, signal, 0); }

bool pidfd::signal_group(int signal) const noexcept {
  return send(number_, signal, to_process_group);
}

}  // namespace leasehold::controllers
