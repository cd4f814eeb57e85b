// The rules for the worker's side, one by one (stream.md).
#include <gtest/gtest.h>

#include "client/session_bench.hpp"

namespace leasehold::tests {
namespace {

using client::lost_reason;
using client::over_reason;
using protocol::event_kind;
using protocol::lease_state;
using protocol::outcome;
using protocol::reason;

template <class Body>
auto is() {
  return [](const protocol::coordinator_frame& f) { return std::holds_alternative<Body>(f.body); };
}

struct session_test : testing::Test {
  session_bench bench;
  protocol::lease_standing standing(const grant& what, std::int64_t row, lease_state state) {
    return {.lease = what.lease,
            .gen = what.gen,
            .row = {row},
            .state = state,
            .expires_at = bench.server_now() + protocol::duration{3000},
            .renew_sequence = {},
            .progress_sequence = {},
            .cancel_requested = false,
            .cancel_deadline = {}};
  }
  protocol::offer offer_frame(const grant& what, std::int64_t row) {
    protocol::offer offer;
    offer.standing = standing(what, row, lease_state::offered);
    offer.job = protocol::job_id(what.lease.value);
    offer.queue = "q";
    offer.lease_duration = {3000};
    return offer;
  }
};

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

// ---- R6, R9: what is kept ----------------------------------------------------------------------

TEST_F(session_test, AResultSurvivesAReconnectWithNewFrameIdAndTheSameContent) {
  bench.connect();
  const auto job = bench.start("L");
  bench.session.progress(bench.now, job, "nine of ten");
  bench.disconnect();
  bench.finish(job);
  bench.run_for(500);
  bench.connect();
  EXPECT_EQ(bench.coordinator.record("L").state, lease_state::completed);
  EXPECT_EQ(bench.coordinator.record("L").progress_value, "nine of ten");
  EXPECT_TRUE(bench.closed.contains(job));
}

TEST_F(session_test, AResultIsRepeatedUntilItsAnswerArrivesAndSettlesOnce) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  bench.finish(job);
  bench.run_for(3000);
  bench.disconnect();
  bench.swallow = [](const auto&) { return false; };
  bench.connect();
  const auto results = bench.sent_of(event_kind::result);
  EXPECT_GE(results.size(), 3U);
  for (const auto& again : results) EXPECT_EQ(again.what.sent_at, results[0].what.sent_at);
  EXPECT_EQ(bench.closed.at(job).reason, reason::duplicate_terminal);
}

TEST_F(session_test, AFinalVerdictOfAnEarlierSessionIsTaken) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  bench.finish(job);
  const auto id = bench.sent_of(event_kind::result)[0].what.frame_id;
  protocol::frame_verdict verdict{.answers = id,
                                  .epoch = 1,
                                  .decision = protocol::decision::deferred,
                                  .reason = reason::awaiting_activation,
                                  .outcome = protocol::reason_class::pending,
                                  .retry_after = {},
                                  .standing = {}};
  bench.session.receive(bench.now, {.frame_id = 70, .body = verdict});
  bench.run_for(2000);
  EXPECT_EQ(bench.sent_of(event_kind::result).size(), 1U) << "a deferred frame is not hurried";
  bench.disconnect();
  bench.connect();
  EXPECT_TRUE(bench.closed.empty());
  verdict.decision = protocol::decision::accepted;
  verdict.reason = reason::completed;
  verdict.outcome = protocol::reason_class::ok;
  bench.swallow = [](const auto&) { return false; };
  bench.hear(verdict);
  EXPECT_EQ(bench.closed.at(job).reason, reason::completed);
  EXPECT_EQ(bench.session.unanswered(), 0U);
}

TEST_F(session_test, RetryAfterIsHonoured) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  bench.finish(job);
  const auto id = bench.sent_of(event_kind::result)[0].what.frame_id;
  bench.session.receive(
      bench.now, {.frame_id = 71,
                  .body = protocol::frame_verdict{.answers = id,
                                                  .epoch = 1,
                                                  .decision = protocol::decision::rejected,
                                                  .reason = reason::store_unavailable,
                                                  .outcome = protocol::reason_class::retryable,
                                                  .retry_after = {4000},
                                                  .standing = {}}});
  bench.run_for(3500);
  EXPECT_EQ(bench.sent_of(event_kind::result).size(), 1U);
  bench.run_for(1000);
  EXPECT_EQ(bench.sent_of(event_kind::result).size(), 2U);
}

TEST_F(session_test, AResultWhoseTimestampIsRefusedIsStampedAnewOnce) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  bench.finish(job);
  const auto refuse_last = [&] {
    const auto id = bench.sent_of(event_kind::result).back().what.frame_id;
    bench.session.receive(
        bench.now, {.frame_id = 72,
                    .body = protocol::frame_verdict{.answers = id,
                                                    .epoch = 1,
                                                    .decision = protocol::decision::rejected,
                                                    .reason = reason::timestamp_in_future,
                                                    .outcome = protocol::reason_class::permanent,
                                                    .retry_after = {},
                                                    .standing = {}}});
    bench.settle();
  };
  bench.now.ms += 10;
  refuse_last();
  const auto results = bench.sent_of(event_kind::result);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].what.sent_at.ms, results[0].what.sent_at.ms + 10);
  refuse_last();
  EXPECT_EQ(bench.sent_of(event_kind::result).size(), 2U);
  EXPECT_EQ(bench.closed.at(job).reason, reason::timestamp_in_future);
}

TEST_F(session_test, OnlyTheNewestProgressIsKeptAndTheLastTravelsInTheResult) {
  bench.connect();
  const auto job = bench.start("L");
  bench.swallow = is<protocol::frame_verdict>();
  for (int n = 1; n <= 1000; ++n) {
    bench.session.progress(bench.now, job, std::to_string(n));
    bench.settle();
    ASSERT_LE(bench.session.unanswered(), 2U);
  }
  EXPECT_EQ(bench.sent_of(event_kind::progress).size(), 1U);
  bench.finish(job);
  EXPECT_EQ(bench.coordinator.record("L").progress_value, "1000");
  EXPECT_EQ(bench.session.unanswered(), 1U);
}

TEST_F(session_test, FramesInFlightAreBounded) {
  auto options = session_bench::options(100);
  options.most_in_flight = 10;
  bench.session = client::worker_session(options);
  bench.connect();
  bench.swallow = is<protocol::frame_verdict>();
  std::vector<grant> jobs;
  for (int n = 0; n < 50; ++n) bench.offer("L" + std::to_string(n));
  std::set<std::int64_t> answered;
  for (const auto& frame : bench.sent_of(event_kind::ack)) answered.insert(frame.what.frame_id);
  EXPECT_EQ(bench.starts.size(), 50U) << "Activated frees the place of its ACK";
  for (const auto& [job, times] : bench.starts) jobs.push_back(job);
  for (const auto& job : jobs) bench.finish(job);
  EXPECT_EQ(bench.sent_of(event_kind::result).size(), 10U);
  bench.swallow = [](const auto&) { return false; };
  bench.run_for(1000);
  EXPECT_EQ(bench.closed.size(), 50U);
}

// ---- R8 and the session ------------------------------------------------------------------------

TEST_F(session_test, ASupersededSessionStopsForGood) {
  bench.connect();
  const auto job = bench.start("L");
  bench.disconnect(4001);
  EXPECT_EQ(bench.lost.at(job), lost_reason::superseded);
  EXPECT_TRUE(bench.session.stopped());
  ASSERT_EQ(bench.over.size(), 1U);
  EXPECT_EQ(bench.over[0], over_reason::superseded);
  bench.session.open(bench.now);
  EXPECT_TRUE(bench.session.take_frames().empty());
}

TEST_F(session_test, WithoutAWelcomeTheSocketIsGivenUp) {
  bench.coordinator.mute = true;
  bench.connect();
  bench.run_for(2999);
  EXPECT_TRUE(bench.over.empty());
  bench.run_for(1);
  ASSERT_EQ(bench.over.size(), 1U);
  EXPECT_EQ(bench.over[0], over_reason::no_welcome);
}

TEST_F(session_test, SilenceForThreeIntervalsEndsTheSession) {
  bench.connect();
  bench.swallow = [](const auto&) { return true; };
  bench.run_for(29999);
  EXPECT_TRUE(bench.over.empty());
  bench.run_for(1);
  EXPECT_EQ(bench.over.at(0), over_reason::silent);
}

TEST_F(session_test, AnOfferThatOvertakesWelcomeIsTaken) {
  protocol::coordinator_frame late;
  bench.swallow = [&](const protocol::coordinator_frame& f) {
    if (!std::holds_alternative<protocol::welcome>(f.body)) return false;
    late = f;
    return true;
  };
  bench.connect();
  bench.offer("L");
  EXPECT_TRUE(bench.sent_of(event_kind::ack).empty());
  bench.session.receive(bench.now, late);
  bench.settle();
  EXPECT_EQ(bench.starts_of(grant_of("L", 1)), 1);
}

TEST_F(session_test, CreditIsAbsoluteAndRepeatedEveryTenSeconds) {
  bench.connect();
  EXPECT_EQ(bench.coordinator.credit().at("q"), 4);
  const auto credits = [&] {
    return std::count_if(bench.sent.begin(), bench.sent.end(), [](const auto& f) {
      return std::holds_alternative<protocol::credit>(f.body);
    });
  };
  const auto first = credits();
  bench.run_for(9999);
  EXPECT_EQ(credits(), first);
  bench.run_for(1);
  EXPECT_EQ(credits(), first + 1);
}

TEST_F(session_test, WorkThatStillStopsAfterALossTakesItsSlotFromTheCredit) {
  bench.connect();
  const auto job = bench.start("L");
  bench.coordinator.revoke(bench.server_now(), "L");
  bench.settle();
  EXPECT_EQ(bench.coordinator.credit().at("q"), 3);
  bench.finish(job, outcome::failed);
  EXPECT_EQ(bench.coordinator.credit().at("q"), 4);
}

TEST_F(session_test, AnOfferBeyondTheSlotsOrOfAnotherQueueIsDeclined) {
  for (int n = 0; n < 4; ++n)
    bench.connected ? bench.offer("L" + std::to_string(n)) : bench.connect();
  for (int n = 10; n < 12; ++n) bench.offer("L" + std::to_string(n));
  ASSERT_EQ(bench.sent_of(event_kind::decline).size(), 1U);
  EXPECT_EQ(bench.coordinator.record("L11").state, lease_state::declined);
  bench.coordinator.queue = "other";
  bench.offer("M");
  EXPECT_EQ(bench.sent_of(event_kind::decline).size(), 2U);
}

TEST_F(session_test, ADrainingWorkerTakesNothingMoreAndFinishesWhatItHas) {
  bench.connect();
  const auto job = bench.start("L");
  bench.session.drain(bench.now);
  bench.settle();
  EXPECT_EQ(bench.coordinator.credit().at("q"), 0);
  bench.offer("M");
  EXPECT_EQ(bench.coordinator.record("M").state, lease_state::declined);
  bench.run_for(5000);
  EXPECT_TRUE(bench.running.contains(job));
  bench.finish(job);
  EXPECT_EQ(bench.coordinator.record("L").state, lease_state::completed);
}

TEST_F(session_test, ADrainedCoordinatorIsLeftWhenTheWorkIsDoneOrTheTimeIsUp) {
  bench.connect();
  const auto job = bench.start("L");
  bench.hear(protocol::drain{bench.server_now() + protocol::duration{2000}, "elsewhere"});
  EXPECT_EQ(bench.coordinator.credit().at("q"), 0);
  bench.run_for(1999);
  EXPECT_TRUE(bench.over.empty());
  bench.run_for(1);
  EXPECT_EQ(bench.over.at(0), over_reason::moved);
  bench.disconnect();
  bench.connect();
  EXPECT_TRUE(bench.running.contains(job)) << "the work goes on: a socket is no authority";
  EXPECT_EQ(bench.coordinator.credit().at("q"), 4);
}

TEST_F(session_test, GoodbyeHandsBackWhatWasNotStarted) {
  bench.swallow = [](const auto& f) {
    return std::holds_alternative<protocol::activated>(f.body) ||
           std::holds_alternative<protocol::frame_verdict>(f.body);
  };
  bench.connect();
  bench.offer("L");
  ASSERT_EQ(bench.coordinator.record("L").state, lease_state::active);
  bench.session.goodbye(bench.now);
  bench.settle();
  EXPECT_EQ(bench.coordinator.record("L").state, lease_state::released);
  EXPECT_EQ(bench.over.at(0), over_reason::goodbye);
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
