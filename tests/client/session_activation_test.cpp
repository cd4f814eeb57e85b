// The rules for the worker's side (stream.md): what begins work, and what is passed over.
#include "client/session_case.hpp"

namespace leasehold::tests {
namespace {

using client::lost_reason;
using protocol::event_kind;
using protocol::lease_state;
using protocol::outcome;
using protocol::reason;

TEST_F(session_test, AJobRunsFromOfferToItsFinalAnswer) {
  bench.connect();
  const auto job = bench.start("L");
  EXPECT_EQ(bench.starts_of(job), 1);
  bench.session.progress(bench.now, job, "half");
  bench.settle();
  EXPECT_EQ(bench.coordinator.record("L").progress_value, "half");
  bench.finish(job);
  EXPECT_EQ(bench.coordinator.record("L").state, lease_state::completed);
  ASSERT_TRUE(bench.closed.contains(job));
  EXPECT_EQ(bench.closed.at(job).reason, reason::completed);
  EXPECT_EQ(bench.session.grants(), 0U);
  EXPECT_EQ(bench.session.unanswered(), 0U);
}

// ---- R1, R2: what shows activation, and what is old --------------------------------------------

TEST_F(session_test, AVerdictOfTheAckStartsTheWorkWhenActivatedIsLost) {
  bench.swallow = is<protocol::activated>();
  bench.connect();
  EXPECT_EQ(bench.starts_of(bench.start("L")), 1);
}

TEST_F(session_test, ActivatedStartsTheWorkWhenTheVerdictIsLate) {
  std::vector<protocol::coordinator_frame> late;
  bench.swallow = [&](const protocol::coordinator_frame& f) {
    const bool verdict = std::holds_alternative<protocol::frame_verdict>(f.body);
    if (verdict) late.push_back(f);
    return verdict;
  };
  bench.connect();
  const auto job = bench.start("L");
  EXPECT_EQ(bench.starts_of(job), 1);
  bench.swallow = [](const auto&) { return false; };
  for (const auto& f : late) bench.session.receive(bench.now, f);
  bench.settle();
  EXPECT_EQ(bench.starts_of(job), 1);
}

TEST_F(session_test, TheRepeatedAckStartsTheWorkWhenAllFirstAnswersAreLost) {
  bench.swallow = [](const auto& f) {
    return !std::holds_alternative<protocol::welcome>(f.body) &&
           !std::holds_alternative<protocol::offer>(f.body);
  };
  bench.connect();
  const auto job = bench.start("L");
  EXPECT_EQ(bench.starts_of(job), 0);
  bench.swallow = [](const auto&) { return false; };
  bench.run_for(700);
  EXPECT_EQ(bench.starts_of(job), 1);
  EXPECT_GE(bench.sent_of(event_kind::ack).size(), 2U);
}

TEST_F(session_test, WelcomesListStartsWorkWhoseActivationWasLost) {
  bench.swallow = [](const auto& f) {
    return std::holds_alternative<protocol::activated>(f.body) ||
           std::holds_alternative<protocol::frame_verdict>(f.body);
  };
  bench.connect();
  const auto job = bench.start("L");
  bench.disconnect();
  EXPECT_EQ(bench.starts_of(job), 0);
  bench.connect();
  EXPECT_EQ(bench.starts_of(job), 1);
}

TEST_F(session_test, WorkStartsOnceHoweverOftenItsActivationIsTold) {
  bench.connect();
  const auto job = bench.start("L");
  for (int n = 0; n < 3; ++n)
    bench.hear(protocol::activated{standing(job, 90 + n, lease_state::active), {}});
  bench.hear(offer_frame(job, 99));
  bench.disconnect();
  bench.connect();
  EXPECT_EQ(bench.starts_of(job), 1);
}

TEST_F(session_test, LeaseLostOfAnOlderGenerationLeavesTheNewerOneAlone) {
  bench.connect();
  const auto first = bench.start("L");
  bench.finish(first, outcome::none);  // handed back
  const auto second = bench.start("L");
  ASSERT_EQ(second.gen.value, 2);
  bench.hear(protocol::lease_lost{{first.lease, first.gen, {999}, protocol::loss::expired}});
  EXPECT_TRUE(bench.running.contains(second));
  EXPECT_TRUE(bench.lost.empty());
}

TEST_F(session_test, LeaseLostWithAnOlderRowIsOldNews) {
  bench.connect();
  const auto job = bench.start("L");
  bench.hear(protocol::activated{standing(job, 500, lease_state::active), {}});
  bench.hear(protocol::lease_lost{{job.lease, job.gen, {499}, protocol::loss::expired}});
  EXPECT_TRUE(bench.running.contains(job));
  bench.hear(protocol::lease_lost{{job.lease, job.gen, {501}, protocol::loss::revoked}});
  EXPECT_EQ(bench.lost.at(job), lost_reason::revoked);
}

TEST_F(session_test, AnOfferThatComesTwiceAfterItsEndIsNotTakenAgain) {
  bench.connect();
  const auto job = bench.start("L");
  bench.finish(job);
  const auto acks = bench.sent_of(event_kind::ack).size();
  bench.hear(offer_frame(job, 1));
  bench.hear(offer_frame(job, 1000));
  EXPECT_EQ(bench.sent_of(event_kind::ack).size(), acks);
  EXPECT_EQ(bench.starts_of(job), 1);
}

TEST_F(session_test, ANewerGenerationWaitsUntilTheWorkOfTheFormerHasStopped) {
  bench.connect();
  const auto first = bench.start("L");
  const auto second = grant_of("L", 2);
  bench.hear(offer_frame(second, 500));
  EXPECT_EQ(bench.lost.at(first), lost_reason::expired);
  EXPECT_EQ(bench.sent_of(event_kind::ack).size(), 1U);
  bench.finish(first, outcome::failed);
  ASSERT_EQ(bench.sent_of(event_kind::ack).size(), 2U);
  EXPECT_EQ(bench.sent_of(event_kind::ack).back().what.gen, second.gen);
}

// ---- R3, R7: what is not run here --------------------------------------------------------------

TEST_F(session_test, ACancelBeforeItsOfferIsAcknowledgedAndTheOfferIsNotStarted) {
  bench.connect();
  const auto job = grant_of("L", 1);
  auto asked = standing(job, 50, lease_state::active);
  asked.cancel_requested = true;
  bench.hear(protocol::cancel_notice{asked});
  bench.hear(offer_frame(job, 40));
  bench.run_for(100);
  EXPECT_EQ(bench.sent_of(event_kind::cancel_ack).size(), 1U);
  EXPECT_TRUE(bench.sent_of(event_kind::ack).empty());
  EXPECT_EQ(bench.starts_of(job), 0);
}

TEST_F(session_test, ACancelThatOvertakesActivatedEndsTheGrantWithoutWork) {
  bench.connect();
  bench.swallow = [](const auto& f) {
    return std::holds_alternative<protocol::activated>(f.body) ||
           std::holds_alternative<protocol::frame_verdict>(f.body);
  };
  const auto job = bench.start("L");
  bench.coordinator.cancel(bench.server_now(), "L");
  bench.settle();
  EXPECT_EQ(bench.starts_of(job), 0);
  EXPECT_EQ(bench.coordinator.record("L").state, lease_state::cancelled);
}

TEST_F(session_test, AResumedLeaseThatIsNotRunHereIsReleased) {
  bench.connect();
  bench.start("L");
  bench.disconnect();
  session_bench restarted;  // the same identity, but another process: nothing runs in it
  restarted.coordinator = bench.coordinator;
  restarted.now = bench.now;
  restarted.connect();
  ASSERT_EQ(restarted.sent_of(event_kind::release).size(), 1U);
  EXPECT_EQ(restarted.coordinator.record("L").state, lease_state::released);
  EXPECT_TRUE(restarted.starts.empty());
}

TEST_F(session_test, FramesAboutLeasesThatAreNotRunHereAreAnsweredByNothing) {
  bench.connect();
  const auto before = bench.sent.size();
  bench.hear(protocol::lease_lost{{protocol::lease_id("X"), {3}, {9}, protocol::loss::expired}});
  bench.hear(protocol::activated{standing(grant_of("Y", 1), 3, lease_state::active), {}});
  EXPECT_EQ(bench.sent.size(), before);
}

}  // namespace
}  // namespace leasehold::tests
