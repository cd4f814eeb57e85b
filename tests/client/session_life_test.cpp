// The rules for the worker's side (stream.md): the session, its credit and its end.
#include "client/session_case.hpp"

namespace leasehold::tests {
namespace {

using client::lost_reason;
using client::over_reason;
using protocol::event_kind;
using protocol::lease_state;
using protocol::outcome;

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

TEST(session, WhereOthersMayServeAnUnansweredFrameAndSilenceEndIt) {
  auto chosen = session_bench::options(4);
  chosen.answer_silence = {2000};
  session_bench bench(chosen);
  bench.connect();
  bench.start("L");
  const auto renews = [&] { return bench.sent_of(event_kind::renew).size(); };
  const auto before = renews();
  bench.swallow = [](const auto&) { return true; };
  while (renews() == before && bench.now.ms < 60'000) bench.run_for(1);
  bench.run_for(1998);
  EXPECT_TRUE(bench.over.empty());
  bench.run_for(2);
  ASSERT_EQ(bench.over.size(), 1U);
  EXPECT_EQ(bench.over[0], over_reason::silent);
}

TEST(session, WhereOthersMayServeSilenceAloneIsNotTheEnd) {
  auto chosen = session_bench::options(4);
  chosen.answer_silence = {2000};
  session_bench bench(chosen);
  bench.connect();
  bench.swallow = [](const auto&) { return true; };
  bench.run_for(9000);
  EXPECT_TRUE(bench.over.empty());
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

}  // namespace
}  // namespace leasehold::tests
