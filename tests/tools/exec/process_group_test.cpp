// What counts as a group that lives, and how often it is looked for.
#include "tools/exec/process_group.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/exec/look_pace.hpp"

namespace leasehold::tests {
namespace {

using std::chrono::milliseconds;

/// A child that leads a group of its own and waits to be killed.
class group_of_one {
 public:
  group_of_one() : id_(fork()) {
    if (id_ == 0) {
      for (;;) pause();
    }
    setpgid(id_, id_);
  }
  ~group_of_one() { collect(); }
  group_of_one(const group_of_one&) = delete;
  group_of_one& operator=(const group_of_one&) = delete;

  /// Until it has ended, or stands still; it is not collected.
  void signal(int number) const {
    kill(id_, number);
    siginfo_t seen{};
    waitid(P_PID, static_cast<id_t>(id_), &seen, WEXITED | WSTOPPED | WNOWAIT);
  }
  void collect() {
    if (is_collected_) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    is_collected_ = true;
  }
  [[nodiscard]] pid_t id() const noexcept { return id_; }

 private:
  pid_t id_;
  bool is_collected_ = false;
};

TEST(ProcessGroup, LivesWhileAProcessOfItRunsOrIsStopped) {
  group_of_one group;
  EXPECT_TRUE(tools::group_lives(group.id()));
  group.signal(SIGSTOP);
  EXPECT_TRUE(tools::group_lives(group.id()));
}

TEST(ProcessGroup, WhatHasEndedAndWasNotWaitedForDoesNotLive) {
  group_of_one group;
  group.signal(SIGKILL);
  EXPECT_EQ(kill(-group.id(), 0), 0) << "the kernel still knows the group";
  EXPECT_FALSE(tools::group_lives(group.id()));
}

TEST(ProcessGroup, OneThatNobodyIsInDoesNotLive) {
  group_of_one group;
  group.collect();
  EXPECT_FALSE(tools::group_lives(group.id()));
}

TEST(ProcessGroup, WhereNothingCanBeReadItLives) {
  const auto looks = fork();
  if (looks == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    setpgid(0, 0);
    _exit(tools::group_lives(getpid()) && !tools::processes_can_be_seen() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(looks, &status, 0), looks);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(tools::processes_can_be_seen());
}

TEST(LookPace, IsDueAtOnceAndThenEverLessOftenUpToATenthOfASecond) {
  tools::look_pace pace;
  tools::boot_time now(milliseconds(1'000'000));
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(pace.is_due(now));
    for (const int wait : {10, 20, 40, 80, 100, 100}) {
      pace.looked(now);
      EXPECT_EQ(pace.next(), now + milliseconds(wait));
      EXPECT_FALSE(pace.is_due(pace.next() - std::chrono::nanoseconds(1)));
      now = pace.next();
      EXPECT_TRUE(pace.is_due(now));
    }
    pace.looked(now);
    pace.begin();
  }
}

}  // namespace
}  // namespace leasehold::tests
