// What is signalled, how often, and what never is: the targets count for themselves.
#include "src/controllers/process_controller.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "recycled_number.hpp"
#include "src/controllers/process_stat.hpp"
#include "support/eventually.hpp"
#include "target_process.hpp"

namespace leasehold::tests {
namespace {

using controllers::group_signal;
using controllers::process_controller;
using controllers::process_options;
using protocol::dispatch_result;
using protocol::duration;
using protocol::process_handle;
using namespace std::chrono_literals;

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

process_options quick() {
  process_options how;
  how.boot_id = this_boot();
  how.boottime_ms = steady_ms;
  how.term_grace = duration{200};
  how.kill_wait = duration{5'000};
  how.claim = duration{20'000};
  return how;
}

std::shared_ptr<process_controller> started(process_options how = quick()) {
  auto made = process_controller::start(std::move(how));
  auto* ours = std::get_if<std::shared_ptr<process_controller>>(&made);
  EXPECT_NE(ours, nullptr);
  return ours == nullptr ? nullptr : std::move(*ours);
}

std::future<dispatch_result> ask(process_controller& whom,
                                 const std::optional<process_handle>& about) {
  auto said = std::make_shared<std::promise<dispatch_result>>();
  auto out = said->get_future();
  actors::dispatch_claimed claim;
  claim.process = about;
  whom.act(claim, [said](dispatch_result what) { said->set_value(what); });
  return out;
}

/// What it says; none when it says nothing.
dispatch_result answer(std::future<dispatch_result> from) {
  if (from.wait_for(20s) != std::future_status::ready) return dispatch_result::none;
  try {
    return from.get();
  } catch (const std::future_error&) {
    return dispatch_result::none;  // dropped
  }
}

dispatch_result act(const std::optional<process_handle>& about, process_options how = quick()) {
  const auto controller = started(std::move(how));
  return answer(ask(*controller, about));
}

class ProcessController : public testing::TestWithParam<group_signal> {
 protected:
  static process_options how() {
    auto out = quick();
    out.signal = GetParam();
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, ProcessController,
                         testing::Values(group_signal::at_once, group_signal::by_member),
                         [](const auto& one) {
                           return one.param == group_signal::at_once ? "AtOnce" : "ByMember";
                         });

TEST_P(ProcessController, AProcessThatObeysGetsOneTermAndIsSeenToHaveEnded) {
  target_process target;
  EXPECT_EQ(act(target.handle(), how()), dispatch_result::already_exited);
  EXPECT_EQ(target.told("TERM"), 1);
  EXPECT_EQ(target.signals(), 1);
  const int status = target.wait();
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

TEST_P(ProcessController, AProcessThatIgnoresTermIsKilledAfterItsGrace) {
  target_process target({"ignore"});
  const auto begun = steady_ms();
  EXPECT_EQ(act(target.handle(), how()), dispatch_result::already_exited);
  EXPECT_GE(steady_ms() - begun, 200);
  EXPECT_EQ(target.told("TERM"), 1);
  EXPECT_EQ(target.signals(), 1);
  const int status = target.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_P(ProcessController, TheWholeGroupIsToldAndEnds) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"child"}, {"child", "ignore"}}) {
    target_process target(words);
    const auto child = target.child();
    ASSERT_GT(child, 0);
    EXPECT_EQ(act(target.handle(), how()), dispatch_result::already_exited);
    EXPECT_EQ(target.told("TERM"), 2) << "one each";
    EXPECT_EQ(target.signals(), 2);
    const auto left = controllers::stat_of(child);
    EXPECT_FALSE(left && left->is_living());
  }
}

TEST_P(ProcessController, AGroupThatChangesBetweenTermAndKillIsNotKilled) {
  target_process target({"ignore"});
  auto slow = how();
  slow.term_grace = duration{600};
  const auto controller = started(slow);
  auto said = ask(*controller, target.handle());
  ASSERT_TRUE(eventually([&] { return target.told("TERM") == 1; }));
  target.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return target.told("moved") == 1; }));
  EXPECT_EQ(answer(std::move(said)), dispatch_result::pid_mismatch);
  EXPECT_TRUE(target.lives());
  EXPECT_EQ(target.signals(), 1);
}

// ---- zero signals

void expect_untouched(const target_process& target) {
  EXPECT_TRUE(target.lives());
  EXPECT_EQ(target.signals(), 0);
}

TEST(ProcessProof, AnotherBootIdMeansThatTheProcessHasEndedWhateverHasItsNumber) {
  target_process target;
  auto handle = target.handle();
  handle.boot_id = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(act(handle), dispatch_result::already_exited);
  expect_untouched(target);
}

TEST(ProcessProof, OtherStartTicksAreAnotherProcess) {
  target_process target;
  for (const std::int64_t off : {-1, 1}) {
    auto handle = target.handle();
    handle.start_ticks += off;
    EXPECT_EQ(act(handle), dispatch_result::identity_mismatch);
  }
  expect_untouched(target);
}

TEST(ProcessProof, ARecycledNumberIsAnotherProcess) {
  if (const auto why = why_not_recycled("ProcessProof.ARecycledNumberIsAnotherProcess"); why) {
    if (*why == recycling::done_elsewhere) return;
    if (*why == recycling::not_wanted) GTEST_SKIP() << recycling_is_skipped;
    FAIL() << recycling_is_impossible;
  }
  recycled_number again;
  EXPECT_EQ(again.former.pid, again.target->pid());
  EXPECT_EQ(act(again.former), dispatch_result::identity_mismatch);
  expect_untouched(*again.target);
}

TEST(ProcessProof, AProcessThatLeftItsGroupIsNotSignalled) {
  target_process target;
  const auto handle = target.handle();
  target.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return target.told("moved") == 1; }));
  EXPECT_EQ(act(handle), dispatch_result::pid_mismatch);
  expect_untouched(target);
}

TEST(ProcessProof, AGroupWhoseLeaderIsGoneIsNotSignalled) {
  target_process target({"child"});
  const auto handle = target.handle();
  const auto child = target.child();
  target.signal(SIGUSR2);
  target.wait();
  EXPECT_EQ(act(handle), dispatch_result::pid_mismatch);
  const auto left = controllers::stat_of(child);
  EXPECT_TRUE(left && left->is_living());
  EXPECT_EQ(target.signals(), 0);
}

TEST(ProcessProof, ALeaderThatIsNotWaitedForStillLeadsItsGroup) {
  target_process target({"child", "ignore"});
  const auto handle = target.handle();
  target.signal(SIGUSR2);
  ASSERT_TRUE(target.ends_unreaped());
  EXPECT_EQ(act(handle), dispatch_result::already_exited);
  const auto left = controllers::stat_of(target.child());
  EXPECT_FALSE(left && left->is_living());
}

TEST(ProcessProof, AProcessThatHasEndedHasExitedWhetherItWasWaitedForOrNot) {
  target_process target;
  const auto handle = target.handle();
  target.signal(SIGKILL);
  ASSERT_TRUE(target.ends_unreaped());
  EXPECT_EQ(act(handle), dispatch_result::already_exited);
  target.wait();
  EXPECT_EQ(act(handle), dispatch_result::already_exited);
  EXPECT_EQ(target.signals(), 0);
}

TEST(ProcessProof, NoHandleAMalformedOneAndAnotherPlatformAreWordsOfTheirOwn) {
  target_process target;
  EXPECT_EQ(act(std::nullopt), dispatch_result::handle_missing);
  const auto changed = [&](auto change) {
    auto handle = target.handle();
    change(handle);
    return act(handle);
  };
  EXPECT_EQ(changed([](auto& h) { h.platform.clear(); }), dispatch_result::invalid);
  EXPECT_EQ(changed([](auto& h) { h.platform = "plan9"; }), dispatch_result::unsupported);
  EXPECT_EQ(changed([](auto& h) { h.process_group += 1; }), dispatch_result::invalid);
  EXPECT_EQ(changed([](auto& h) { h.pid = h.process_group = 1; }), dispatch_result::invalid);
  EXPECT_EQ(changed([](auto& h) { h.pid = h.process_group = 0; }), dispatch_result::invalid);
  EXPECT_EQ(changed([](auto& h) { h.pid = h.process_group = -h.pid; }), dispatch_result::invalid);
  EXPECT_EQ(changed([](auto& h) { h.start_ticks = 0; }), dispatch_result::invalid);
  EXPECT_EQ(changed([](auto& h) { h.boot_id.clear(); }), dispatch_result::invalid);
  expect_untouched(target);
}

TEST(ProcessProof, TheNumberOfAThreadIsNotThatOfAProcess) {
  std::promise<std::int64_t> number;
  std::promise<void> over;
  std::thread other([&] {
    number.set_value(gettid());
    over.get_future().wait();
  });
  const auto pid = number.get_future().get();
  EXPECT_EQ(act(process_handle{"linux", pid, this_boot(), 1, pid}), dispatch_result::pid_mismatch);
  over.set_value();
  other.join();
}

TEST(ProcessProof, TheDispatcherItselfIsNotSignalled) {
  const auto self = controllers::stat_of(getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(act(process_handle{"linux", self->pid, this_boot(), self->start_ticks, self->pid}),
            dispatch_result::pid_mismatch);
  const auto group = std::int64_t{getpgrp()};
  const auto leader = controllers::stat_of(group);
  if (leader && group > 1) {
    EXPECT_EQ(act(process_handle{"linux", group, this_boot(), leader->start_ticks, group}),
              dispatch_result::pid_mismatch);
  }
}

TEST(ProcessProof, NoNameOfAProgramHidesWhatItIs) {
  for (const auto* name : {"a b", "a) S 1 1 1", ") R 1 (", "((((", "))))", "x\n7 (y) R 1"}) {
    target_process target({"named", name});
    EXPECT_EQ(act(target.handle()), dispatch_result::already_exited) << name;
    EXPECT_EQ(target.told("TERM"), 1) << name;
  }
}

// ---- bounds

TEST(ProcessBounds, TermAndKillTogetherAreShorterThanAClaim) {
  const auto starts = [](std::int64_t grace, std::int64_t wait, std::int64_t claim) {
    auto how = quick();
    how.term_grace = duration{grace};
    how.kill_wait = duration{wait};
    how.claim = duration{claim};
    return std::holds_alternative<std::shared_ptr<process_controller>>(
        process_controller::start(how));
  };
  EXPECT_TRUE(starts(600, 399, 1'000));
  EXPECT_FALSE(starts(600, 400, 1'000));
  EXPECT_FALSE(starts(600, 401, 1'000));
  EXPECT_TRUE(starts(0, 0, 1));
  EXPECT_FALSE(starts(0, 0, 0));
  EXPECT_FALSE(starts(-1, 1, 1'000));
  EXPECT_FALSE(starts(1, -1, 1'000));
  EXPECT_TRUE(starts(1, 1, protocol::longest_claim.ms));
  EXPECT_FALSE(starts(1, 1, protocol::longest_claim.ms + 1));
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(starts(most, most, most));
  auto nowhere = quick();
  nowhere.boot_id.clear();
  EXPECT_TRUE(std::holds_alternative<std::string>(process_controller::start(nowhere)));
}

TEST(ProcessBounds, ManyAreEndedSideBySide) {
  const auto controller = started();
  std::vector<target_process> targets;
  for (int i = 0; i < 16; ++i) targets.emplace_back(std::vector<std::string>{"ignore"});
  std::vector<std::future<dispatch_result>> said;
  const auto begun = steady_ms();
  for (const auto& each : targets) said.push_back(ask(*controller, each.handle()));
  EXPECT_LT(steady_ms() - begun, 150) << "asking does not wait";
  for (auto& each : said) EXPECT_EQ(answer(std::move(each)), dispatch_result::already_exited);
  EXPECT_LT(steady_ms() - begun, 16 * 200);
  for (const auto& each : targets) EXPECT_EQ(each.told("TERM"), 1);
}

TEST(ProcessBounds, NoSignalIsSentOnceTheClaimIsOver) {
  target_process target({"ignore"});
  std::atomic<std::int64_t> later_ms = 0;
  auto how = quick();
  how.term_grace = duration{500};
  how.boottime_ms = [&] { return steady_ms() + later_ms; };
  const auto controller = started(how);
  auto said = ask(*controller, target.handle());
  ASSERT_TRUE(eventually([&] { return target.told("TERM") == 1; }));
  later_ms = how.claim.ms;  // as if the machine had slept
  EXPECT_EQ(answer(std::move(said)), dispatch_result::none);
  EXPECT_TRUE(target.lives());
  EXPECT_EQ(target.signals(), 1);
}

TEST(ProcessBounds, ItsEndAnswersNobodyAndSignalsNobody) {
  target_process target({"ignore"});
  auto how = quick();
  how.term_grace = duration{15'000};
  auto controller = started(how);
  auto said = ask(*controller, target.handle());
  ASSERT_TRUE(eventually([&] { return target.told("TERM") == 1; }));
  const auto begun = steady_ms();
  controller.reset();
  EXPECT_LT(steady_ms() - begun, 5'000);
  EXPECT_EQ(answer(std::move(said)), dispatch_result::none);
  EXPECT_TRUE(target.lives());
}

// ---- /proc/PID/stat

TEST(ProcessStat, FieldsAreCountedFromTheLastParenthesis) {
  const std::string rest = " S 4 42 6 7 8 9 10 11 12 13 14 15 16 17 18 19 3 21 4711 23 24\n";
  const controllers::process_stat whole{42, 'S', 42, 3, 4711};
  for (const auto* name : {"sh", "a b", "a) R 1 2 (b", ")", "(", "", ") S 1", "\n"}) {
    EXPECT_EQ(controllers::read_process_stat("42 (" + std::string(name) + ")" + rest), whole)
        << name;
  }
}

TEST(ProcessStat, WhatIsCutOrNoNumberIsNotRead) {
  const std::string whole = "42 (sh) S 4 42 6 7 8 9 10 11 12 13 14 15 16 17 18 19 3 21 4711 23";
  ASSERT_TRUE(controllers::read_process_stat(whole));
  for (std::size_t size = 0; size < whole.find(" 4711"); ++size) {
    EXPECT_FALSE(controllers::read_process_stat(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(controllers::read_process_stat(
      "x (sh) S 4 42 6 7 8 9 10 11 12 13 14 15 16 17 18 19 3 21 4711 "));
  EXPECT_FALSE(controllers::read_process_stat(
      "42 (sh) S 4 x 6 7 8 9 10 11 12 13 14 15 16 17 18 19 3 21 4711 "));
  EXPECT_FALSE(controllers::read_process_stat(
      "42 (sh) S 4 42 6 7 8 9 10 11 12 13 14 15 16 17 18 19 3 21 47x1 "));
}

TEST(ProcessStat, AZombieIsAtWorkAsLongAsOtherThreadsOfItAre) {
  EXPECT_TRUE((controllers::process_stat{1, 'Z', 1, 2, 1}.is_living()));
  EXPECT_FALSE((controllers::process_stat{1, 'Z', 1, 1, 1}.is_living()));
  EXPECT_FALSE((controllers::process_stat{1, 'X', 1, 0, 1}.is_living()));
  EXPECT_TRUE((controllers::process_stat{1, 'T', 1, 1, 1}.is_living()));
}

}  // namespace
}  // namespace leasehold::tests
