#include "false_clocks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <new>

namespace leasehold::e2e {
namespace {

std::int64_t read_ms(clockid_t which) {
  timespec at{};
  ::clock_gettime(which, &at);
  return std::int64_t{at.tv_sec} * 1000 + at.tv_nsec / 1'000'000;
}

std::string variable(const char* name) {
  const char* found = std::getenv(name);
  return found == nullptr ? "" : found;
}

}  // namespace

false_clocks::false_clocks() {
  const int file = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(::ftruncate(file, sizeof(tests::shim_state)), 0);
  void* at =
      ::mmap(nullptr, sizeof(tests::shim_state), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (at == MAP_FAILED) std::abort();
  shown_ = new (at) tests::shim_state{};
}

false_clocks::~false_clocks() { ::munmap(shown_, sizeof(tests::shim_state)); }

std::vector<std::string> false_clocks::variables() const {
  // AddressSanitizer wants to be the first library unless it is told that something else may be.
  return {std::string(tests::clock_shim_variable) + "=" + file_, "LD_PRELOAD=" CLOCK_SHIM,
          "ASAN_OPTIONS=" + variable("ASAN_OPTIONS") + ":verify_asan_link_order=0"};
}

void false_clocks::step_wall(ms by) {
  shown_->realtime_ms += by.count();
  told();
}

void false_clocks::set_wall(ms to) { step_wall(to - ms{wall_ms()}); }

void false_clocks::suspend(ms slept) {
  shown_->boottime_ms += slept.count();
  step_wall(slept);
}

void false_clocks::pass(ms time) {
  shown_->monotonic_ms += time.count();
  suspend(time);
}

void false_clocks::boot(ms up) {
  // CLOCK_MONOTONIC is compared by nobody across two processes: it may go on.
  shown_->boottime_ms = up.count() - read_ms(CLOCK_BOOTTIME);
  std::ofstream(file_ + tests::boot_id_ending)
      << "00000000-0000-4000-8000-00000000000" << ++boots_ << "\n";
  told();
}

std::int64_t false_clocks::wall_ms() const { return read_ms(CLOCK_REALTIME) + shown_->realtime_ms; }

std::int64_t false_clocks::boottime_ms() const {
  return read_ms(CLOCK_BOOTTIME) + shown_->boottime_ms;
}

void false_clocks::told() {
  ++shown_->changes;
  ::syscall(SYS_futex, &shown_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace leasehold::e2e
