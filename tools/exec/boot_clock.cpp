#include "tools/exec/boot_clock.hpp"

#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>

namespace leasehold::tools {

boot_time boot_clock::now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return boot_time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

std::int64_t boot_ms(boot_time at) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

boot_timer::boot_timer() : timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {}

void boot_timer::set(boot_time at) noexcept {
  // A time of zero would disarm the timer.
  const auto ns = std::max<std::int64_t>(at.time_since_epoch().count(), 1);
  itimerspec when{};
  when.it_value.tv_sec = ns / 1'000'000'000;
  when.it_value.tv_nsec = ns % 1'000'000'000;
  timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void boot_timer::clear() noexcept {
  const itimerspec never{};
  timerfd_settime(timer_.number(), 0, &never, nullptr);
}

}  // namespace leasehold::tools
