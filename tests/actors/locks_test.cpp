// Locks through the actors: who gets one, who waits, and what the holder is told.
#include <gtest/gtest.h>

#include "support/lock_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::decision;
using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

reason reason_of(const lock_caller::pending& said) {
  return said->has_value() ? (*said)->reason : reason::none;
}

TEST(Locks, AFreeLockIsGrantedAndTokensRise) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  lock_caller b(rig, "b");
  const auto first = a.ask("x");
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->reason, reason::acquired);
  EXPECT_TRUE((*first)->created);
  EXPECT_EQ((*first)->granted.value, 1);
  ASSERT_TRUE((*first)->lease && (*first)->lease->lock);
  EXPECT_EQ((*first)->lease->lock->name.target, "x");
  EXPECT_EQ((*first)->lease->state->job.value, "t/prog/opaque:x//");

  EXPECT_EQ(reason_of(b.ask("x")), reason::already_held);
  EXPECT_EQ(b.release("x", 1).reason, reason::ownership_conflict);
  EXPECT_EQ(a.release("x", 1).reason, reason::released);
  EXPECT_EQ((*b.ask("x"))->granted.value, 2);
  EXPECT_EQ(a.renew("x", 1, 1).reason, reason::stale_generation);
}

TEST(Locks, TheSameRequestIsAnsweredWithTheSameGrant) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  EXPECT_EQ((*a.ask("x", 0, "r1"))->granted.value, 1);
  // Also where it would wait: it has what it asks for.
  const auto again = a.ask("x", 60'000, "r1");
  EXPECT_EQ(reason_of(again), reason::duplicate_request);
  EXPECT_EQ((*again)->granted.value, 1);
  EXPECT_FALSE((*again)->created);
  a.release("x", 1);
  EXPECT_EQ((*a.ask("x", 0, "r1"))->granted.value, 1);
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::released);
}

TEST(Locks, ARequestIsKnownForTenMinutesHoweverManyCameSince) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  for (int i = 1; i <= 100; ++i) {
    EXPECT_EQ((*a.ask("x", 0, "r" + std::to_string(i)))->granted.value, i);
    a.release("x", i);
  }
  rig.advance(599'999);
  const auto again = a.ask("x", 0, "r1");
  EXPECT_EQ(reason_of(again), reason::duplicate_request);
  EXPECT_EQ((*again)->granted.value, 1);
  EXPECT_EQ(reason_of(lock_caller(rig, "b").ask("x", 0, "r2")), reason::request_reused);
  EXPECT_EQ(job(rig, lock_id("x"))->state->gen.value, 100);
  rig.advance(1);
  EXPECT_EQ(reason_of(a.ask("x", 0, "r1")), reason::acquired);
}

/// Takes the lock and gives it back `times` times, each under a request of its own.
void take_and_give(coordinator_rig& rig, lock_caller& caller, int times) {
  for (int i = 1; i <= times; ++i) {
    EXPECT_EQ((*caller.ask("x", 0, "r" + std::to_string(i)))->granted.value, i);
    EXPECT_EQ(caller.release("x", i, "g" + std::to_string(i)).reason, reason::released);
    rig.advance(1);
  }
}

TEST(Locks, AFormerRequestIsKnownAfterARestartHoweverManyCameSince) {
  const auto store = std::make_shared<memory_store>();
  {
    coordinator_rig rig(store);
    lock_caller a(rig, "a");
    take_and_give(rig, a, 100);
  }
  coordinator_rig rig(store);
  rig.advance(100);
  lock_caller a(rig, "a");
  for (const int i : {1, 50, 68, 69, 100}) {
    const auto again = a.ask("x", 60'000, "r" + std::to_string(i));
    EXPECT_EQ(reason_of(again), reason::duplicate_request) << i;
    EXPECT_EQ((*again)->granted.value, i);
    EXPECT_EQ(a.release("x", i, "g" + std::to_string(i)).reason, reason::duplicate_request) << i;
  }
  EXPECT_EQ(reason_of(lock_caller(rig, "b").ask("x", 0, "r2")), reason::request_reused);
  EXPECT_EQ(a.release("x", 3, "g2").reason, reason::request_reused);
  EXPECT_EQ(job(rig, lock_id("x"))->state->gen.value, 100);
  EXPECT_EQ((*a.ask("x", 0, "r101"))->granted.value, 101);
  EXPECT_EQ(a.release("x", 101, "g101").reason, reason::released);
  // What is forgotten since is remembered beside what the log had.
  EXPECT_EQ(reason_of(a.ask("x", 0, "r68")), reason::duplicate_request);
  EXPECT_EQ(reason_of(a.ask("x", 0, "r69")), reason::duplicate_request);
  rig.advance(600'000);
  EXPECT_EQ(reason_of(a.ask("x", 0, "r1")), reason::acquired);
}

TEST(Locks, ARequestThatTheLogCannotBeAskedForIsRefusedAndAskedForAgain) {
  const auto store = std::make_shared<memory_store>();
  {
    coordinator_rig rig(store);
    lock_caller a(rig, "a");
    take_and_give(rig, a, 40);
  }
  coordinator_rig rig(store);
  lock_caller a(rig, "a");
  store->fail_requests();
  EXPECT_EQ(reason_of(a.ask("x", 0, "r1")), reason::store_unavailable);
  EXPECT_EQ(reason_of(a.ask("x", 0, "r1")), reason::duplicate_request);
}

TEST(Locks, TheLogIsNotAskedForALockThatIsYoungerThanTheStart) {
  const auto store = std::make_shared<memory_store>();
  coordinator_rig rig(store);
  lock_caller a(rig, "a");
  store->fail_requests();
  take_and_give(rig, a, 100);
}

TEST(Locks, ARefusedAcquireChangesNothingOfTheHolders) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  auto mine = request_of("a", "x");
  mine.spec.policy.lease_duration = {10'000};
  mine.spec.execution_id = "mine";
  a.ask(mine);
  auto theirs = request_of("b", "x");
  theirs.spec.policy.lease_duration = {99'000};
  theirs.spec.execution_id = "theirs";
  EXPECT_EQ(reason_of(a.ask(theirs)), reason::already_held);
  EXPECT_EQ(a.renew("x", 1, 1).reason, reason::renewed);
  const auto seen = job(rig, lock_id("x"));
  EXPECT_EQ(seen->state->expires_at, rig.clock->now() + protocol::duration{10'000});
  EXPECT_EQ(seen->lock->execution_id, "mine");
  EXPECT_EQ(seen->lock->policy.lease_duration.ms, 10'000);
}

TEST(Locks, WaitersAreGrantedInTheOrderInWhichTheyCame) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  std::vector<lock_caller> callers;
  std::vector<lock_caller::pending> waits;
  for (int i = 0; i < 5; ++i) {
    callers.emplace_back(rig, "w" + std::to_string(i));
    waits.push_back(callers.back().ask("x", 60'000));
    EXPECT_FALSE(waits.back()->has_value());
  }
  EXPECT_EQ(rig.counters->lock_waiters.value(), 5);
  holder.release("x", 1);
  for (int i = 0; i < 5; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_TRUE(waits[at]->has_value()) << i;
    EXPECT_EQ((*waits[at])->granted.value, i + 2);
    for (auto later = at + 1; later < waits.size(); ++later) {
      EXPECT_FALSE(waits[later]->has_value());
    }
    callers[at].release("x", i + 2);
  }
  EXPECT_EQ(rig.counters->lock_waiters.value(), 0);
}

TEST(Locks, AWaiterThatIsGoneIsPassedOver) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  auto gone = std::make_shared<std::atomic<bool>>(false);
  auto leaves = request_of("leaves", "x");
  leaves.wait = {60'000};
  leaves.gone = [gone] { return gone->load(); };
  lock_caller caller(rig, "leaves");
  const auto left = caller.ask(leaves);
  lock_caller stays(rig, "stays");
  const auto waits = stays.ask("x", 60'000);
  *gone = true;
  holder.release("x", 1);
  EXPECT_FALSE(left->has_value());
  ASSERT_TRUE(waits->has_value());
  EXPECT_EQ((*waits)->granted.value, 2);
}

TEST(Locks, AWaitEndsAtItsDeadlineAndNotBefore) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  auto held = request_of("h", "x");
  held.spec.policy.lease_duration = {60'000};
  holder.ask(held);
  lock_caller waiter(rig, "w");
  const auto wait = waiter.ask("x", 5000);
  rig.advance(4999);
  EXPECT_FALSE(wait->has_value());
  rig.advance(1);
  EXPECT_EQ(reason_of(wait), reason::wait_deadline_passed);
  holder.release("x", 1);
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::released);
}

TEST(Locks, AWaitIsNoLongerThanTheLongest) {
  actors::actor_options options;
  options.longest_wait = {1000};
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  lock_caller holder(rig, "h");
  holder.ask("x");
  lock_caller waiter(rig, "w");
  const auto wait = waiter.ask("x", 5000);
  rig.advance(1000);
  EXPECT_EQ(reason_of(wait), reason::wait_deadline_passed);
}

TEST(Locks, TheNextInLineHasTheLockAtItsExpiry) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  auto held = request_of("h", "x");
  held.spec.policy.lease_duration = {3000};
  holder.ask(held);
  lock_caller waiter(rig, "w");
  const auto wait = waiter.ask("x", 60'000);
  rig.advance(2999);
  EXPECT_FALSE(wait->has_value());
  rig.advance(1);
  ASSERT_TRUE(wait->has_value());
  EXPECT_EQ((*wait)->granted.value, 2);
  EXPECT_EQ(holder.renew("x", 1, 1).reason, reason::stale_generation);
}

TEST(Locks, NobodyIsGrantedWithinTheLockDelayAndTheLineGoesFirst) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  auto held = request_of("h", "x");
  held.spec.policy.lease_duration = {3000};
  held.spec.policy.lock_delay = {2000};
  holder.ask(held);
  lock_caller waiter(rig, "w");
  const auto wait = waiter.ask("x", 60'000);
  rig.advance(3000);
  lock_caller other(rig, "o");
  EXPECT_EQ(reason_of(other.ask("x")), reason::retry_not_due);
  rig.advance(1999);
  EXPECT_FALSE(wait->has_value());
  rig.advance(1);
  ASSERT_TRUE(wait->has_value());
  EXPECT_EQ((*wait)->granted.value, 2);
}

TEST(Locks, AFrameMayAskForALockDelayOfAnHourAtMost) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  for (const std::int64_t ms : {3'599'999, 3'600'000, 3'600'001}) {
    const auto name = std::to_string(ms);
    auto frame = acquire_frame(worker, name, name);
    frame.lock_delay = {ms};
    const auto id = worker.say(std::move(frame));
    rig.settle();
    const auto verdict = worker.session->verdict_of(id);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->reason, ms <= 3'600'000 ? reason::acquired : reason::invalid_policy) << ms;
  }
}

TEST(Locks, ALineThatIsFullTakesNobodyMore) {
  actors::actor_options options;
  options.waiters_per_lock = 2;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  lock_caller a(rig, "a");
  a.ask("x");
  auto gone = std::make_shared<std::atomic<bool>>(false);
  auto leaves = request_of("leaves", "x");
  leaves.wait = {60'000};
  leaves.gone = [gone] { return gone->load(); };
  a.ask(leaves);
  const auto second = a.ask("x", 60'000);
  EXPECT_EQ(reason_of(a.ask("x", 60'000)), reason::rate_limited);
  *gone = true;
  EXPECT_EQ(reason_of(a.ask("x", 60'000)), reason::rate_limited)
      << "it was looked through just now";
  rig.advance(1000);
  const auto third = a.ask("x", 60'000);
  EXPECT_FALSE(third->has_value());
  EXPECT_EQ(rig.counters->lock_waiters.value(), 2);
}

TEST(Locks, ARequestThatTookEffectIsAnsweredAtOnceWhoeverWaits) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  a.ask("x", 60'000, "r1");
  lock_caller waiter(rig, "w");
  const auto waits = waiter.ask("x", 60'000);
  const auto again = a.ask("x", 60'000, "r1");
  ASSERT_TRUE(again->has_value());
  EXPECT_EQ(reason_of(again), reason::duplicate_request);
  EXPECT_EQ((*again)->granted.value, 1);
  EXPECT_FALSE(waits->has_value());
}

TEST(Locks, ARepeatThatWaitsIsAnsweredWithTheGrantOfTheFirst) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  lock_caller a(rig, "a");
  const auto first = a.ask("x", 60'000, "r1");
  const auto behind = lock_caller(rig, "b").ask("x", 60'000);
  const auto repeat = a.ask("x", 60'000, "r1");
  const auto another = lock_caller(rig, "c").ask("x", 60'000, "r1");
  EXPECT_FALSE(repeat->has_value());
  holder.release("x", 1);
  EXPECT_EQ(reason_of(first), reason::acquired);
  ASSERT_TRUE(repeat->has_value());
  EXPECT_EQ(reason_of(repeat), reason::duplicate_request);
  EXPECT_EQ((*repeat)->granted.value, 2);
  EXPECT_EQ(reason_of(another), reason::request_reused);
  EXPECT_FALSE(behind->has_value());
  EXPECT_EQ(rig.counters->lock_waiters.value(), 1);
}

TEST(Locks, WhoeverDoesNotWaitDoesNotOvertakeThoseWhoDo) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  const auto waits = lock_caller(rig, "w").ask("x", 60'000);
  // The release is decided and not yet durable when the one who does not wait comes.
  rig.store->hold();
  const auto released = holder.begin_release("x", 1);
  const auto passer = lock_caller(rig, "p").ask("x");
  rig.store->resume();
  rig.settle();
  EXPECT_EQ(reason_of(released), reason::released);
  EXPECT_EQ(reason_of(waits), reason::acquired);
  EXPECT_EQ(reason_of(passer), reason::already_held);
}

TEST(Locks, WhoeverDoesNotWaitDoesNotOvertakeThoseWhoDoAtTheDeadline) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  auto held = request_of("h", "x");
  held.spec.policy.lease_duration = {1000};
  holder.ask(held);
  const auto waits = lock_caller(rig, "w").ask("x", 60'000);
  rig.clock->set(rig.clock->now() + protocol::duration{1000});
  const auto passer = lock_caller(rig, "p").ask("x");
  rig.advance(1);
  EXPECT_EQ(reason_of(waits), reason::acquired);
  EXPECT_EQ(reason_of(passer), reason::already_held);
}

TEST(Locks, WhenTheLastOfALineIsGoneWhoeverDoesNotWaitMayHaveTheLock) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  auto waits = request_of("w", "x");
  waits.wait = {60'000};
  const auto gone = std::make_shared<bool>(false);
  waits.gone = [gone] { return *gone; };
  const auto waiter = lock_caller(rig, "w").ask(waits);
  rig.store->hold();
  holder.begin_release("x", 1);
  const auto passer = lock_caller(rig, "p").ask("x");
  *gone = true;
  rig.store->resume();
  rig.settle();
  EXPECT_EQ(reason_of(passer), reason::acquired);
  EXPECT_FALSE(waiter->has_value());
}

TEST(Locks, AStoreThatTakesNoWriteEndsNoLine) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  lock_caller waiter(rig, "w");
  const auto first = waiter.ask("x", 60'000);
  const auto second = waiter.ask("x", 60'000);
  rig.store->fail_commit(1);
  rig.store->fail_commit(2);
  EXPECT_EQ(holder.release("x", 1).reason, reason::store_unavailable);
  EXPECT_FALSE(first->has_value());
  rig.advance(1000);
  EXPECT_EQ(holder.release("x", 1).reason, reason::store_unavailable);
  EXPECT_FALSE(first->has_value());
  rig.advance(1000);
  EXPECT_EQ(holder.release("x", 1).reason, reason::released);
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->granted.value, 2);
  EXPECT_FALSE(second->has_value());
}

TEST(Locks, APrincipalHoldsAsManyAsItMay) {
  const auto store = std::make_shared<memory_store>();
  const auto ask_as = [](coordinator_rig& rig, const std::string& who, const std::string& target,
                         std::int64_t wait_ms = 0) {
    auto asked = request_of(who, target);
    asked.most_locks = 2;
    asked.wait = {wait_ms};
    asked.request = protocol::request_id{who + target};
    return lock_caller(rig, who).ask(asked);
  };
  {
    coordinator_rig rig(store);
    EXPECT_EQ(reason_of(ask_as(rig, "a", "x")), reason::acquired);
    EXPECT_EQ(reason_of(ask_as(rig, "a", "y")), reason::acquired);
    EXPECT_EQ(reason_of(ask_as(rig, "a", "z")), reason::rate_limited);
    EXPECT_EQ(reason_of(ask_as(rig, "a", "x")), reason::duplicate_request) << "it is no third";
    EXPECT_EQ(reason_of(ask_as(rig, "b", "z")), reason::acquired);
    lock_caller(rig, "b").release("z", 1);
    EXPECT_EQ(reason_of(ask_as(rig, "b", "x")), reason::already_held);
    EXPECT_EQ(reason_of(ask_as(rig, "b", "v")), reason::acquired) << "a refusal holds nothing";
  }
  // The same after a start, and for whoever waits: the next in line is asked.
  coordinator_rig rig(store);
  EXPECT_EQ(reason_of(ask_as(rig, "a", "z")), reason::rate_limited);
  const auto waits = ask_as(rig, "a", "v", 60'000);
  const auto next = ask_as(rig, "c", "v", 60'000);
  lock_caller(rig, "b").release("v", 1);
  EXPECT_EQ(reason_of(waits), reason::rate_limited);
  EXPECT_EQ(reason_of(next), reason::acquired);
  lock_caller(rig, "a").release("x", 1);
  EXPECT_EQ(reason_of(ask_as(rig, "a", "z")), reason::acquired);
  rig.advance(60'000);
  EXPECT_EQ(reason_of(ask_as(rig, "a", "w")), reason::acquired) << "those have expired";
}

TEST(Locks, AFrameSaysWhichTokenItsRequestWasGranted) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  auto frame = acquire_frame(worker, "x", "r1");
  frame.ttl = {1000};
  const auto first = worker.say(frame);
  rig.settle();
  EXPECT_EQ(worker.session->verdict_of(first)->grant, (protocol::past_grant{{1}, true}));
  rig.advance(1000);
  lock_caller other(rig, "o");
  EXPECT_EQ((*other.ask("x"))->granted.value, 2);
  const auto again = worker.say(frame);
  rig.settle();
  const auto said = worker.session->verdict_of(again);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, reason::duplicate_request);
  EXPECT_EQ(said->grant, (protocol::past_grant{{1}, false})) << "the live one is another's";
}

TEST(Locks, ATenantHasAsManyAsItMay) {
  actors::actor_options options;
  options.leases_per_tenant = 1;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  lock_caller a(rig, "a");
  EXPECT_EQ(reason_of(a.ask("x")), reason::acquired);
  EXPECT_EQ(reason_of(a.ask("y")), reason::rate_limited);
  a.release("x", 1);
  // A lock that was there is no new one.
  EXPECT_EQ(reason_of(a.ask("x")), reason::acquired);
}

TEST(Locks, AStreamIsToldThatItWaitsAndThenThatItHasTheLock) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  rig_worker worker(rig, "w");
  const auto id = worker.say(acquire_frame(worker, "x", "r1", 60'000));
  rig.settle();
  auto verdict = worker.session->verdict_of(id);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->decision, decision::deferred);
  EXPECT_EQ(verdict->reason, reason::awaiting_grant);
  EXPECT_EQ(verdict->outcome, protocol::reason_class::pending);
  holder.release("x", 1);
  verdict = worker.session->verdict_of(id);
  EXPECT_EQ(verdict->reason, reason::acquired);
  EXPECT_EQ(verdict->standing.gen.value, 2);
  const auto granted = worker.session->all<protocol::granted>();
  ASSERT_EQ(granted.size(), 1U);
  EXPECT_EQ(granted[0].request.value, "r1");
  EXPECT_EQ(granted[0].standing.lease.value, lock_id("x"));
  EXPECT_EQ(worker.renew(lock_id("x"), 2, 1).reason, reason::renewed);
}

TEST(Locks, ThoseWhoWaitDoNotFillTheFramesInFlight) {
  actors::actor_options options;
  options.frames_in_flight = 4;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  lock_caller holder(rig, "h");
  holder.ask("x");
  rig_worker worker(rig, "w");
  for (int i = 0; i < 10; ++i) {
    worker.say(acquire_frame(worker, "x", "r" + std::to_string(i), 60'000));
    rig.settle();
  }
  EXPECT_FALSE(worker.session->paused);
}

TEST(Locks, ASessionThatIsGoneNeverReceivesTheLock) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  rig_worker worker(rig, "w");
  worker.say(acquire_frame(worker, "x", "r1", 60'000));
  rig.settle();
  lock_caller next(rig, "n");
  const auto wait = next.ask("x", 60'000);
  worker.disconnect();
  holder.release("x", 1);
  ASSERT_TRUE(wait->has_value());
  EXPECT_EQ((*wait)->granted.value, 2);
}

TEST(Locks, StopWaitingEndsTheWaitOfItsFrameAlone) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  rig_worker worker(rig, "w");
  const auto first = worker.say(acquire_frame(worker, "x", "r1", 60'000));
  const auto second = worker.say(acquire_frame(worker, "x", "r2", 60'000));
  worker.say(protocol::stop_waiting{lock_named("x"), first});
  rig.settle();
  EXPECT_EQ(worker.session->verdict_of(first)->reason, reason::wait_deadline_passed);
  EXPECT_EQ(worker.session->verdict_of(second)->reason, reason::awaiting_grant);
  holder.release("x", 1);
  EXPECT_EQ(worker.session->verdict_of(second)->reason, reason::acquired);
}

TEST(Locks, AStopWaitingThatOvertakesItsAcquireEndsItsWait) {
  coordinator_rig rig;
  lock_caller(rig, "h").ask("x");
  rig_worker worker(rig, "w");
  const auto stop = worker.say(protocol::stop_waiting{lock_named("x"), 0});
  worker.say(protocol::stop_waiting{lock_named("x"), stop + 2});
  const auto late = worker.say(acquire_frame(worker, "x", "r1", 60'000));
  const auto other = worker.say(acquire_frame(worker, "x", "r2", 60'000));
  rig.settle();
  ASSERT_EQ(late, stop + 2);
  EXPECT_EQ(worker.session->verdict_of(late)->reason, reason::already_held);
  EXPECT_EQ(worker.session->verdict_of(other)->reason, reason::awaiting_grant);
}

TEST(Locks, AFrameForSomebodyElseOrForNoTargetTouchesNoLock) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  auto frame = acquire_frame(worker, "x", "r1");
  frame.what.from = protocol::holder{"other/1"};
  const auto other = worker.say(frame);
  const auto refused = worker.say(acquire_frame(worker, "refused", "r2"));
  auto bad = acquire_frame(worker, "x", "r3");
  bad.ttl = {1000};
  bad.max_lifetime = {500};
  const auto policy = worker.say(bad);
  rig.settle();
  EXPECT_EQ(worker.session->verdict_of(other)->reason, reason::holder_not_yours);
  EXPECT_EQ(worker.session->verdict_of(refused)->reason, reason::invalid_target);
  EXPECT_EQ(worker.session->verdict_of(policy)->reason, reason::invalid_policy);
  EXPECT_FALSE(job(rig, lock_id("x")));
}

TEST(Locks, TheHolderOnAStreamIsToldOfItsLossAtOnce) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  auto frame = acquire_frame(worker, "x", "r1");
  frame.ttl = {3000};
  worker.say(frame);
  rig.settle();
  rig.advance(3000);
  const auto lost = worker.session->all<protocol::lease_lost>();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].lost.why, protocol::loss::expired);
  EXPECT_EQ(lost[0].lost.lease.value, lock_id("x"));
}

TEST(Locks, RefusalsWithoutARowOfTheirOwnAreAnswered) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  a.ask("x");
  a.release("x", 1);
  for (int i = 0; i < 150; ++i) {
    EXPECT_EQ(a.renew("x", 1, 1).reason, reason::lease_released) << i;
  }
}

// ---- fences, waiting for a change, lists

actors::fence_view fence(coordinator_rig& rig, const std::string& target) {
  actors::fence_view seen;
  rig.gateway().find_fence({protocol::tenant_id{"t"}, protocol::lease_id{lock_id(target)}},
                           [&](const actors::fence_view& f) { seen = f; });
  rig.settle();
  return seen;
}

TEST(Locks, OnlyTheLiveTokenIsLiveAndTheHighestIsObserved) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  EXPECT_EQ(fence(rig, "x").live.value, 0);
  EXPECT_EQ(fence(rig, "x").observed.value, 0);
  auto held = request_of("a", "x");
  held.spec.policy.lease_duration = {3000};
  a.ask(held);
  EXPECT_EQ(fence(rig, "x").live.value, 1);
  EXPECT_EQ(fence(rig, "x").observed.value, 1);
  rig.advance(3000);
  EXPECT_EQ(fence(rig, "x").live.value, 0);
  EXPECT_EQ(fence(rig, "x").observed.value, 1);
}

TEST(Locks, AWaitForAChangeEndsWhenTheGenerationIsNotLiveAnyMore) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  a.ask("x");
  std::optional<actors::lease_view> seen;
  const protocol::lease_key key{protocol::tenant_id{"t"}, protocol::lease_id{lock_id("x")}};
  const auto wait = [&](std::optional<protocol::generation> gen) {
    seen.reset();
    rig.gateway().await_change(key, gen, rig.clock->now() + protocol::duration{60'000},
                               [&](std::optional<actors::lease_view> v) { seen = std::move(v); });
    rig.settle();
  };
  wait(protocol::generation{9});
  EXPECT_TRUE(seen) << "generation 9 is not live: that is known at once";
  wait(protocol::generation{1});
  EXPECT_FALSE(seen);
  a.renew("x", 1, 1);
  EXPECT_FALSE(seen) << "a renew is no change";
  a.release("x", 1);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->state->state, lease_state::released);
  wait(std::nullopt);
  EXPECT_FALSE(seen);
  a.ask("x");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->state->gen.value, 2);
}

TEST(Locks, AListIsFilteredAndEndsWhereItEnds) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  lock_caller b(rig, "b");
  for (int i = 0; i < 7; ++i) (i % 2 == 0 ? a : b).ask("x" + std::to_string(i));
  submit(rig, "j1");
  std::vector<std::string> found;
  const auto list = [&](actors::lock_filter filter, std::size_t size) {
    found.clear();
    filter.tenant = protocol::tenant_id{"t"};
    std::string token;
    do {
      rig.gateway().list_locks(filter, token, size, [&](const actors::lock_page& page) {
        for (const auto& each : page.locks) found.push_back(each.lock->name.target);
        token = page.next;
      });
      rig.settle();
    } while (!token.empty());
    std::ranges::sort(found);
  };
  list({}, 2);
  EXPECT_EQ(found.size(), 7U);
  actors::lock_filter by_owner;
  by_owner.owner = "b";
  list(by_owner, 100);
  EXPECT_EQ(found, (std::vector<std::string>{"x1", "x3", "x5"}));
  by_owner.owner = "b/1";
  list(by_owner, 100);
  EXPECT_EQ(found.size(), 3U);
  by_owner.owner = "b/";
  list(by_owner, 100);
  EXPECT_TRUE(found.empty());
  actors::lock_filter by_target;
  by_target.target = {protocol::target_kind::opaque, "x4"};
  list(by_target, 1);
  EXPECT_EQ(found, (std::vector<std::string>{"x4"}));
}

// ---- ties

/// A job that a worker works on, generation 1.
void start_job(coordinator_rig& rig, rig_worker& worker, const std::string& id) {
  worker.credit(1);
  submit(rig, id);
  worker.ack(id, 1);
}

actors::acquire_request tied_to(const std::string& job, std::int64_t gen) {
  auto asked = request_of("a", "x");
  asked.spec.policy.lease_duration = {3'600'000};
  asked.spec.tie = {protocol::job_id{job}, {gen}};
  return asked;
}

TEST(Locks, ATiedLockIsReleasedOnceTheGenerationHasClosed) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  start_job(rig, worker, "j1");
  auto frame = acquire_frame(worker, "x", "r1");
  frame.tie_job = protocol::job_id{"j1"};
  frame.tie_generation = {1};
  worker.say(frame);
  rig.settle();
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::active);
  worker.result("j1", 1);
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::released);
  const auto lost = worker.session->all<protocol::lease_lost>();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].lost.why, protocol::loss::settled);
  EXPECT_EQ(worker.renew(lock_id("x"), 1, 1).reason, reason::lease_released);
}

TEST(Locks, ALockIsNotTiedToWhatHasClosed) {
  coordinator_rig rig;
  lock_caller a(rig, "a");
  EXPECT_EQ(reason_of(a.ask(tied_to("j1", 1))), reason::unknown_lease);
  rig_worker worker(rig, "w");
  start_job(rig, worker, "j1");
  EXPECT_EQ(reason_of(a.ask(tied_to("j1", 2))), reason::unknown_generation);
  worker.result("j1", 1);
  EXPECT_EQ(reason_of(a.ask(tied_to("j1", 1))), reason::generation_closed);
  EXPECT_FALSE(job(rig, lock_id("x")));
}

TEST(Locks, AWaiterWhoseTieClosedMeanwhileLosesTheLockAtOnce) {
  coordinator_rig rig;
  lock_caller holder(rig, "h");
  holder.ask("x");
  rig_worker worker(rig, "w");
  start_job(rig, worker, "j1");
  auto asked = tied_to("j1", 1);
  asked.wait = {60'000};
  lock_caller a(rig, "a");
  const auto wait = a.ask(asked);
  worker.result("j1", 1);
  EXPECT_FALSE(wait->has_value());
  holder.release("x", 1);
  ASSERT_TRUE(wait->has_value());
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::released);
}

TEST(Locks, ATieOutlivesARestartAndSoDoesTheLock) {
  auto store = std::make_shared<memory_store>();
  {
    coordinator_rig rig(store);
    rig_worker worker(rig, "w");
    start_job(rig, worker, "j1");
    lock_caller a(rig, "a");
    auto asked = tied_to("j1", 1);
    asked.request = protocol::request_id{"r1"};
    asked.spec.metadata = {{"why", "test"}};
    EXPECT_EQ(reason_of(a.ask(asked)), reason::acquired);
  }
  coordinator_rig rig(store);
  const auto seen = job(rig, lock_id("x"));
  ASSERT_TRUE(seen && seen->lock);
  EXPECT_EQ(seen->state->state, lease_state::active);
  EXPECT_EQ(seen->lock->metadata.at("why"), "test");
  EXPECT_EQ(seen->lock->policy.lease_duration.ms, 3'600'000);
  lock_caller a(rig, "a");
  EXPECT_EQ((*a.ask("x", 0, "r1"))->reason, reason::duplicate_request);
  rig_worker worker(rig, "w");
  worker.result("j1", 1);
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::released);
}

TEST(Locks, ATiedReleaseThatTheStoreRefusedIsTriedAgain) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  start_job(rig, worker, "j1");
  lock_caller a(rig, "a");
  a.ask(tied_to("j1", 1));
  rig.store->fail_commit(2);
  worker.result("j1", 1);
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::active);
  rig.advance(1000);
  EXPECT_EQ(job(rig, lock_id("x"))->state->state, lease_state::released);
}

}  // namespace
}  // namespace leasehold::tests
