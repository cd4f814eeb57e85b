// The ladder of a worker's frame, rule by rule (protocol.md 4).
#include <gtest/gtest.h>

#include "protocol/rules_scene.hpp"

namespace leasehold::protocol {
namespace {

using enum decision;

class Ladder : public testing::Test, public rules_scene {};

TEST_F(Ladder, Rule1RefusesWhatNamesNoKnownLeaseAndMakesNone) {
  EXPECT_EQ(of(judge(1000, sequenced(event_kind::renew, 1000, 1))),
            (said{rejected, reason::unknown_lease, rule_id::unknown_lease}));
  EXPECT_EQ(lease, record{});
}

TEST_F(Ladder, Rule2RefusesEachFieldThatIsMissing) {
  activate();
  const said invalid{rejected, reason::invalid_frame, rule_id::invalid};
  auto without_generation = frame(event_kind::ack, 1000);
  without_generation.gen = generation{0};
  EXPECT_EQ(of(judge(1000, without_generation)), invalid);
  EXPECT_EQ(of(judge(1000, frame(event_kind::ack, 0))), invalid);
  auto without_holder = frame(event_kind::ack, 1000);
  without_holder.from = holder{};
  EXPECT_EQ(of(judge(1000, without_holder)), invalid);
  EXPECT_EQ(of(renew(1000, 0)), invalid);
  EXPECT_EQ(of(progress(1000, 0)), invalid);
  EXPECT_EQ(of(judge(1000, result(1000, outcome::none))), invalid);
  EXPECT_EQ(of(renew(1000, 1)), (said{accepted, reason::renewed, rule_id::renew_newer}));
}

TEST_F(Ladder, Rule2ComesBeforeTheGeneration) {
  activate();
  auto broken = sequenced(event_kind::renew, 1000, 0);
  broken.gen = generation{7};
  EXPECT_EQ(judge(1000, broken).reason, reason::invalid_frame);
}

TEST_F(Ladder, Rule3AnswersARepeatedReleaseAndRefusesAReusedId) {
  activate();
  EXPECT_EQ(release(1010, "r").reason, reason::released);
  EXPECT_EQ(of(release(1020, "r")),
            (said{ignored, reason::duplicate_request, rule_id::repeated_request}));
  auto other = frame(event_kind::release, 1020);
  other.request = request_id{"r"};
  other.detail = "another";
  EXPECT_EQ(of(judge(1020, other)),
            (said{rejected, reason::request_reused, rule_id::repeated_request}));
  EXPECT_EQ(of(release(1020)), (said{ignored, reason::duplicate_release, rule_id::repeated_close}));
}

TEST_F(Ladder, Rule3ForgetsNoRequestBefore64OthersTookEffect) {
  std::int64_t at = 1000;
  const auto take_and_give_back = [&](int number) {
    acquire(++at);
    release(++at, ("r" + std::to_string(number)).c_str());
  };
  for (int number = 0; number < 64; ++number) take_and_give_back(number);
  EXPECT_EQ(lease.requests.size(), 64U);
  EXPECT_EQ(lease.requests.front().id.value, "r0");
  take_and_give_back(64);
  EXPECT_EQ(lease.requests.size(), 64U);
  EXPECT_EQ(lease.requests.front().id.value, "r1");
}

TEST_F(Ladder, Rule3RemembersNothingThatWasRefused) {
  activate();
  auto wrong = frame(event_kind::release, 1010);
  wrong.request = request_id{"r"};
  wrong.gen = generation{9};
  EXPECT_EQ(judge(1010, wrong).decision, rejected);
  EXPECT_EQ(release(1010, "r").reason, reason::released);
}

/// Two generations, both unproven, of a job whose cancel is unresolved since 1300.
void leave_two_unproven(rules_scene& s) {
  s.activate();
  s.offer(1200);
  s.ack(1200);
  s.cancel(1270);
  s.expire(1300);
}

TEST_F(Ladder, Rule4ReconcilesInPartUntilTheLastGenerationReported) {
  leave_two_unproven(*this);
  ASSERT_EQ(lease.state, lease_state::unresolved);
  ASSERT_EQ(lease.unproven_count(), 2);
  EXPECT_EQ(of(judge(1310, result(1310, outcome::failed, "broken", true))),
            (said{accepted, reason::reconciled_in_part, rule_id::reconciling_report}));
  EXPECT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(lease.terminal_result, outcome::none);
  ASSERT_TRUE(lease.reported);
  auto first = result(1320, outcome::success, "old");
  first.gen = generation{1};
  EXPECT_EQ(of(judge(1320, first)),
            (said{accepted, reason::reconciled, rule_id::reconciling_report}));
  EXPECT_EQ(lease.state, lease_state::cancelled);
  EXPECT_EQ(lease.terminal_result, outcome::cancelled);
  EXPECT_EQ(lease.terminal_detail, "old");
  EXPECT_EQ(lease.reported->detail, "broken");
}

TEST_F(Ladder, Rule4FailsTheJobWhenTheLastReportSaysFailed) {
  activate();
  cancel(1010);
  EXPECT_EQ(judge(1050, result(1050, outcome::failed, "d")).reason, reason::reconciled);
  EXPECT_EQ(lease.state, lease_state::failed);
  EXPECT_EQ(lease.terminal_result, outcome::failed);
}

TEST_F(Ladder, Rule4TakesAReleaseForACancelAndRemembersIt) {
  activate();
  cancel(1010);
  EXPECT_EQ(release(1050, "r").reason, reason::reconciled);
  EXPECT_EQ(lease.state, lease_state::cancelled);
  EXPECT_EQ(lease.terminal_detail, "");
  EXPECT_FALSE(lease.reported);
  EXPECT_EQ(release(1051, "r").reason, reason::duplicate_request);
}

TEST_F(Ladder, Rule4CountsNoReportOlderThanWhatWasHeardBefore) {
  activate();
  progress(1010, 1);
  cancel(1010);
  EXPECT_EQ(judge(1050, result(1009, outcome::cancelled)).reason, reason::lease_expired);
  EXPECT_EQ(lease.unproven_count(), 1);
  EXPECT_EQ(judge(1050, result(1010, outcome::cancelled)).reason, reason::reconciled);
}

TEST_F(Ladder, Rules5And6CompareTheGeneration) {
  activate();
  offer(1200);
  ack(1200);
  auto what = sequenced(event_kind::progress, 1200, 1);
  what.gen = generation{3};
  EXPECT_EQ(of(judge(1200, what)),
            (said{rejected, reason::unknown_generation, rule_id::generation_above}));
  EXPECT_FALSE(rows.back().answer.flags.late_progress);
  what.gen = generation{2};
  EXPECT_EQ(judge(1200, what).decision, accepted);
  what.gen = generation{1};
  EXPECT_EQ(of(judge(1200, what)),
            (said{rejected, reason::stale_generation, rule_id::generation_below}));
  EXPECT_EQ(rows.back().answer.flags, (row_flags{.stale_generation = true, .late_progress = true}));
}

TEST_F(Ladder, Rule7FreezesALiveLeaseThatAnotherHolderSpeaksFor) {
  chosen.on_conflict = on_conflict::freeze;
  activate();
  auto stranger = sequenced(event_kind::renew, 1010, 1);
  stranger.from = holder{"b"};
  EXPECT_EQ(of(judge(1010, stranger)),
            (said{rejected, reason::ownership_conflict, rule_id::other_holder_live}));
  EXPECT_TRUE(rows.back().answer.flags.ownership_conflict);
  EXPECT_TRUE(lease.frozen);
  EXPECT_EQ(of(renew(1010, 1)), (said{rejected, reason::lease_frozen, rule_id::frozen}));
  EXPECT_TRUE(rows.back().answer.flags.ownership_conflict);
}

TEST_F(Ladder, Rule7aResolvesByTheStoredRecordAtOnce) {
  activate();
  auto stranger = sequenced(event_kind::renew, 1010, 1);
  stranger.from = holder{"b"};
  judge(1010, stranger);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(of(rows[1].answer),
            (said{applied, reason::record_confirms_holder, rule_id::resolved_by_record}));
  EXPECT_FALSE(rows[1].has_input);
  EXPECT_FALSE(lease.frozen);
  EXPECT_EQ(renew(1010, 1).reason, reason::renewed);
}

TEST_F(Ladder, Rule8RefusesAnotherHolderOfALeaseThatIsNotLive) {
  activate();
  release(1010);
  auto stranger = sequenced(event_kind::progress, 1010, 1);
  stranger.from = holder{"b"};
  EXPECT_EQ(of(judge(1010, stranger)),
            (said{rejected, reason::holder_mismatch, rule_id::other_holder}));
  EXPECT_TRUE(rows.back().answer.flags.late_progress);
  EXPECT_FALSE(lease.frozen);
}

TEST_F(Ladder, Rule9ComparesAResultWithTheOneThatWasReported) {
  activate();
  judge(1010, result(1010, outcome::success, "d"));
  EXPECT_EQ(of(judge(1020, result(1020, outcome::success, "d"))),
            (said{ignored, reason::duplicate_terminal, rule_id::result_after_end}));
  EXPECT_EQ(judge(1020, result(1020, outcome::success, "e")).reason, reason::terminal_conflict);
  EXPECT_EQ(judge(1020, result(1020, outcome::failed, "d")).reason, reason::terminal_conflict);
}

TEST_F(Ladder, Rule9ComparesTheOutcomeAloneWhereNothingWasReported) {
  offer(1000);
  cancel(1010);
  EXPECT_EQ(judge(1020, result(1020, outcome::cancelled, "any")).reason,
            reason::duplicate_terminal);
  EXPECT_EQ(judge(1020, result(1020, outcome::success)).reason, reason::terminal_conflict);
}

TEST_F(Ladder, Rule9SaysSettledWhereAJobEndedWithoutAResult) {
  chosen.on_expiry = on_deadline::fail;
  activate();
  expire(1100);
  ASSERT_EQ(lease.state, lease_state::failed);
  EXPECT_EQ(of(judge(1100, result(1100, outcome::failed))),
            (said{rejected, reason::lease_settled, rule_id::result_after_end}));
}

TEST_F(Ladder, Rule9AnswersInRetryWaitToo) {
  activate();
  judge(1010, result(1010, outcome::failed, "d", true));
  ASSERT_EQ(lease.state, lease_state::retry_wait);
  EXPECT_EQ(judge(1011, result(1011, outcome::failed, "d", false)).reason,
            reason::duplicate_terminal);
  EXPECT_EQ(judge(1011, result(1011, outcome::success)).reason, reason::terminal_conflict);
}

TEST_F(Ladder, Rule10RefusesOtherKindsAfterTheEnd) {
  activate();
  judge(1010, result(1010, outcome::failed, "d", true));
  EXPECT_EQ(of(progress(1011, 1)), (said{rejected, reason::generation_closed, rule_id::after_end}));
  EXPECT_TRUE(rows.back().answer.flags.late_progress);
  cancel(1012);
  EXPECT_EQ(of(renew(1013, 1)), (said{rejected, reason::lease_settled, rule_id::after_end}));
}

TEST_F(Ladder, Rules11And12SayHowTheGenerationClosed) {
  offer(1000);
  judge(1001, operation(event_kind::withdraw));
  EXPECT_EQ(of(ack(1001)), (said{rejected, reason::offer_withdrawn, rule_id::closed}));
  offer(1002);
  judge(1003, frame(event_kind::decline, 1003));
  EXPECT_EQ(of(judge(1004, frame(event_kind::decline, 1004))),
            (said{ignored, reason::duplicate_decline, rule_id::repeated_close}));
  EXPECT_EQ(of(ack(1004)), (said{rejected, reason::offer_declined, rule_id::closed}));
  offer(1005);
  ack(1005);
  release(1006);
  EXPECT_EQ(of(renew(1006, 1)), (said{rejected, reason::lease_released, rule_id::closed}));
  offer(1007);
  ack(1007);
  revoke(1008);
  EXPECT_EQ(of(renew(1008, 1)), (said{rejected, reason::lease_revoked, rule_id::closed}));
}

TEST_F(Ladder, Rule13EndsAuthorityAtTheDeadlineItself) {
  activate();
  EXPECT_EQ(renew(1099, 1).reason, reason::renewed);
  EXPECT_EQ(lease.expires_at.ms, 1199);
  EXPECT_EQ(of(renew(1199, 2)), (said{rejected, reason::lease_expired, rule_id::expired}));
  EXPECT_TRUE(rows.back().answer.flags.lease_expired);
  EXPECT_EQ(renew(1200, 2).reason, reason::lease_expired);
}

TEST_F(Ladder, Rule15TakesTheSkewAndNotAMillisecondMore) {
  activate();
  EXPECT_EQ(judge(1010, sequenced(event_kind::renew, 1014, 1)).decision, accepted);
  EXPECT_EQ(judge(1010, sequenced(event_kind::renew, 1015, 2)).decision, accepted);
  EXPECT_EQ(of(judge(1010, sequenced(event_kind::renew, 1016, 3))),
            (said{rejected, reason::timestamp_in_future, rule_id::sent_in_future}));
  EXPECT_EQ(
      judge(1010, sequenced(event_kind::renew, std::numeric_limits<std::int64_t>::max(), 3)).reason,
      reason::timestamp_in_future);
}

TEST_F(Ladder, Rule16TakesTheSkewAndNotAMillisecondLess) {
  activate();
  EXPECT_EQ(of(judge(1010, sequenced(event_kind::progress, 994, 1, "v"))),
            (said{rejected, reason::timestamp_before_issue, rule_id::sent_before_issue}));
  EXPECT_TRUE(rows.back().answer.flags.late_progress);
  EXPECT_EQ(judge(1010, sequenced(event_kind::renew, 995, 1)).decision, accepted);
  EXPECT_EQ(judge(1010, sequenced(event_kind::renew, 996, 2)).decision, accepted);
}

TEST_F(Ladder, Rule7bCountsALateReportWhoseDecisionStands) {
  activate();
  expire(1100);
  const auto answer = judge(1110, result(1110, outcome::success));
  EXPECT_EQ(answer.reason, reason::lease_expired);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].kind, event_kind::stop);
  EXPECT_EQ(of(rows[1].answer),
            (said{applied, reason::holder_reported_stop, rule_id::holder_stopped}));
  EXPECT_EQ(lease.unproven_count(), 0);
  EXPECT_EQ(lease.terminal_result, outcome::none);
  judge(1111, result(1111, outcome::success));
  EXPECT_EQ(rows.size(), 1U);
}

TEST_F(Ladder, Rule7bCountsNoFrameThatRule2Refused) {
  activate();
  expire(1100);
  judge(1110, result(1110, outcome::none));
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_EQ(lease.unproven_count(), 1);
}

TEST_F(Ladder, Rule7bSettlesAnUnresolvedLeaseWhoseReleaseWasARepeat) {
  chosen.lock_delay = duration{0};
  activate();
  release(1010, "r");
  offer(1020);
  ack(1020);
  cancel(1030);
  expire(1060);
  ASSERT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(release(1070, "r").reason, reason::request_reused);
  EXPECT_EQ(lease.state, lease_state::cancelled);
  EXPECT_EQ(lease.terminal_result, outcome::cancelled);
  EXPECT_EQ(rows.back().kind, event_kind::stop);
}

TEST_F(Ladder, Rule7bFreesARevokedLeaseAfterTheLockDelay) {
  chosen.lock_delay = duration{10};
  activate();
  revoke(1010);
  EXPECT_EQ(lease.next_offer_at.ms, 1100);
  release(1020);
  EXPECT_EQ(lease.next_offer_at.ms, 1030);
}

}  // namespace
}  // namespace leasehold::protocol
