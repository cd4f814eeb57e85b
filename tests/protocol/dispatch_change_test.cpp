// What the coordinator does to a dispatch, and what a step of a job means for it.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "dispatch_scene.hpp"

namespace leasehold::protocol {
namespace {

TEST(DispatchChange, ClosingEndsEvenAClaimAndItsReportIsStale) {
  auto r = opened();
  const auto said = claimed(r, 2'000);
  dispatch_change closing;
  closing.what = dispatch_change::kind::close;
  closing.at = instant{2'010};
  EXPECT_TRUE(close_dispatch(r, closing));
  EXPECT_EQ(r.status, dispatch_status::closed);
  EXPECT_EQ(r.version, 2);
  EXPECT_EQ(r.lease_token, "");
  EXPECT_EQ(r.updated_at, instant{2'010});
  expect_stale(r, said, 2'011);
  EXPECT_FALSE(close_dispatch(r, closing));
}

TEST(DispatchChange, ClosingNamesTheAttemptOrNone) {
  for (const auto& [gen, closes] : std::array{std::pair{0, true}, std::pair{6, false},
                                              std::pair{7, true}, std::pair{8, false}}) {
    auto r = opened();
    dispatch_change closing;
    closing.gen = generation{gen};
    EXPECT_EQ(close_dispatch(r, closing), closes) << gen;
    EXPECT_EQ(r.status == dispatch_status::closed, closes) << gen;
  }
}

dispatch_change registering(std::int64_t gen, std::int64_t at) {
  dispatch_change change;
  change.what = dispatch_change::kind::handle;
  change.key = job;
  change.gen = generation{gen};
  change.at = instant{at};
  change.process = {"linux", 4711, host, 99, 4711};
  return change;
}

TEST(DispatchChange, AHandleMakesTheHostKnownAndTheProcessStageReachable) {
  auto r = opened();
  EXPECT_TRUE(register_process(r, registering(7, 1'050)));
  EXPECT_EQ(r.host, host);
  EXPECT_EQ(r.version, 1);
  EXPECT_EQ(r.stage, dispatch_stage::stream);
  EXPECT_EQ(r.status, dispatch_status::pending);
  reported(r, 1'100, dispatch_result::termination_requested);
  EXPECT_EQ(r.stage, dispatch_stage::process);
}

TEST(DispatchChange, AHandleAfterTheStreamWasDoneOpensTheProcessStage) {
  auto r = opened();
  reported(r, 1'100, dispatch_result::termination_requested);
  ASSERT_EQ(r.status, dispatch_status::dispatched);
  EXPECT_TRUE(register_process(r, registering(7, 1'200)));
  EXPECT_EQ(r.stage, dispatch_stage::process);
  EXPECT_EQ(r.status, dispatch_status::pending);
  EXPECT_EQ(r.next_attempt_at, deadline);
}

TEST(DispatchChange, AHandleOfAnotherAttemptOrOfAClosedRecordChangesNothing) {
  for (const std::int64_t gen : {6, 8}) {
    auto r = opened();
    const auto before = r;
    EXPECT_FALSE(register_process(r, registering(gen, 1'200)));
    EXPECT_EQ(r, before);
  }
  auto closed = opened();
  closed.status = dispatch_status::closed;
  EXPECT_FALSE(register_process(closed, registering(7, 1'200)));
}

TEST(DispatchChange, AHandleDoesNotOpenWhatEndedBlockedOrByItself) {
  for (const auto said : {dispatch_result::identity_mismatch, dispatch_result::already_exited}) {
    auto r = opened();
    reported(r, 1'100, said);
    const auto status = r.status;
    EXPECT_TRUE(register_process(r, registering(7, 1'200)));
    EXPECT_EQ(r.status, status);
    EXPECT_EQ(r.stage, dispatch_stage::stream);
  }
}

TEST(DispatchChange, AHandleShortensThePauseOfTheStreamToTheDeadline) {
  const auto pause_until = [](std::int64_t next, std::int64_t at) {
    auto r = opened();
    r.status = dispatch_status::retry_wait;
    r.next_attempt_at = instant{next};
    EXPECT_TRUE(register_process(r, registering(7, at)));
    EXPECT_EQ(r.status, dispatch_status::retry_wait);
    return r.next_attempt_at.ms;
  };
  EXPECT_EQ(pause_until(1'400, 1'200), 1'400) << "it ends before the deadline";
  EXPECT_EQ(pause_until(9'000, 1'200), 1'500) << "the deadline is to come";
  EXPECT_EQ(pause_until(9'000, 1'600), 1'600) << "the deadline is past";
}

TEST(DispatchChange, AHandleThatComesDuringAClaimMakesItsReportStale) {
  auto r = opened();
  const auto said = claimed(r, 1'100);
  EXPECT_TRUE(register_process(r, registering(7, 1'150)));
  EXPECT_EQ(r.status, dispatch_status::leased);
  expect_stale(r, said, 1'160);
  EXPECT_EQ(claim_dispatch(r, claim_of(r), instant{1'199}, pace), reason::claim_held);
  EXPECT_EQ(claim_dispatch(r, claim_of(r), instant{1'200}, pace), reason::none);
}

record job_record(lease_state state, std::int64_t gen) {
  record r;
  r.lease = job.lease;
  r.kind = lease_kind::job;
  r.state = state;
  r.gen = generation{gen};
  return r;
}

record cancel_of(record r, lease_state to) {
  r.state = to;
  r.cancel_requested_at = cancelled;
  if (is_live(to)) r.cancel_deadline = deadline;
  return r;
}

record unproven(record r, std::initializer_list<std::int64_t> gens) {
  r.unproven.clear();
  for (const auto gen : gens) r.unproven.push_back({generation{gen}, holder{"a/1"}, {}});
  return r;
}

std::optional<dispatch_change> between(const record& before, const record& after) {
  return dispatch_change_of(job.tenant, before, after, instant{2'000});
}

void expect_open(const std::optional<dispatch_change>& got, std::int64_t gen, instant until) {
  ASSERT_TRUE(got);
  EXPECT_EQ(got->what, dispatch_change::kind::open);
  EXPECT_EQ(got->key, job);
  EXPECT_EQ(got->gen, generation{gen});
  EXPECT_EQ(got->at, instant{2'000});
  EXPECT_EQ(got->cancel_requested_at, cancelled);
  EXPECT_EQ(got->cancel_deadline, until);
}

void expect_close(const std::optional<dispatch_change>& got, std::int64_t gen) {
  ASSERT_TRUE(got);
  EXPECT_EQ(got->what, dispatch_change::kind::close);
  EXPECT_EQ(got->key, job);
  EXPECT_EQ(got->gen, generation{gen});
  EXPECT_EQ(got->at, instant{2'000});
}

TEST(DispatchOfAStep, ACancelOfALiveAttemptOpens) {
  const auto before = job_record(lease_state::active, 7);
  expect_open(between(before, cancel_of(before, lease_state::active)), 7, deadline);
}

TEST(DispatchOfAStep, ACancelOfALiveAttemptIsAboutItThoughAnOlderOneIsUnproven) {
  const auto before = unproven(job_record(lease_state::active, 7), {3});
  expect_open(between(before, cancel_of(before, lease_state::active)), 7, deadline);
}

TEST(DispatchOfAStep, ACancelWithOnlyUnprovenAttemptsIsAboutTheNewestAndDueAtOnce) {
  const auto before = unproven(job_record(lease_state::expired, 9), {3, 7});
  expect_open(between(before, cancel_of(before, lease_state::unresolved)), 7, cancelled);
}

TEST(DispatchOfAStep, ACancelThatWithdrawsAnOfferIsAboutWhatIsUnproven) {
  const auto before = unproven(job_record(lease_state::offered, 9), {7});
  expect_open(between(before, cancel_of(before, lease_state::unresolved)), 7, cancelled);
}

TEST(DispatchOfAStep, ACancelThatSettlesTheJobOpensNothing) {
  for (const auto state : {lease_state::vacant, lease_state::offered, lease_state::retry_wait}) {
    const auto before = job_record(state, 7);
    EXPECT_FALSE(between(before, cancel_of(before, lease_state::cancelled)));
  }
}

TEST(DispatchOfAStep, ACancelOfWhatIsUnprovenWithoutANameOpensNothing) {
  auto before = job_record(lease_state::expired, 7);
  before.unproven_nameless = 1;
  EXPECT_FALSE(between(before, cancel_of(before, lease_state::unresolved)));
}

TEST(DispatchOfAStep, AStepWithoutACancelMeansNothing) {
  const auto before = job_record(lease_state::active, 7);
  EXPECT_FALSE(between(before, before));
  EXPECT_FALSE(between(before, unproven(job_record(lease_state::expired, 7), {7})));
  EXPECT_FALSE(between(before, job_record(lease_state::completed, 7)));
}

TEST(DispatchOfAStep, ALockHasNoDispatch) {
  auto before = job_record(lease_state::active, 7);
  before.kind = lease_kind::lock;
  EXPECT_FALSE(between(before, cancel_of(before, lease_state::active)));
}

TEST(DispatchOfAStep, EverySettledStateCloses) {
  const auto before = cancel_of(job_record(lease_state::active, 7), lease_state::active);
  for (const auto state : {lease_state::completed, lease_state::failed, lease_state::cancelled}) {
    expect_close(between(before, cancel_of(before, state)), 0);
    const auto waits = unproven(cancel_of(before, lease_state::unresolved), {7});
    expect_close(between(waits, cancel_of(before, state)), 0);
  }
}

TEST(DispatchOfAStep, WhatIsSettledClosesOnce) {
  const auto settled = cancel_of(job_record(lease_state::active, 7), lease_state::cancelled);
  EXPECT_FALSE(between(settled, settled));
}

TEST(DispatchOfAStep, ALiveAttemptThatBecomesUnprovenStaysOpen) {
  const auto before = cancel_of(job_record(lease_state::active, 7), lease_state::active);
  EXPECT_FALSE(between(before, unproven(cancel_of(before, lease_state::unresolved), {7})));
}

TEST(DispatchOfAStep, TheProofOfItsAttemptClosesThoughAnOlderOneIsUnproven) {
  const auto live =
      unproven(cancel_of(job_record(lease_state::active, 7), lease_state::active), {3});
  const auto older_left = unproven(cancel_of(live, lease_state::unresolved), {3});
  expect_close(between(live, older_left), 7);
  const auto both = unproven(older_left, {3, 7});
  expect_close(between(both, older_left), 7);
}

TEST(DispatchOfAStep, TheProofOfAnOlderAttemptLeavesItOpen) {
  const auto both =
      unproven(cancel_of(job_record(lease_state::active, 7), lease_state::unresolved), {3, 7});
  EXPECT_FALSE(between(both, unproven(both, {7})));
}

TEST(DispatchOfAStep, AnAcknowledgedCancelAndAGraceChangeNothing) {
  const auto before = cancel_of(job_record(lease_state::active, 7), lease_state::active);
  auto after = before;
  after.cancel_acked_at = instant{1'200};
  after.expires_at = instant{1'400};
  EXPECT_FALSE(between(before, after));
}

TEST(DispatchWords, EveryWordMeansOneValueAndNothingElseMeansAny) {
  for (const auto each : all_dispatch_stages) EXPECT_EQ(dispatch_stage_from(word(each)), each);
  for (const auto each : all_dispatch_statuses) EXPECT_EQ(dispatch_status_from(word(each)), each);
  for (const auto each : all_dispatch_results) EXPECT_EQ(dispatch_result_from(word(each)), each);
  for (int i = 1; i <= 5; ++i) {
    const auto kind = static_cast<dispatch_event_kind>(i);
    EXPECT_EQ(dispatch_event_kind_from(word(kind)), kind);
  }
  EXPECT_EQ(word(dispatch_result::none), "");
  for (const auto* text : {"", "none", "Pending", "pending ", "streams"}) {
    EXPECT_FALSE(dispatch_stage_from(text));
    EXPECT_FALSE(dispatch_status_from(text));
    EXPECT_FALSE(dispatch_result_from(text));
    EXPECT_FALSE(dispatch_event_kind_from(text));
  }
}

}  // namespace
}  // namespace leasehold::protocol
