// Preloaded into a program it shows it other clocks: CLOCK_REALTIME, CLOCK_MONOTONIC and
// CLOCK_BOOTTIME, each moved by what the mapped file says, timerfds that fire by the moved clocks,
// and another boot id. Of a moved clock only a program's own reading and its timerfds take notice:
// sleeps and waits in the kernel go on by the real one.
#include "support/clock_shim.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::tests {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t ms_ns = 1'000'000;

/// Nothing when the variable is not set: then all is as without the shim.
shim_state* open_state() {
  const char* path = std::getenv(clock_shim_variable);
  if (path == nullptr) return nullptr;
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0));
  if (file < 0) return nullptr;
  // All three are bare calls: ThreadSanitizer follows descriptors, and has to see all of one's life
  // or nothing.
  const long at =
      syscall(SYS_mmap, nullptr, sizeof(shim_state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a bare call yields its address as a number.
  return at == -1 ? nullptr : reinterpret_cast<shim_state*>(at);
}

shim_state* state() {
  static shim_state* const mapped = open_state();
  return mapped;
}

std::int64_t moved_by_ns(clockid_t clock) {
  const shim_state* all = state();
  if (all == nullptr) return 0;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return all->realtime_ms * ms_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
      return all->monotonic_ms * ms_ns;
    case CLOCK_BOOTTIME:
      return all->boottime_ms * ms_ns;
    default:
      return 0;
  }
}

std::int64_t ns_of(const timespec& at) { return std::int64_t{at.tv_sec} * second_ns + at.tv_nsec; }

timespec timespec_of(std::int64_t ns) {
  std::int64_t whole = ns / second_ns;
  std::int64_t rest = ns % second_ns;
  if (rest < 0) {
    --whole;
    rest += second_ns;
  }
  return {whole, rest};
}

int read_clock(clockid_t clock, timespec* into) {
  // The bare call: no sanitizer, no other shim and no page of the kernel stands in between.
  const auto failed = static_cast<int>(syscall(SYS_clock_gettime, clock, into));
  if (failed == 0) *into = timespec_of(ns_of(*into) + moved_by_ns(clock));
  return failed;
}

/// The timerfds of the process that may wait for a moved clock. Made by the compiler and never
/// destroyed: a sanitizer does not see what is made here at the first call.
class moved_timers {
 public:
  void created(int descriptor, clockid_t clock) {
    const std::lock_guard hold(mutex_);
    // A number that was closed and came back is another timer.
    if (timer* const which = at(descriptor)) *which = {clock, true, {}};
    if (!std::exchange(watched_, true)) watch();
  }

  int set(int descriptor, int flags, const itimerspec& wanted, itimerspec* before) {
    const std::lock_guard hold(mutex_);
    timer* const which = at(descriptor);
    const bool stops = ns_of(wanted.it_value) == 0;
    if (which == nullptr || !which->known || stops) {
      return set_in_kernel(descriptor, flags, wanted, before);
    }
    which->due = wanted;
    if ((flags & TFD_TIMER_ABSTIME) == 0) {
      timespec now{};
      read_clock(which->clock, &now);
      which->due.it_value = timespec_of(ns_of(now) + ns_of(wanted.it_value));
    }
    return arm(descriptor, *which, before);
  }

 private:
  struct timer {
    clockid_t clock = 0;
    bool known = false;
    itimerspec due{};  // absolute, by the moved clock
  };

  timer* at(int descriptor) {
    const auto i = static_cast<std::size_t>(descriptor);
    return i < timers_.size() ? &timers_[i] : nullptr;
  }

  static int set_in_kernel(int descriptor, int flags, const itimerspec& what, itimerspec* before) {
    return static_cast<int>(syscall(SYS_timerfd_settime, descriptor, flags, &what, before));
  }

  static int arm(int descriptor, const timer& which, itimerspec* before) {
    itimerspec real = which.due;
    // Zero would disarm; a time that has passed fires at once.
    const std::int64_t due = ns_of(which.due.it_value) - moved_by_ns(which.clock);
    real.it_value = timespec_of(due > 0 ? due : 1);
    return set_in_kernel(descriptor, TFD_TIMER_ABSTIME, real, before);
  }

  void rearm_all() {
    const std::lock_guard hold(mutex_);
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      if (!timers_[i].known) continue;
      const auto descriptor = static_cast<int>(i);
      itimerspec left{};
      const bool is_timer = syscall(SYS_timerfd_gettime, descriptor, &left) == 0;
      if (is_timer && ns_of(left.it_value) != 0) arm(descriptor, timers_[i], nullptr);
    }
  }

  /// Waits for changes, and takes no signal that is meant for the program.
  void watch() {
    if (state() == nullptr) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] {
      for (;;) {
        const std::uint32_t seen = state()->changes;
        rearm_all();
        syscall(SYS_futex, &state()->changes, FUTEX_WAIT, seen, nullptr, nullptr, 0);
      }
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::mutex mutex_;
  std::array<timer, 1024> timers_{};  // by descriptor; they are opened early and have low numbers
  bool watched_ = false;
};

constinit moved_timers timers;

FILE* open_file(const char* name, const char* path, const char* mode) {
  using opener = FILE* (*)(const char*, const char*);
  const auto open = reinterpret_cast<opener>(dlsym(RTLD_NEXT, name));
  const char* beside = std::getenv(clock_shim_variable);
  if (beside != nullptr && std::strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
    FILE* other = open((std::string(beside) + boot_id_ending).c_str(), mode);
    if (other != nullptr) return other;
  }
  return open(path, mode);
}

}  // namespace
}  // namespace leasehold::tests

extern "C" {

int clock_gettime(clockid_t clock, timespec* into) noexcept {
  return leasehold::tests::read_clock(clock, into);
}

int gettimeofday(timeval* into, void*) noexcept {
  timespec now{};
  const int failed = leasehold::tests::read_clock(CLOCK_REALTIME, &now);
  *into = {now.tv_sec, now.tv_nsec / 1000};
  return failed;
}

time_t time(time_t* into) noexcept {
  timespec now{};
  leasehold::tests::read_clock(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

int timerfd_create(clockid_t clock, int flags) noexcept {
  const auto made = static_cast<int>(syscall(SYS_timerfd_create, clock, flags));
  if (made >= 0) leasehold::tests::timers.created(made, clock);
  return made;
}

int timerfd_settime(int descriptor, int flags, const itimerspec* wanted,
                    itimerspec* before) noexcept {
  return leasehold::tests::timers.set(descriptor, flags, *wanted, before);
}

FILE* fopen(const char* path, const char* mode) {
  return leasehold::tests::open_file("fopen", path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return leasehold::tests::open_file("fopen64", path, mode);
}

}  // extern "C"
