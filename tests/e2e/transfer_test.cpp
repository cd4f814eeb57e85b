// The transfer to a streaming transport that reorders [L15]: what arrives in which order changes
// nothing about who owns the lease.
#include <algorithm>
#include <array>
#include <numeric>

#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::decision;
using protocol::event_kind;
using protocol::outcome;
using protocol::reason;
using protocol::reason_class;

class transfer : public on_threads {};
LEASEHOLD_ON_THREADS(transfer);

const json::object long_terms{
    {"lease_duration_ms", 3'600'000}, {"ack_timeout_ms", 3'600'000}, {"max_clock_skew_ms", 60000}};

TEST_P(transfer, FramesThatOvertakeTheAckAreKeptAndJudgedAtTheActivation) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("early", long_terms);
  ASSERT_TRUE(worker.offer_of("early"));
  const auto first = worker.say_all(
      {worker.progress("early", 1, 2, "two"), worker.frame(event_kind::renew, "early", 1, 2),
       worker.progress("early", 1, 1, "one"), worker.frame(event_kind::renew, "early", 1, 1),
       worker.progress("early", 1, 2, "two")});
  for (auto id = first; id < first + 5; ++id) {
    const auto kept = worker.verdict_of(id);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->decision, decision::deferred);
    EXPECT_EQ(kept->reason, reason::awaiting_activation);
    EXPECT_EQ(kept->outcome, reason_class::pending);
    EXPECT_EQ(kept->standing.state, protocol::lease_state::offered);
  }
  expect_columns(
      server.job("early"),
      {{"state", "offered"}, {"deferred", 5}, {"renew_sequence", 0}, {"progress_sequence", 0}});
  const auto began = worker.start("early", 1);
  struct final_answer {
    std::int64_t offset;
    decision what;
    reason why;
  };
  for (const auto& [offset, what, why] :
       std::array<final_answer, 5>{{{3, decision::accepted, reason::renewed},
                                    {1, decision::accepted, reason::renewed},
                                    {2, decision::accepted, reason::progress_recorded},
                                    {0, decision::accepted, reason::progress_recorded},
                                    {4, decision::ignored, reason::duplicate_progress}}}) {
    const auto last = worker.verdict_of(first + offset);
    ASSERT_TRUE(last) << offset;
    EXPECT_EQ(last->decision, what) << offset;
    EXPECT_EQ(last->reason, why) << offset;
  }
  expect_columns(server.job("early"), {{"state", "active"},
                                       {"generation", 1},
                                       {"holder_identity", worker.holder().value},
                                       {"deferred", 0},
                                       {"renew_sequence", 2},
                                       {"renew_time", began.acquired_at.ms},
                                       {"progress_sequence", 2},
                                       {"progress_value", "two"}});
  expect_replayable(server, "early");
  expect_proven(server);
}

TEST_P(transfer, AResultThatOvertakesTheAckCompletesTheJobOnlyAtTheActivation) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("hasty", long_terms);
  ASSERT_TRUE(worker.offer_of("hasty"));
  const auto id = worker.say(worker.result("hasty", 1, outcome::success, "all"));
  EXPECT_EQ(worker.verdict_of(id).value().decision, decision::deferred);
  expect_columns(server.job("hasty"), {{"state", "offered"}, {"terminal_result", "none"}});
  EXPECT_EQ(worker.tell(worker.frame(event_kind::ack, "hasty", 1)).reason, reason::ack_accepted);
  EXPECT_EQ(worker.verdict_of(id).value().reason, reason::completed);
  expect_columns(server.job("hasty"), {{"state", "completed"}, {"terminal_detail", "all"}});
  expect_replayable(server, "hasty");
  expect_proven(server);
}

/// What the order of arrival must not change.
json::object owner_and_progress(const json::object& job) {
  json::object out;
  for (const auto* column : {"generation", "holder_identity", "state", "ack_state",
                             "renew_sequence", "progress_sequence", "progress_value", "attempt",
                             "terminal_result", "cancel_requested_at", "deferred"}) {
    out[column] = job.at(column);
  }
  return out;
}

std::vector<frame_body> story_of(const stream_peer& worker, const std::string& job) {
  return {worker.frame(event_kind::ack, job, 1), worker.frame(event_kind::renew, job, 1, 1),
          worker.frame(event_kind::renew, job, 1, 2), worker.progress(job, 1, 1, "one"),
          worker.progress(job, 1, 2, "two")};
}

TEST_P(transfer, EveryOrderOfFiveFramesEndsWithTheSameOwnerAndTheSameProgress) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1000);
  std::array<std::size_t, 5> order{0, 1, 2, 3, 4};
  std::vector<std::string> jobs;
  do {
    const auto job = "order-" + std::to_string(jobs.size());
    server.submit(job, long_terms);
    ASSERT_TRUE(worker.offer_of(job));
    const auto story = story_of(worker, job);
    // Every second one in messages of their own, and each with its last frame twice.
    std::vector<frame_body> frames;
    frames.reserve(order.size() + 1);
    for (const auto i : order) frames.push_back(story[i]);
    frames.push_back(frames.back());
    if (jobs.size() % 2 == 0) {
      worker.say_all(std::move(frames));
    } else {
      for (auto& one : frames) worker.say(std::move(one));
    }
    jobs.push_back(job);
  } while (std::ranges::next_permutation(order).found);
  ASSERT_EQ(jobs.size(), 120U);
  // Frames of one session are judged in its order, so the last answer is behind all others.
  worker.tell(worker.frame(event_kind::renew, jobs.back(), 1, 2));

  const auto expected = owner_and_progress(server.job(jobs.front()));
  EXPECT_EQ(expected.at("state"), "active");
  EXPECT_EQ(expected.at("renew_sequence"), 2);
  EXPECT_EQ(expected.at("progress_value"), "two");
  EXPECT_EQ(expected.at("holder_identity").as_string(), worker.holder().value);
  for (const auto& job : jobs) {
    ASSERT_TRUE(eventually([&] { return owner_and_progress(server.job(job)) == expected; }))
        << job << ": " << json::serialize(owner_and_progress(server.job(job))) << " and not "
        << json::serialize(expected);
  }
  expect_replayable(server, jobs.at(77));
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
