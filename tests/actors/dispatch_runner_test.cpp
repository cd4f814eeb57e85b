// When cycles run: one after the other, whatever comes of them, and none after a stop.
#include "dispatch_rig.hpp"

namespace leasehold::tests {
namespace {

using actors::dispatch_cycle;
using protocol::dispatch_result;
using protocol::dispatch_status;
using protocol::duration;

class DispatchRunner : public dispatch_rig {
 protected:
  static constexpr actors::dispatch_profile profile{duration{1'000}, 32, 4, duration{5'000}};

  DispatchRunner() {
    controller->at_once = dispatch_result::termination_requested;
    make();
    actors::dispatch_runner_options options;
    options.supervisor = supervisor;
    options.profile = profile;
    options.timer = timer;
    options.clock = clock;
    options.strand = strand.port();
    options.on_cycle = [this](const dispatch_cycle& cycle) { cycles.push_back(cycle); };
    runner = std::make_unique<actors::dispatch_runner>(options);
  }

  /// Lets time pass and what is due run.
  void after(std::int64_t ms) {
    pass(ms);
    timer->fire_if_due(clock->now());
    strand.run();
  }
  void stop() {
    runner->stop([this](bool ended) { stops.push_back(ended); });
    strand.run();
  }
  [[nodiscard]] std::optional<std::int64_t> due_in() const {
    const auto at = timer->due_at();
    return at ? std::optional(at->ms - clock->now().ms) : std::nullopt;
  }

  std::unique_ptr<actors::dispatch_runner> runner;
  std::vector<dispatch_cycle> cycles;
  std::vector<bool> stops;
};

TEST_F(DispatchRunner, NothingIsArmedBeforeItIsStarted) {
  open("j");
  runner->hurry();
  EXPECT_FALSE(due_in());
  after(100'000);
  EXPECT_TRUE(controller->calls.empty());
}

TEST_F(DispatchRunner, TheFirstCycleIsDueAtOnceAndTheNextOneACadenceAfterItsEnd) {
  EXPECT_TRUE(runner->start());
  EXPECT_EQ(due_in(), 0);
  after(0);
  EXPECT_EQ(cycles.size(), 1U);
  EXPECT_EQ(due_in(), 1'000);
  after(999);
  EXPECT_EQ(cycles.size(), 1U);
  after(1);
  EXPECT_EQ(cycles.size(), 2U);
  after(1'001);
  EXPECT_EQ(cycles.size(), 3U);
}

TEST_F(DispatchRunner, ASecondStartDoesNothing) {
  EXPECT_TRUE(runner->start());
  EXPECT_FALSE(runner->start());
  after(0);
  EXPECT_FALSE(runner->start());
  EXPECT_EQ(due_in(), 1'000);
}

TEST_F(DispatchRunner, CyclesDoNotOverlapHoweverSlowTheyAre) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  ASSERT_EQ(controller->calls.size(), 1U);
  open("k");
  for (int i = 0; i < 9; ++i) {
    after(100);
    runner->hurry();
  }
  EXPECT_EQ(controller->calls.size(), 1U);
  EXPECT_EQ(store->queries.size(), 1U);
  answer(0, dispatch_result::termination_requested);
  EXPECT_EQ(cycles.size(), 1U);
  EXPECT_EQ(store->queries.size(), 1U) << "the next one waits for its timer";
  EXPECT_EQ(due_in(), 0) << "it was hurried";
  after(0);
  EXPECT_EQ(controller->calls.size(), 2U);
}

TEST_F(DispatchRunner, ErrorsAreToldAndStopNothing) {
  open("j");
  runner->start();
  for (const auto what : {actors::store_error::kind::busy, actors::store_error::kind::io,
                          actors::store_error::kind::full}) {
    kept->fail_next(what);
    after(1'000);
    ASSERT_TRUE(cycles.back().error);
    EXPECT_EQ(cycles.back().error->what, what);
    EXPECT_EQ(due_in(), 1'000);
  }
  after(1'000);
  EXPECT_FALSE(cycles.back().error);
  EXPECT_EQ(controller->calls.size(), 1U);
}

TEST_F(DispatchRunner, AControllerThatNeverAnswersHoldsACycleNoLongerThanItsClaim) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  after(500);
  EXPECT_TRUE(cycles.empty());
  after(500);
  ASSERT_EQ(cycles.size(), 1U);
  EXPECT_EQ(cycles[0].claimed, 1);
  EXPECT_EQ(cycles[0].reported, 0);
  EXPECT_EQ(due_in(), 1'000);
}

TEST_F(DispatchRunner, AHurryRunsACycleSoonAndManyRunOne) {
  runner->start();
  after(0);
  open("j");
  runner->hurry();
  EXPECT_EQ(due_in(), 0);
  const auto arms = timer->arms;
  for (int i = 0; i < 100; ++i) runner->hurry();
  EXPECT_EQ(timer->arms, arms) << "what is due already is not put off";
  after(0);
  EXPECT_EQ(cycles.size(), 2U);
  EXPECT_EQ(controller->calls.size(), 1U);
  EXPECT_EQ(due_in(), 1'000);
}

TEST_F(DispatchRunner, AStopWithoutACycleIsDoneAtOnceAndArmsNothing) {
  stop();
  EXPECT_EQ(stops, std::vector{true});
  runner->start();
  after(0);
  stop();
  EXPECT_EQ(stops, (std::vector{true, true}));
  EXPECT_FALSE(due_in());
  open("j");
  runner->hurry();
  after(100'000);
  EXPECT_TRUE(controller->calls.empty());
}

TEST_F(DispatchRunner, ATimerThatFiredBeforeTheStopRunsNoCycle) {
  open("j");
  runner->start();
  timer->fire_if_due(clock->now());
  stop();
  EXPECT_TRUE(controller->calls.empty());
  EXPECT_EQ(stops, std::vector{true});
}

TEST_F(DispatchRunner, AStopWaitsForTheRunningCycle) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  stop();
  EXPECT_TRUE(stops.empty());
  after(700);
  EXPECT_TRUE(stops.empty());
  answer(0, dispatch_result::termination_requested);
  EXPECT_EQ(stops, std::vector{true});
  EXPECT_EQ(at("j").status, dispatch_status::dispatched);
  EXPECT_FALSE(due_in()) << "the old cycle arms nothing";
  EXPECT_TRUE(runner->start());
}

TEST_F(DispatchRunner, AStopWaitsNoLongerThanItsBoundAndAStartIsRefusedUntilTheOldCycleHasEnded) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  // Its store is slow: the claim alone does not end the cycle.
  store->holds = true;
  controller->waiting.at(0)(dispatch_result::termination_requested);
  strand.run();
  stop();
  EXPECT_EQ(due_in(), 5'000);
  after(4'999);
  EXPECT_TRUE(stops.empty());
  after(1);
  EXPECT_EQ(stops, std::vector{false});
  EXPECT_FALSE(runner->start());
  store->answer();
  strand.run();
  EXPECT_EQ(cycles.size(), 1U);
  EXPECT_EQ(stops, std::vector{false}) << "it is answered once";
  EXPECT_FALSE(due_in()) << "the old cycle arms nothing";
  EXPECT_TRUE(runner->start());
  after(0);
  EXPECT_EQ(cycles.size(), 2U);
}

TEST_F(DispatchRunner, AStartAfterAControllerThatNeverAnsweredWorksOnceItsClaimIsOver) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  stop();
  pass(999);
  EXPECT_FALSE(runner->start());
  strand.run();
  EXPECT_FALSE(runner->start());
  pass(1);
  EXPECT_FALSE(runner->start()) << "the old cycle ends because of this";
  strand.run();
  EXPECT_TRUE(runner->start());
}

TEST_F(DispatchRunner, EveryStopIsAnswered) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  stop();
  stop();
  answer(0, dispatch_result::termination_requested);
  EXPECT_EQ(stops, (std::vector{true, true}));
}

TEST_F(DispatchRunner, ItsEndDisarms) {
  runner->start();
  after(0);
  runner.reset();
  EXPECT_FALSE(due_in());
}

TEST_F(DispatchRunner, ItsEndDuringACycleIsSafe) {
  controller->at_once.reset();
  open("j");
  runner->start();
  after(0);
  runner.reset();
  answer(0, dispatch_result::termination_requested);
  EXPECT_TRUE(cycles.empty());
  EXPECT_FALSE(due_in());
}

TEST(DispatchProfile, EachHasBoundsThatTheSupervisorTakes) {
  for (const auto* name : {"edge", "standalone", "cluster"}) {
    const auto found = actors::dispatch_profile_of(name);
    ASSERT_TRUE(found) << name;
    EXPECT_GE(found->page, 1U);
    EXPECT_LE(found->page, 64U);
    EXPECT_GE(found->cycle_pages, 1U);
    EXPECT_LE(found->cycle_pages, 64U);
    EXPECT_GT(found->cadence, duration{0});
    EXPECT_GT(found->stop_wait, duration{0});
  }
  EXPECT_EQ(actors::dispatch_profile_of("edge")->page, 1U) << "serial";
  for (const auto* name : {"", "Edge", "edges", "default"}) {
    EXPECT_FALSE(actors::dispatch_profile_of(name)) << name;
  }
}

}  // namespace
}  // namespace leasehold::tests
