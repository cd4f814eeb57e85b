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

/// The names of processes that were said, in order.
std::vector<std::pair<std::int64_t, protocol::process_registration>> named(
    const session_bench& bench) {
  std::vector<std::pair<std::int64_t, protocol::process_registration>> found;
  for (const auto& frame : bench.sent) {
    const auto* body = std::get_if<protocol::process_registration>(&frame.body);
    if (body != nullptr) found.emplace_back(frame.frame_id, *body);
  }
  return found;
}

const protocol::process_handle some_process{"linux", 4242, "01234567-89ab-cdef-0123-456789abcdef",
                                            77, 4242};

TEST_F(session_test, AProcessIsNamedUntilItIsAnsweredAlsoInTheNextSession) {
  bench.connect();
  const auto job = bench.start("L");
  bench.session.register_process(bench.now, job, some_process);
  bench.settle();
  ASSERT_EQ(named(bench).size(), 1U);
  EXPECT_EQ(named(bench)[0].second.process, some_process);
  EXPECT_EQ(named(bench)[0].second.gen, job.gen);
  bench.run_for(600);
  EXPECT_GE(named(bench).size(), 2U);
  bench.disconnect();
  const auto before = named(bench).size();
  bench.connect();
  ASSERT_EQ(named(bench).size(), before + 1);
  protocol::frame_verdict verdict{.answers = named(bench).back().first,
                                  .epoch = 0,
                                  .decision = protocol::decision::accepted,
                                  .reason = reason::process_registered,
                                  .outcome = protocol::reason_class::ok,
                                  .retry_after = {},
                                  .standing = {}};
  bench.hear(verdict);
  bench.run_for(6'000);
  EXPECT_EQ(named(bench).size(), before + 1);
}

TEST_F(session_test, AProcessThatIsRefusedForGoodIsNotNamedAgain) {
  bench.connect();
  const auto job = bench.start("L");
  bench.session.register_process(bench.now, job, some_process);
  bench.settle();
  bench.hear(protocol::frame_verdict{.answers = named(bench).back().first,
                                     .epoch = 0,
                                     .decision = protocol::decision::rejected,
                                     .reason = reason::unsupported_frame,
                                     .outcome = protocol::reason_class::permanent,
                                     .retry_after = {},
                                     .standing = {}});
  bench.run_for(6'000);
  EXPECT_EQ(named(bench).size(), 1U);
  EXPECT_FALSE(bench.lost.contains(job));
}

TEST_F(session_test, AProcessOfWorkThatHasEndedIsNotNamed) {
  bench.connect();
  const auto job = bench.start("L");
  bench.finish(job);
  bench.session.register_process(bench.now, job, some_process);
  bench.settle();
  EXPECT_TRUE(named(bench).empty());
}

}  // namespace
}  // namespace leasehold::tests
