// The rules for the worker's side (stream.md): how long its authority lasts.
#include "client/session_case.hpp"

namespace leasehold::tests {
namespace {

using client::lost_reason;
using protocol::event_kind;
using protocol::lease_state;
using protocol::outcome;

// ---- R4: the local deadline --------------------------------------------------------------------

TEST_F(session_test, WorkIsGivenUpATenthOfTheTermBeforeItsEndWhenNobodyAnswers) {
  bench.connect();
  const auto job = bench.start("L");
  const auto activated = bench.now;
  bench.disconnect();
  bench.run_for(2699);
  EXPECT_TRUE(bench.running.contains(job)) << "one ms before the margin";
  bench.run_for(1);
  EXPECT_EQ(bench.lost.at(job), lost_reason::local_deadline);
  EXPECT_EQ(bench.deadlines.at(job).ms, activated.ms + 2700);
}

TEST_F(session_test, TheMarginIsAtLeast100Ms) {
  EXPECT_EQ(client::safety_margin({999}).ms, 100);
  EXPECT_EQ(client::safety_margin({1000}).ms, 100);
  EXPECT_EQ(client::safety_margin({1010}).ms, 101);
}

TEST_F(session_test, TheDeadlineCountsFromWhenTheAcceptedRenewWasSent) {
  // Every frame takes 200 ms: the answer of a renew must not be taken for the time of its sending.
  client::chaos_options delayed;
  delayed.delay_least = delayed.delay_most = {200};
  session_bench slow(delayed);
  slow.connect();
  slow.run_for(400);
  slow.offer("L");
  slow.run_for(600);
  const auto job = grant_of("L", 1);
  ASSERT_EQ(slow.starts_of(job), 1);
  for (int n = 0; n < 5000; ++n) {
    slow.run_for(1);
    ASSERT_LE(slow.deadlines.at(job).ms + session_bench::ahead_ms + 300,
              slow.coordinator.record("L").expires_at.ms);
  }
  EXPECT_TRUE(slow.running.contains(job));
}

TEST_F(session_test, AToldEndThatIsEarlierCounts) {
  bench.connect();
  const auto job = bench.start("L");
  auto sooner = standing(job, 500, lease_state::active);
  sooner.expires_at = bench.server_now() + protocol::duration{1000};
  bench.hear(protocol::activated{sooner, {}});
  EXPECT_EQ(bench.deadlines.at(job).ms, bench.now.ms + 700);
}

TEST_F(session_test, AfterALossOnlyTheResultIsSent) {
  bench.connect();
  const auto job = bench.start("L");
  bench.disconnect();
  bench.run_for(2700);
  ASSERT_TRUE(bench.lost.contains(job));
  bench.connect();
  bench.session.progress(bench.now, job, "still here");
  const auto before = bench.sent.size();
  bench.run_for(200);
  for (auto n = before; n < bench.sent.size(); ++n) {
    EXPECT_FALSE(std::holds_alternative<protocol::lease_frame>(bench.sent[n].body));
  }
  bench.session.release(bench.now, job);  // what stopped after a loss is reported as a failure
  bench.settle();
  EXPECT_TRUE(bench.sent_of(event_kind::release).empty());
  ASSERT_EQ(bench.sent_of(event_kind::result).size(), 1U);
  EXPECT_EQ(bench.sent_of(event_kind::result)[0].what.ending, outcome::failed);
  EXPECT_EQ(bench.session.grants(), 0U);
}

// ---- R5: renewing ------------------------------------------------------------------------------

TEST_F(session_test, RenewsComeAtAThirdOfTheTermForAsLongAsTheWorkRuns) {
  bench.connect();
  const auto job = bench.start("L");
  bench.run_for(30000);
  EXPECT_TRUE(bench.running.contains(job));
  const auto renews = bench.coordinator.record("L").renew_sequence.value;
  EXPECT_GE(renews, 26);
  EXPECT_LE(renews, 34);
}

TEST_F(session_test, ARenewThatIsNotAnsweredIsSentAgainWithTheSameSequenceAndContent) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  bench.run_for(1900);
  const auto renews = bench.sent_of(event_kind::renew);
  ASSERT_GE(renews.size(), 2U);
  for (const auto& again : renews) {
    EXPECT_EQ(again.what.seq.value, 1);
    EXPECT_EQ(again.what.sent_at, renews[0].what.sent_at);
  }
  EXPECT_NE(renews[0].what.frame_id, renews[1].what.frame_id);
  bench.swallow = [](const auto&) { return false; };
  bench.run_for(3000);
  EXPECT_TRUE(bench.running.contains(job));
}

TEST_F(session_test, ARenewIsResentAfterAReconnectWithTheSameSequence) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  bench.run_for(1150);
  ASSERT_FALSE(bench.sent_of(event_kind::renew).empty());
  bench.disconnect();
  bench.swallow = [](const auto&) { return false; };
  bench.connect();
  EXPECT_EQ(bench.sent_of(event_kind::renew).back().what.seq.value >= 1, true);
  bench.run_for(5000);
  EXPECT_TRUE(bench.running.contains(job));
}

TEST_F(session_test, ALifetimeThatIsUsedUpEndsRenewingAndThenTheWork) {
  bench.coordinator.policy.max_lifetime = {5000};
  bench.connect();
  const auto job = bench.start("L");
  bench.run_for(4600);
  EXPECT_TRUE(bench.running.contains(job));
  bench.run_for(200);
  EXPECT_EQ(bench.lost.at(job), lost_reason::local_deadline);
}

TEST_F(session_test, ARevokedLeaseIsLostEvenWhenOnlyTheRenewsAnswerTells) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::lease_lost>();
  bench.coordinator.revoke(bench.server_now(), "L");
  bench.run_for(1200);
  EXPECT_EQ(bench.lost.at(job), lost_reason::revoked);
}

// ---- cancel ------------------------------------------------------------------------------------

TEST_F(session_test, ACancelIsAcknowledgedOnceAndEndsWithACancelledResult) {
  bench.connect();
  const auto job = bench.start("L");
  bench.coordinator.cancel(bench.server_now(), "L");
  bench.settle();
  EXPECT_TRUE(bench.cancelled.contains(job));
  bench.run_for(100);
  EXPECT_EQ(bench.sent_of(event_kind::cancel_ack).size(), 1U);
  EXPECT_NE(bench.coordinator.record("L").cancel_acked_at.ms, 0);
  bench.finish(job, outcome::cancelled);
  EXPECT_EQ(bench.coordinator.record("L").state, lease_state::cancelled);
}

TEST_F(session_test, ACancelWhoseNoticeIsLostIsHeardFromTheNextVerdict) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::cancel_notice>();
  bench.coordinator.cancel(bench.server_now(), "L");
  bench.settle();
  EXPECT_FALSE(bench.cancelled.contains(job));
  bench.session.progress(bench.now, job, "on");
  bench.settle();
  EXPECT_TRUE(bench.cancelled.contains(job));
}

TEST_F(session_test, WorkThatIsCancelledIsGivenUpBeforeTheCancelDeadline) {
  bench.connect();
  const auto job = bench.start("L");
  bench.coordinator.cancel(bench.server_now(), "L");
  bench.settle();
  bench.run_for(699);
  EXPECT_FALSE(bench.lost.contains(job));
  bench.run_for(1);
  EXPECT_EQ(bench.lost.at(job), lost_reason::local_deadline);
}

}  // namespace
}  // namespace leasehold::tests
