#include "src/boot_timer.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace leasehold::server {
namespace {

int open_timer() {
  const int descriptor = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (descriptor < 0) throw std::system_error{errno, std::generic_category(), "timerfd_create"};
  return descriptor;
}

void set_timer(int descriptor, itimerspec when) {
  if (timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, nullptr) != 0) {
    throw std::system_error{errno, std::generic_category(), "timerfd_settime"};
  }
}

itimerspec absolute(std::int64_t boottime_ms) {
  // Zero would disarm; a time that has passed fires at once.
  const std::int64_t ms = std::max(boottime_ms, std::int64_t{1});
  itimerspec when{};
  when.it_value.tv_sec = ms / 1000;
  when.it_value.tv_nsec = ms % 1000 * 1'000'000;
  return when;
}

}  // namespace

boot_timer::boot_timer(boost::asio::io_context& loop, std::shared_ptr<const system_clock> clock)
    : clock_(std::move(clock)), descriptor_(loop, open_timer()) {}

boot_timer::~boot_timer() { *here_ = false; }

void boot_timer::arm(protocol::instant at, std::function<void()> due) {
  at_ = at;
  due_ = std::move(due);
  set_timer(descriptor_.native_handle(), absolute(clock_->boottime_of(at)));
  if (!waiting_) wait();
}

void boot_timer::disarm() {
  if (!due_) return;
  due_ = nullptr;
  set_timer(descriptor_.native_handle(), itimerspec{});
}

void boot_timer::wait() {
  waiting_ = true;
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this, here = here_](const boost::system::error_code& failed) {
                           if (!*here) return;
                           waiting_ = false;
                           if (!failed) fire();
                         });
}

void boot_timer::fire() {
  std::uint64_t expirations = 0;
  // Nothing to read: the timer was armed again after this completion had been queued.
  const bool expired = ::read(descriptor_.native_handle(), &expirations, sizeof expirations) > 0;
  if (!due_) return;
  if (!expired || clock_->now() < at_) {
    wait();
    return;
  }
  std::exchange(due_, nullptr)();
}

}  // namespace leasehold::server
