// Real processes: a command's whole group is gone in time, whoever dies or stands still.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tools/exec/process_group.hpp"
#include "tools/exec/supervised_scene.hpp"

namespace leasehold::tests {
namespace {

using std::chrono::milliseconds;
using testing::Optional;

constexpr milliseconds term{2000};
constexpr milliseconds long_term{60'000};
/// How late the end of a group may be seen after its deadline.
constexpr milliseconds latest{100};

/// Neither TERM nor anything else but KILL ends it, and it has a child in its group.
constexpr auto stubborn =
    "trap '' TERM INT HUP; sleep 60 & echo $$ > $D/group; while :; do sleep 60; done";
/// Works on until it is asked to end.
constexpr auto obedient =
    "trap 'echo yes > $D/asked; exit 3' TERM; echo $$ > $D/group; "
    "while :; do sleep 0.01; done";

TEST(Supervision, TheCommandsOwnCodeIsTheCode) {
  EXPECT_THAT(supervised_scene("exit 0", long_term).wait(), Optional(0));
  EXPECT_THAT(supervised_scene("exit 7", long_term).wait(), Optional(7));
  EXPECT_THAT(supervised_scene("kill -USR1 $$", long_term).wait(), Optional(128 + SIGUSR1));
}

TEST(Supervision, AGroupThatIgnoresTermIsGoneBeforeTheDeadline) {
  supervised_scene scene(stubborn, term);
  EXPECT_LT(scene.gone_after_deadline(), milliseconds(0));
  EXPECT_THAT(scene.wait(), Optional(120));
}

TEST(Supervision, KillOfExecAloneEndsTheGroupByTheDeadline) {
  supervised_scene scene(stubborn, term);
  scene.await_start();
  scene.signal_exec(SIGKILL);
  EXPECT_LT(scene.gone_after_deadline(), latest);
}

TEST(Supervision, KillOfExecAloneAsksTheGroupToEndAtOnce) {
  supervised_scene scene(obedient, long_term, milliseconds(5000));
  scene.await_start();
  scene.signal_exec(SIGKILL);
  EXPECT_EQ(scene.written("asked"), "yes");
  EXPECT_LT(scene.gone_after_deadline(), milliseconds(0));
}

TEST(Supervision, KillOfTheWatchdogAloneEndsTheGroupByTheDeadline) {
  supervised_scene scene(stubborn, term);
  scene.await_start();
  scene.signal_watchdog(SIGKILL);
  EXPECT_LT(scene.gone_after_deadline(), latest);
  EXPECT_THAT(scene.wait(), Optional(125));
}

TEST(Supervision, KillOfBothAtOnceLeavesNobody) {
  for (const bool exec_is_first : {true, false}) {
    supervised_scene scene(stubborn, term);
    scene.await_start();
    if (exec_is_first) scene.signal_exec(SIGKILL);
    scene.signal_watchdog(SIGKILL);
    scene.signal_exec(SIGKILL);
    EXPECT_LT(scene.gone_after_deadline(), milliseconds(0));
  }
}

TEST(Supervision, KillOfTheWatchdogOfAStoppedExecLeavesNobody) {
  supervised_scene scene(stubborn, long_term);
  scene.await_start();
  scene.signal_exec(SIGSTOP);
  scene.signal_watchdog(SIGKILL);
  EXPECT_LT(scene.gone_after_deadline(), -long_term / 2);
  scene.signal_exec(SIGCONT);
  EXPECT_THAT(scene.wait(), Optional(125));
}

TEST(Supervision, WhoEndsAGroupInItsGraceReadsLittle) {
  constexpr milliseconds grace{1000};
  supervised_scene scene(stubborn, long_term, grace);
  scene.await_start();
  const auto before = scene.reads_of_exec();
  if (!before) GTEST_SKIP() << "this kernel does not count reads";
  scene.lose();
  ::usleep(static_cast<useconds_t>(std::chrono::microseconds(grace).count()) * 9 / 10);
  ASSERT_TRUE(scene.lives());
  // A dozen looks at a group of three; every 10 ms it would be ninety of them.
  EXPECT_LT(*scene.reads_of_exec() - *before, 90);
}

TEST(Supervision, AStoppedExecIsSurvivedByNobodyPastTheDeadline) {
  supervised_scene scene(stubborn, term);
  scene.await_start();
  scene.signal_exec(SIGSTOP);
  EXPECT_LT(scene.gone_after_deadline(), latest);
  scene.signal_exec(SIGCONT);
  EXPECT_THAT(scene.wait(), Optional(120));
}

TEST(Supervision, AStoppedWatchdogIsWoken) {
  supervised_scene scene("trap 'exit 5' USR1; echo $$ > $D/group; while :; do sleep 0.01; done",
                         long_term);
  const auto group = scene.group();
  for (int times = 0; times < 3; ++times) scene.signal_watchdog(SIGSTOP);
  kill(group, SIGUSR1);
  EXPECT_THAT(scene.wait(), Optional(5));
}

TEST(Supervision, AStoppedGroupIsEndedToo) {
  supervised_scene scene("echo $$ > $D/group; kill -STOP $$; sleep 60", term);
  EXPECT_LT(scene.gone_after_deadline(), milliseconds(0));
  EXPECT_THAT(scene.wait(), Optional(120));
}

TEST(Supervision, ALossThatIsToldEndsTheGroupAtOnceAndAsksBefore) {
  supervised_scene scene(obedient, long_term, milliseconds(5000));
  scene.await_start();
  scene.lose();
  EXPECT_EQ(scene.written("asked"), "yes");
  EXPECT_THAT(scene.wait(), Optional(120));
  EXPECT_FALSE(scene.lives());
}

TEST(Supervision, ALaterDeadlineKeepsTheCommandAtWork) {
  supervised_scene scene("echo $$ > $D/group; sleep 1.5; exit 4", milliseconds(1000));
  scene.await_start();
  const auto renewing = [&] {
    for (int times = 0; times < 8; ++times) {
      scene.renew();
      ::usleep(200'000);
    }
  };
  renewing();
  EXPECT_THAT(scene.wait(), Optional(4));
}

TEST(Supervision, WhatACommandLeavesInItsGroupIsGoneBeforeTheRunIsOver) {
  supervised_scene scene("(trap '' TERM; sleep 60) & echo $$ > $D/group; exit 6", long_term,
                         milliseconds(200));
  EXPECT_THAT(scene.wait(), Optional(6));
  EXPECT_FALSE(scene.lives());
}

TEST(Supervision, SignalsReachTheGroup) {
  supervised_scene scene(
      "trap 'echo yes > $D/hup' HUP; trap 'echo yes > $D/usr2' USR2; trap 'exit 9' INT; "
      "echo $$ > $D/group; while :; do sleep 0.01; done",
      long_term);
  scene.await_start();
  scene.signal_exec(SIGHUP);
  EXPECT_EQ(scene.written("hup"), "yes");
  scene.signal_exec(SIGUSR2);
  EXPECT_EQ(scene.written("usr2"), "yes");
  scene.signal_exec(SIGINT);
  EXPECT_THAT(scene.wait(), Optional(9));
}

TEST(Supervision, ATermThatIsPastStartsNothing) {
  supervised_scene scene("echo yes > $D/ran", milliseconds(0));
  EXPECT_THAT(scene.wait(), Optional(120));
  EXPECT_FALSE(scene.has_written("ran"));
}

}  // namespace
}  // namespace leasehold::tests
