// Frames by kind, of a lease that is offered or active (protocol.md 4).
#include <gtest/gtest.h>

#include "protocol/rules_scene.hpp"

namespace leasehold::protocol {
namespace {

using enum decision;

class Offered : public testing::Test, public rules_scene {};
class Active : public testing::Test, public rules_scene {};

TEST_F(Offered, AnAckActivatesInTwoRowsAtOneInstant) {
  offer(1000);
  EXPECT_EQ(of(ack(1049)), (said{accepted, reason::ack_accepted, rule_id::ack_offered}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].after, lease_state::acked);
  EXPECT_EQ(rows[1].kind, event_kind::activate);
  EXPECT_EQ(rows[1].before, lease_state::acked);
  EXPECT_EQ(rows[1].at.ms, 1049);
  EXPECT_EQ(lease.state, lease_state::active);
  EXPECT_EQ(lease.acquired_at.ms, 1049);
  EXPECT_EQ(lease.expires_at.ms, 1149);
  EXPECT_EQ(lease.attempt, 1);
}

TEST_F(Offered, AnAckAtOrAfterItsDeadlineIsLate) {
  for (const auto at : {1050, 1051}) {
    rules_scene late;
    late.offer(1000);
    EXPECT_EQ(late.ack(at).reason, reason::lease_expired);
    EXPECT_EQ(late.lease.acked, ack_state::missed);
    EXPECT_EQ(late.lease.attempt, 0);
  }
}

TEST_F(Offered, ADeclineIsALossAndTheLastOneEndsTheJob) {
  chosen.max_losses = 2;
  chosen.retry_backoff = duration{10};
  offer(1000);
  EXPECT_EQ(of(judge(1001, frame(event_kind::decline, 1001))),
            (said{accepted, reason::offer_declined, rule_id::decline_offered}));
  EXPECT_EQ(lease.next_offer_at.ms, 1011);
  offer(1011);
  EXPECT_EQ(of(judge(1012, frame(event_kind::decline, 1012))),
            (said{accepted, reason::losses_exhausted, rule_id::decline_exhausted}));
  EXPECT_EQ(lease.state, lease_state::failed);
  EXPECT_EQ(lease.terminal_result, outcome::none);
}

TEST_F(Offered, FramesThatOvertakeTheAckWaitUpToTheLimit) {
  chosen.defer_limit = 2;
  offer(1000);
  const said waits{deferred, reason::awaiting_activation, rule_id::early_deferred};
  EXPECT_EQ(of(renew(1001, 1)), waits);
  EXPECT_EQ(of(release(1002)), waits);
  EXPECT_EQ(of(progress(1003, 1)),
            (said{rejected, reason::reorder_buffer_full, rule_id::early_full}));
  EXPECT_TRUE(rows.back().answer.flags.late_progress);
  EXPECT_EQ(lease.deferred.size(), 2U);
}

TEST_F(Offered, DeferredFramesAreJudgedByKindSequenceAndTimeAtActivation) {
  offer(1000);
  judge(1001, result(1001, outcome::success));
  judge(1001, frame(event_kind::cancel_ack, 1001));
  progress(1002, 2);
  judge(1003, sequenced(event_kind::progress, 1003, 1, "w"));
  renew(1004, 2);
  renew(1005, 1);
  ack(1010);
  std::vector<reason> order;
  for (const auto& row : rows) {
    order.push_back(row.answer.reason);
    EXPECT_EQ(row.at.ms, 1010);
  }
  EXPECT_EQ(order,
            (std::vector{reason::ack_accepted, reason::activated, reason::renewed, reason::renewed,
                         reason::progress_recorded, reason::progress_recorded,
                         reason::cancel_not_requested, reason::completed}));
  EXPECT_EQ(lease.renew_time.ms, 1010);
  EXPECT_TRUE(lease.deferred.empty());
}

TEST_F(Offered, DeferredFramesAreAnsweredWhenTheOfferEnds) {
  offer(1000);
  progress(1001, 1);
  expire(1050);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].at.ms, 1050);
  EXPECT_TRUE(rows[1].derived);
  EXPECT_EQ(rows[1].answer.reason, reason::lease_expired);
  EXPECT_EQ(rows[1].answer.flags, (row_flags{.late_progress = true, .lease_expired = true}));
}

TEST_F(Active, AnAckIsADuplicateAndADeclineTooLate) {
  activate();
  EXPECT_EQ(of(ack(1001)), (said{ignored, reason::duplicate_ack, rule_id::ack_duplicate}));
  EXPECT_EQ(of(judge(1001, frame(event_kind::decline, 1001))),
            (said{rejected, reason::already_acked, rule_id::decline_acked}));
}

TEST_F(Active, OnlyANewerRenewExtends) {
  activate();
  EXPECT_EQ(of(renew(1010, 5)), (said{accepted, reason::renewed, rule_id::renew_newer}));
  EXPECT_EQ(lease.expires_at.ms, 1110);
  EXPECT_EQ(of(renew(1020, 5)), (said{ignored, reason::duplicate_renew, rule_id::renew_duplicate}));
  EXPECT_EQ(of(renew(1020, 4)), (said{ignored, reason::stale_sequence, rule_id::renew_stale}));
  EXPECT_EQ(lease.expires_at.ms, 1110);
  EXPECT_EQ(renew(1020, 6).decision, accepted);
  EXPECT_EQ(lease.expires_at.ms, 1120);
}

TEST_F(Active, ARenewNeverMakesTheDeadlineEarlier) {
  activate();
  recover(1050);
  renew(1060, 1);
  chosen.lease_duration = duration{10};
  EXPECT_EQ(renew(1070, 2).decision, accepted);
  EXPECT_EQ(lease.expires_at.ms, 1160);
}

TEST_F(Active, MaxLifetimeCutsARenewAndThenRefusesIt) {
  chosen.max_lifetime = duration{150};
  activate();
  EXPECT_EQ(renew(1049, 1).decision, accepted);
  EXPECT_EQ(lease.expires_at.ms, 1149);
  EXPECT_EQ(renew(1060, 2).decision, accepted);
  EXPECT_EQ(lease.expires_at.ms, 1150);
  EXPECT_EQ(of(renew(1070, 3)),
            (said{rejected, reason::max_lifetime_reached, rule_id::renew_capped}));
  EXPECT_EQ(lease.renew_sequence.value, 2);
}

TEST_F(Active, OnATieOfCapsTheCancelIsNamed) {
  chosen.max_lifetime = duration{130};
  activate();
  renew(1090, 1);
  ASSERT_EQ(lease.expires_at.ms, 1130);
  cancel(1100);
  EXPECT_EQ(lease.cancel_deadline.ms, 1130);
  EXPECT_EQ(of(renew(1101, 2)), (said{rejected, reason::cancel_pending, rule_id::renew_capped}));
}

TEST_F(Active, ARenewUnderACancelReachesTheCancelDeadlineAndNoFurther) {
  chosen.cancel_grace = duration{150};
  activate();
  cancel(1010);
  EXPECT_EQ(lease.expires_at.ms, 1100);
  EXPECT_EQ(renew(1090, 1).decision, accepted);
  EXPECT_EQ(lease.expires_at.ms, 1160);
  EXPECT_EQ(renew(1091, 2).reason, reason::cancel_pending);
}

TEST_F(Active, ProgressNeverTouchesTheDeadline) {
  activate();
  EXPECT_EQ(of(progress(1050, 3)),
            (said{accepted, reason::progress_recorded, rule_id::progress_newer}));
  EXPECT_EQ(lease.expires_at.ms, 1100);
}

TEST_F(Active, ProgressIsComparedBySequenceAndValue) {
  activate();
  progress(1010, 3, "30%");
  EXPECT_EQ(of(progress(1011, 3, "30%")),
            (said{ignored, reason::duplicate_progress, rule_id::progress_duplicate}));
  EXPECT_EQ(of(progress(1011, 3, "31%")),
            (said{rejected, reason::sequence_conflict, rule_id::progress_conflict}));
  EXPECT_FALSE(rows.back().answer.flags.late_progress);
  EXPECT_EQ(of(progress(1011, 2, "20%")),
            (said{ignored, reason::late_progress, rule_id::progress_late}));
  EXPECT_TRUE(rows.back().answer.flags.late_progress);
  EXPECT_EQ(lease.progress_value, "30%");
}

TEST_F(Active, ProgressAfterACancelIsEvidenceOnly) {
  activate();
  cancel(1010);
  EXPECT_EQ(of(progress(1011, 1)),
            (said{ignored, reason::progress_after_cancel, rule_id::progress_cancelled}));
  EXPECT_EQ(lease.progress_sequence.value, 0);
}

TEST_F(Active, ACancelIsAcknowledgedOnce) {
  activate();
  const auto acknowledge = [this](std::int64_t at) {
    return judge(at, frame(event_kind::cancel_ack, at));
  };
  EXPECT_EQ(of(acknowledge(1001)),
            (said{rejected, reason::cancel_not_requested, rule_id::cancel_ack_unasked}));
  cancel(1010);
  EXPECT_EQ(of(acknowledge(1011)),
            (said{accepted, reason::cancel_acknowledged, rule_id::cancel_ack_first}));
  EXPECT_EQ(of(acknowledge(1012)),
            (said{ignored, reason::duplicate_cancel_ack, rule_id::cancel_ack_duplicate}));
  EXPECT_EQ(lease.cancel_acked_at.ms, 1011);
  EXPECT_EQ(lease.state, lease_state::active);
}

TEST_F(Active, AReleaseOfAJobCostsALossAndNoAttempt) {
  chosen.max_losses = 2;
  chosen.retry_backoff = duration{10};
  activate();
  EXPECT_EQ(of(release(1010)), (said{accepted, reason::released, rule_id::release_job}));
  EXPECT_EQ(lease.attempt, 0);
  EXPECT_EQ(lease.losses, 1);
  EXPECT_EQ(lease.next_offer_at.ms, 1020);
  EXPECT_EQ(lease.unproven_count(), 0);
  offer(1020);
  ack(1020);
  EXPECT_EQ(of(release(1030)),
            (said{accepted, reason::losses_exhausted, rule_id::release_exhausted}));
  EXPECT_EQ(lease.state, lease_state::failed);
}

TEST_F(Active, AReleaseOfALockFreesItAtOnce) {
  chosen.max_losses = 1;
  acquire(1000);
  EXPECT_EQ(of(release(1010)), (said{accepted, reason::released, rule_id::release_lock}));
  EXPECT_EQ(lease.losses, 0);
  EXPECT_EQ(acquire(1010).reason, reason::acquired);
  EXPECT_EQ(lease.gen.value, 2);
}

TEST_F(Active, AReleaseUnderACancelSettlesItWhenNothingIsUnproven) {
  activate();
  cancel(1010);
  EXPECT_EQ(of(release(1011)),
            (said{accepted, reason::cancel_completed, rule_id::release_cancelled}));
  EXPECT_EQ(lease.state, lease_state::cancelled);
  EXPECT_EQ(lease.attempt, 1);
  EXPECT_FALSE(lease.reported);
}

TEST_F(Active, AReleaseUnderACancelWaitsForOlderWork) {
  activate();
  offer(1200);
  ack(1200);
  cancel(1210);
  EXPECT_EQ(of(release(1211)),
            (said{accepted, reason::cancel_unreconciled, rule_id::release_unreconciled}));
  EXPECT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(lease.terminal_result, outcome::cancelled);
  EXPECT_EQ(lease.reconcile_deadline.ms, 1711);
  EXPECT_EQ(judge(1212, result(1212, outcome::cancelled)).reason, reason::duplicate_terminal);
}

TEST_F(Active, ALockTakesNoResult) {
  acquire(1000);
  EXPECT_EQ(of(judge(1001, result(1001, outcome::success))),
            (said{rejected, reason::not_a_job, rule_id::result_lock}));
}

TEST_F(Active, ASuccessCompletesAlsoUnderACancel) {
  for (const bool under_cancel : {false, true}) {
    rules_scene job;
    job.activate();
    if (under_cancel) job.cancel(1010);
    const auto answer = job.judge(1011, job.result(1011, outcome::success, "d"));
    EXPECT_EQ(of(answer),
              (said{accepted, under_cancel ? reason::completed_despite_cancel : reason::completed,
                    rule_id::result_success}));
    EXPECT_EQ(job.lease.state, lease_state::completed);
    EXPECT_EQ(job.lease.terminal_detail, "d");
  }
}

TEST_F(Active, AResultCancelledNeedsACancel) {
  activate();
  EXPECT_EQ(of(judge(1001, result(1001, outcome::cancelled))),
            (said{rejected, reason::cancel_not_requested, rule_id::result_cancel_unasked}));
  cancel(1010);
  EXPECT_EQ(of(judge(1011, result(1011, outcome::cancelled))),
            (said{accepted, reason::cancel_completed, rule_id::result_cancelled}));
}

TEST_F(Active, AResultCancelledWaitsForOlderWork) {
  activate();
  offer(1200);
  ack(1200);
  cancel(1210);
  EXPECT_EQ(of(judge(1211, result(1211, outcome::cancelled, "d"))),
            (said{accepted, reason::cancel_unreconciled, rule_id::result_unreconciled}));
  EXPECT_EQ(lease.terminal_detail, "d");
}

TEST_F(Active, ARetryableFailureIsRepeatedUntilTheLastAttempt) {
  chosen.max_attempts = 2;
  chosen.retry_backoff = duration{10};
  activate();
  EXPECT_EQ(of(judge(1010, result(1010, outcome::failed, "", true))),
            (said{accepted, reason::retry_scheduled, rule_id::result_retry}));
  EXPECT_EQ(lease.next_offer_at.ms, 1020);
  EXPECT_EQ(lease.terminal_result, outcome::failed);
  offer(1020);
  EXPECT_EQ(lease.terminal_result, outcome::none);
  ack(1020);
  EXPECT_EQ(of(judge(1030, result(1030, outcome::failed, "", true))),
            (said{accepted, reason::attempts_exhausted, rule_id::result_exhausted}));
  EXPECT_EQ(lease.state, lease_state::failed);
}

TEST_F(Active, AFailureIsFinalWhenNotRetryableOrCancelled) {
  for (const bool under_cancel : {false, true}) {
    rules_scene job;
    job.activate();
    if (under_cancel) job.cancel(1010);
    EXPECT_EQ(of(job.judge(1011, job.result(1011, outcome::failed, "", under_cancel))),
              (said{accepted, reason::job_failed, rule_id::result_failed}));
    EXPECT_EQ(job.lease.state, lease_state::failed);
  }
}

}  // namespace
}  // namespace leasehold::protocol
