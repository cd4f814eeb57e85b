#include "tests/store/dispatch_conformance.hpp"

namespace leasehold::tests {
namespace {

using protocol::dispatch_change;
using protocol::dispatch_event_kind;
using protocol::dispatch_operation;
using protocol::dispatch_record;
using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;
using protocol::reason;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- Record

TEST_P(DispatchConformance, AnAcceptedCancelMakesOneRecordThatIsDueAtOnce) {
  const auto cancelled_at = now();
  open(job_key("a"), 7);
  dispatch_record expected;
  expected.key = job_key("a");
  expected.gen.value = 7;
  expected.cancel_requested_at = cancelled_at;
  expected.cancel_deadline = cancelled_at + protocol::duration{10'000};
  expected.created_at = cancelled_at;
  expected.updated_at = cancelled_at;
  EXPECT_EQ(find(job_key("a")), expected);
  EXPECT_FALSE(find(job_key("a", "other")));
  EXPECT_THAT(events(job_key("a")), IsEmpty());
}

TEST_P(DispatchConformance, ARecordNeverMovesToAnotherAttempt) {
  open(job_key("a"), 7);
  const auto before = record(job_key("a"));
  pass(5);
  open(job_key("a"), 8);
  register_process(job_key("a"), 8);
  close(job_key("a"), 8);
  EXPECT_EQ(record(job_key("a")), before);
}

TEST_P(DispatchConformance, TheChangesOfABatchHappenInTheirOrder) {
  auto open_it = opening(job_key("a"));
  auto close_it = open_it;
  close_it.what = dispatch_change::kind::close;
  auto forget_it = open_it;
  forget_it.what = dispatch_change::kind::forget;
  auto open_again = opening(job_key("a"), 2);
  subject_->apply({open_it, close_it, forget_it, open_again});
  EXPECT_EQ(record(job_key("a")).gen.value, 2);
  EXPECT_EQ(record(job_key("a")).status, dispatch_status::pending);
  subject_->apply({close_it, forget_it, open_it});
  EXPECT_EQ(record(job_key("a")).gen.value, 1);
}

TEST_P(DispatchConformance, AProcessThatWasRegisteredBeforeTheCancelNamesTheHost) {
  register_process(job_key("a"));
  EXPECT_FALSE(find(job_key("a")));
  open(job_key("a"));
  EXPECT_EQ(record(job_key("a")).host, boot);
  EXPECT_EQ(record(job_key("a")).version, 0);
}

TEST_P(DispatchConformance, TheProcessOfAnotherAttemptDoesNotNameTheHost) {
  register_process(job_key("a"), 1);
  open(job_key("a"), 2);
  EXPECT_EQ(record(job_key("a")).host, "");
}

TEST_P(DispatchConformance, AProcessThatIsRegisteredAfterTheStreamWasAskedOpensItsStage) {
  open(job_key("a"));
  report(claim(job_key("a")), dispatch_result::termination_requested);
  ASSERT_EQ(record(job_key("a")).status, dispatch_status::dispatched);
  register_process(job_key("a"));
  const auto found = record(job_key("a"));
  EXPECT_EQ(found.stage, dispatch_stage::process);
  EXPECT_EQ(found.status, dispatch_status::pending);
  EXPECT_EQ(found.next_attempt_at, found.cancel_deadline);
}

TEST_P(DispatchConformance, ASettledJobClosesItsRecordAndItsHandlesGo) {
  register_process(job_key("a"), 1);
  register_process(job_key("a"), 2);
  register_process(job_key("b"), 1);
  open(job_key("a"), 2);
  claim(job_key("a"));
  pass(3);
  close(job_key("a"));
  const auto found = record(job_key("a"));
  EXPECT_EQ(found.status, dispatch_status::closed);
  EXPECT_EQ(found.lease_owner, "");
  EXPECT_EQ(found.updated_at, now());
  EXPECT_FALSE(subject_->has_handle(job_key("a"), {1}));
  EXPECT_FALSE(subject_->has_handle(job_key("a"), {2}));
  EXPECT_TRUE(subject_->has_handle(job_key("b"), {1}));
  const auto version = found.version;
  close(job_key("a"));
  EXPECT_EQ(record(job_key("a")).version, version);
}

TEST_P(DispatchConformance, AForgottenJobLeavesNothing) {
  register_process(job_key("a"));
  open(job_key("a"));
  open(job_key("b"));
  report(claim(job_key("a")), dispatch_result::dispatch_error);
  close(job_key("a"));
  ASSERT_EQ(events(job_key("a")).size(), 1U);
  forget(job_key("a"));
  EXPECT_FALSE(find(job_key("a")));
  EXPECT_THAT(events(job_key("a")), IsEmpty());
  EXPECT_FALSE(subject_->has_handle(job_key("a"), {1}));
  EXPECT_TRUE(find(job_key("b")));
  forget(job_key("a"));
}

// ---- Claim

TEST_P(DispatchConformance, AClaimIsItsOwnersUntilItExpires) {
  open(job_key("a"));
  pass(2);
  const auto asked = claim_of(job_key("a"), "host/dispatcher");
  const auto claimed = claim(asked);
  EXPECT_EQ(claimed.why, reason::none);
  EXPECT_EQ(claimed.record.status, dispatch_status::leased);
  EXPECT_EQ(claimed.record.version, 1);
  EXPECT_EQ(claimed.record.dispatch_count, 1);
  EXPECT_EQ(claimed.record.lease_owner, "host/dispatcher");
  EXPECT_EQ(claimed.record.lease_token, asked.token);
  EXPECT_EQ(claimed.record.lease_expires_at, now() + pace_.claim);
  EXPECT_FALSE(claimed.process);
}

TEST_P(DispatchConformance, OnlyTheClaimantIsToldTheToken) {
  open(job_key("a"));
  auto expected = claim(job_key("a")).record;
  expected.lease_token.clear();
  EXPECT_EQ(record(job_key("a")), expected);
  EXPECT_EQ(page({}).records, std::vector{expected});
  EXPECT_EQ(claim(job_key("a"), "two").record, expected);
  EXPECT_EQ(report(protocol::dispatch_report{job_key("a"), {1}, "two", "?", 1}).record, expected);
  EXPECT_EQ(operate(job_key("a"), dispatch_operation::retry).record, expected);
}

TEST_P(DispatchConformance, AnUnexpiredClaimIsHeldAndAnExpiredOneIsTaken) {
  open(job_key("a"));
  const auto first = claim(job_key("a"), "one");
  for (const std::int64_t before : {30'000, 1}) {
    subject_->set_time(first.record.lease_expires_at + protocol::duration{-before});
    EXPECT_EQ(claim(job_key("a"), "two").why, reason::claim_held) << before;
  }
  pass(1);
  const auto second = claim(job_key("a"), "two");
  EXPECT_EQ(second.why, reason::none);
  EXPECT_EQ(second.record.version, first.record.version + 1);
  EXPECT_EQ(second.record.dispatch_count, 2);
  EXPECT_NE(second.record.lease_token, first.record.lease_token);
  EXPECT_EQ(second.record.lease_owner, "two");
}

TEST_P(DispatchConformance, AClaimOfAnotherAttemptCancelOrStageIsRefused) {
  open(job_key("a"));
  const auto right = claim_of(job_key("a"));
  auto wrong = right;
  wrong.gen.value = 2;
  EXPECT_EQ(claim(wrong).why, reason::attempt_mismatch);
  wrong = right;
  wrong.cancel_requested_at.ms -= 1;
  EXPECT_EQ(claim(wrong).why, reason::attempt_mismatch);
  wrong = right;
  wrong.stage = dispatch_stage::process;
  EXPECT_EQ(claim(wrong).why, reason::attempt_mismatch);
  wrong = right;
  wrong.key = job_key("b");
  EXPECT_EQ(claim(wrong).why, reason::unknown_dispatch);
  EXPECT_EQ(record(job_key("a")).version, 0);
  EXPECT_EQ(claim(right).why, reason::none);
}

TEST_P(DispatchConformance, TheProcessStageIsItsHostsAndYieldsTheHandle) {
  register_process(job_key("a"));
  open(job_key("a"));
  report(claim(job_key("a")), dispatch_result::termination_requested);
  const auto waiting = record(job_key("a"));
  ASSERT_EQ(waiting.stage, dispatch_stage::process);
  ASSERT_EQ(waiting.next_attempt_at, waiting.cancel_deadline);
  subject_->set_time(waiting.cancel_deadline + protocol::duration{-1});
  EXPECT_EQ(claim(job_key("a")).why, reason::not_due);
  pass(1);
  auto asked = claim_of(job_key("a"));
  asked.host = "99999999-2222-3333-4444-555555555555";
  const auto strange = claim(asked);
  EXPECT_EQ(strange.why, reason::attempt_mismatch);
  EXPECT_FALSE(strange.process);
  const auto claimed = claim(job_key("a"));
  ASSERT_EQ(claimed.why, reason::none);
  ASSERT_TRUE(claimed.process);
  EXPECT_EQ(claimed.process->pid, 4242);
  EXPECT_EQ(claimed.process->boot_id, boot);
  EXPECT_EQ(claimed.process->start_ticks, 987'654);
}

TEST_P(DispatchConformance, AClaimIsNeverLongerThanItsHardBound) {
  open(job_key("a"));
  pace_.claim = {protocol::longest_claim.ms + 1};
  EXPECT_EQ(claim(job_key("a")).record.lease_expires_at, now() + protocol::longest_claim);
}

TEST_P(DispatchConformance, ClaimsOfOneCallAreJudgedEachForItselfInOrder) {
  open(job_key("a"));
  open(job_key("b"));
  open(job_key("c"));
  claim(job_key("b"), "two");
  auto missing = claim_of(job_key("a"));
  missing.key = job_key("x");
  const auto a = claim_of(job_key("a"));
  const auto c = claim_of(job_key("c"));
  auto again = c;
  again.token = std::string(32, 'f');
  using answers = std::vector<actors::dispatch_claimed>;
  const auto said = value_of(said_of<answers>([&](auto hear) {
    store().claim({a, claim_of(job_key("b")), missing, c, again}, pace_, hear);
  }));
  std::vector<reason> why;
  for (const auto& each : said) why.push_back(each.why);
  EXPECT_THAT(why, ElementsAre(reason::none, reason::claim_held, reason::unknown_dispatch,
                               reason::none, reason::claim_held));
  EXPECT_EQ(record(job_key("c")).dispatch_count, 1);
}

TEST_P(DispatchConformance, MoreClaimsThanACallTakesAreRefusedAndNothingIsDone) {
  open(job_key("a"));
  using answers = std::vector<actors::dispatch_claimed>;
  const auto ask = [&](std::size_t count) {
    return said_of<answers>(
        [&](auto hear) { store().claim(std::vector(count, claim_of(job_key("a"))), pace_, hear); });
  };
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(ask(actors::most_dispatches + 1)));
  EXPECT_EQ(record(job_key("a")).version, 0);
  EXPECT_EQ(value_of(ask(actors::most_dispatches)).size(), actors::most_dispatches);
  EXPECT_EQ(record(job_key("a")).version, 1);
}

// ---- Result

struct outcome {
  dispatch_result result;
  dispatch_status status;
  dispatch_event_kind event;
  reason next_claim;
};

TEST_P(DispatchConformance, EachResultIsWrittenWithItsEvent) {
  using status = dispatch_status;
  using kind = dispatch_event_kind;
  const std::vector<outcome> all{
      {dispatch_result::termination_requested, status::dispatched, kind::cancel_dispatched,
       reason::dispatch_done},
      {dispatch_result::already_exited, status::dispatched, kind::cancel_dispatched,
       reason::dispatch_done},
      {dispatch_result::identity_mismatch, status::blocked, kind::cancel_dispatch_blocked,
       reason::dispatch_blocked},
      {dispatch_result::pid_mismatch, status::blocked, kind::cancel_dispatch_blocked,
       reason::dispatch_blocked},
      {dispatch_result::unsupported, status::blocked, kind::cancel_dispatch_blocked,
       reason::dispatch_blocked},
      {dispatch_result::invalid, status::blocked, kind::cancel_dispatch_blocked,
       reason::dispatch_blocked},
      {dispatch_result::controller_missing, status::retry_wait, kind::cancel_dispatch_failed,
       reason::not_due},
      {dispatch_result::handle_missing, status::retry_wait, kind::cancel_dispatch_failed,
       reason::not_due},
      {dispatch_result::dispatch_error, status::retry_wait, kind::cancel_dispatch_failed,
       reason::not_due},
  };
  for (const auto& each : all) {
    const auto key = job_key(std::string(protocol::word(each.result)));
    open(key);
    const auto claimed = claim(key);
    pass(4);
    const auto said = report(claimed, each.result);
    EXPECT_EQ(said.why, reason::none) << key.lease.value;
    const auto found = record(key);
    EXPECT_EQ(found, said.record);
    EXPECT_EQ(found.status, each.status) << key.lease.value;
    EXPECT_EQ(found.version, 2);
    EXPECT_EQ(found.last_result, each.result);
    EXPECT_EQ(found.last_dispatched_at, now());
    EXPECT_EQ(found.lease_owner, "");
    EXPECT_EQ(found.lease_expires_at.ms, 0);
    EXPECT_THAT(events(key), ElementsAre(protocol::dispatch_event{
                                 key, 2, now(), each.event, {1}, 1, each.result}));
    EXPECT_EQ(claim(key).why, each.next_claim) << key.lease.value;
  }
}

TEST_P(DispatchConformance, AnOldOwnerTokenOrVersionIsRefusedAndNothingIsWritten) {
  open(job_key("a"));
  const auto old = claim(job_key("a"), "one");
  subject_->set_time(old.record.lease_expires_at);
  EXPECT_EQ(report(old, dispatch_result::already_exited).why, reason::stale_claim);
  const auto fresh = claim(job_key("a"), "one");
  const auto before = record(job_key("a"));
  EXPECT_EQ(report(old, dispatch_result::already_exited).why, reason::stale_claim);
  const auto right = report_of(fresh, dispatch_result::dispatch_error);
  auto wrong = right;
  wrong.owner = "two";
  EXPECT_EQ(report(wrong).why, reason::stale_claim);
  wrong = right;
  wrong.token = old.record.lease_token;
  EXPECT_EQ(report(wrong).why, reason::stale_claim);
  wrong = right;
  wrong.version = old.record.version;
  EXPECT_EQ(report(wrong).why, reason::stale_claim);
  wrong = right;
  wrong.gen.value = 2;
  EXPECT_EQ(report(wrong).why, reason::stale_claim);
  wrong = right;
  wrong.key = job_key("x");
  EXPECT_EQ(report(wrong).why, reason::unknown_dispatch);
  EXPECT_EQ(record(job_key("a")), before);
  EXPECT_THAT(events(job_key("a")), IsEmpty());
  EXPECT_EQ(report(right).why, reason::none);
  EXPECT_EQ(report(right).why, reason::stale_claim);
  EXPECT_EQ(events(job_key("a")).size(), 1U);
}

TEST_P(DispatchConformance, AResultAfterTheJobSettledIsRefused) {
  open(job_key("a"));
  const auto claimed = claim(job_key("a"));
  close(job_key("a"));
  const auto before = record(job_key("a"));
  EXPECT_EQ(report(claimed, dispatch_result::termination_requested).why, reason::stale_claim);
  EXPECT_EQ(record(job_key("a")), before);
  EXPECT_EQ(claim(job_key("a")).why, reason::dispatch_closed);
}

TEST_P(DispatchConformance, AnEventThatCannotBeAppendedRollsTheResultBack) {
  open(job_key("a"));
  const auto claimed = claim(job_key("a"));
  const auto before = record(job_key("a"));
  protocol::dispatch_event obstacle{job_key("a"),
                                    2,
                                    now(),
                                    dispatch_event_kind::cancel_dispatched,
                                    {1},
                                    9,
                                    dispatch_result::already_exited};
  subject_->put_event(obstacle);
  EXPECT_EQ(report(claimed, dispatch_result::dispatch_error).why, reason::store_unavailable);
  EXPECT_EQ(record(job_key("a")), before);
  EXPECT_THAT(events(job_key("a")), ElementsAre(obstacle));
  subject_->remove_event(obstacle);
  EXPECT_EQ(report(claimed, dispatch_result::dispatch_error).why, reason::none);
  EXPECT_EQ(events(job_key("a")).size(), 1U);
}

TEST_P(DispatchConformance, AResultThatFailsDoesNotTakeOthersWithIt) {
  std::vector<protocol::dispatch_report> said;
  for (const auto* job : {"a", "b", "c"}) {
    open(job_key(job));
    said.push_back(report_of(claim(job_key(job)), dispatch_result::already_exited));
  }
  subject_->put_event({job_key("b"), 2, now(), dispatch_event_kind::cancel_dispatched, {1}, 9, {}});
  using answers = std::vector<actors::dispatch_reported>;
  std::vector<reason> why;
  for (const auto& each :
       value_of(said_of<answers>([&](auto hear) { store().report(said, pace_, hear); }))) {
    why.push_back(each.why);
  }
  EXPECT_THAT(why, ElementsAre(reason::none, reason::store_unavailable, reason::none));
  EXPECT_EQ(record(job_key("b")).status, dispatch_status::leased);
  EXPECT_EQ(record(job_key("c")).status, dispatch_status::dispatched);
}

TEST_P(DispatchConformance, ARetryWaitsForItsStoredTimeAlsoAfterARestart) {
  open(job_key("a"));
  report(claim(job_key("a")), dispatch_result::controller_missing);
  EXPECT_EQ(record(job_key("a")).next_attempt_at, now() + protocol::duration{1'000});
  subject_->reopen();
  pass(999);
  EXPECT_EQ(claim(job_key("a")).why, reason::not_due);
  EXPECT_EQ(record(job_key("a")).dispatch_count, 1);
  pass(1);
  const auto second = claim(job_key("a"));
  EXPECT_EQ(second.why, reason::none);
  EXPECT_EQ(second.record.dispatch_count, 2);
  report(second, dispatch_result::controller_missing);
  EXPECT_EQ(record(job_key("a")).next_attempt_at, now() + protocol::duration{2'000});
}

TEST_P(DispatchConformance, AClaimOutlivesARestart) {
  open(job_key("a"));
  const auto claimed = claim(job_key("a"));
  subject_->reopen();
  EXPECT_EQ(claim(job_key("a"), "two").why, reason::claim_held);
  EXPECT_EQ(report(claimed, dispatch_result::already_exited).why, reason::none);
}

// ---- Operators

TEST_P(DispatchConformance, AnOperatorsRetryIsDueAtOnceAndHasAnEvent) {
  open(job_key("a"));
  report(claim(job_key("a")), dispatch_result::pid_mismatch);
  pass(7);
  const auto said = operate(job_key("a"), dispatch_operation::retry);
  EXPECT_EQ(said.why, reason::none);
  EXPECT_EQ(said.record, record(job_key("a")));
  EXPECT_EQ(said.record.status, dispatch_status::pending);
  EXPECT_EQ(events(job_key("a"), 2).size(), 1U);
  EXPECT_EQ(events(job_key("a"), 2).front().kind, dispatch_event_kind::cancel_dispatch_retried);
  EXPECT_EQ(claim(job_key("a")).why, reason::none);
}

TEST_P(DispatchConformance, AnOperatorsResolveClosesIt) {
  open(job_key("a"));
  EXPECT_EQ(operate(job_key("a"), dispatch_operation::resolve).why, reason::none);
  EXPECT_EQ(record(job_key("a")).status, dispatch_status::closed);
  EXPECT_EQ(events(job_key("a")).front().kind, dispatch_event_kind::cancel_dispatch_resolved);
  EXPECT_EQ(operate(job_key("a"), dispatch_operation::retry).why, reason::dispatch_closed);
}

TEST_P(DispatchConformance, AnOperatorDoesNotTakeAClaimThatIsActedOn) {
  open(job_key("a"));
  const auto claimed = claim(job_key("a"));
  EXPECT_EQ(operate(job_key("a"), dispatch_operation::retry).why, reason::claim_held);
  EXPECT_EQ(operate(job_key("b"), dispatch_operation::retry).why, reason::unknown_dispatch);
  EXPECT_EQ(report(claimed, dispatch_result::already_exited).why, reason::none);
}

TEST_P(DispatchConformance, AnOperatorsEventThatCannotBeAppendedRollsItBack) {
  open(job_key("a"));
  const auto before = record(job_key("a"));
  subject_->put_event({job_key("a"), 1, now(), dispatch_event_kind::cancel_dispatched, {1}, 9, {}});
  EXPECT_EQ(operate(job_key("a"), dispatch_operation::resolve).why, reason::store_unavailable);
  EXPECT_EQ(record(job_key("a")), before);
}

TEST_P(DispatchConformance, EventsComeInTheirOrderAfterAVersionAndWithinALimit) {
  open(job_key("a"));
  open(job_key("ab"));
  for (int i = 0; i < 3; ++i) operate(job_key("a"), dispatch_operation::retry);
  operate(job_key("ab"), dispatch_operation::retry);
  const auto versions = [&](std::int64_t after, std::size_t limit) {
    std::vector<std::int64_t> found;
    for (const auto& each : events(job_key("a"), after, limit)) found.push_back(each.version);
    return found;
  };
  EXPECT_THAT(versions(0, 64), ElementsAre(1, 2, 3));
  EXPECT_THAT(versions(1, 64), ElementsAre(2, 3));
  EXPECT_THAT(versions(0, 2), ElementsAre(1, 2));
  EXPECT_THAT(versions(3, 64), IsEmpty());
}

}  // namespace
}  // namespace leasehold::tests
