// The rules for the worker's side (stream.md): what is kept until it is answered.
#include "client/session_case.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

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

}  // namespace
}  // namespace leasehold::tests
