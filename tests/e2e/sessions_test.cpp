// What the coordinator tells a session without being asked, and what a session leaves behind.
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::close_code;
using protocol::decision;
using protocol::event_kind;
using protocol::loss;
using protocol::outcome;
using protocol::reason;

class sessions : public on_threads {
 protected:
  live_server server{GetParam()};

  void TearDown() override { expect_proven(server); }

  /// Nothing ends by itself.
  void submit(const std::string& job) {
    server.submit(job, {{"lease_duration_ms", 3'600'000},
                        {"ack_timeout_ms", 3'600'000},
                        {"cancel_grace_ms", 3'600'000},
                        {"retry_backoff_ms", 3'600'000},
                        {"retry_backoff_max_ms", 3'600'000},
                        {"max_clock_skew_ms", 3'600'000}});
  }
  void operate(const std::string& job, const std::string& what) {
    const auto said = server.post("/v1/jobs/" + job + ":" + what, {}, "operator");
    EXPECT_EQ(said.status, 200) << said.text;
  }
  void start(stream_peer& worker, const std::string& job) {
    submit(job);
    ASSERT_TRUE(worker.offer_of(job));
    worker.start(job, 1);
  }
};
LEASEHOLD_ON_THREADS(sessions);

TEST_P(sessions, ACancelIsToldAtOnceAndAtEveryReturnUntilItIsAcknowledged) {
  std::optional<stream_peer> worker(std::in_place, server, "w1");
  worker->hello();
  worker->credit(1);
  start(*worker, "told");
  operate("told", "cancel");
  const auto first = worker->await<protocol::cancel_notice>();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->standing.lease.value, "told");
  EXPECT_GT(first->standing.cancel_deadline.ms, 0);
  for (int back = 0; back < 2; ++back) {
    worker->vanish();
    worker.emplace(server, "w1");
    const auto welcome = worker->hello({{protocol::lease_id{"told"}, {1}, {}}});
    ASSERT_EQ(welcome.resumed.size(), 1U);
    EXPECT_TRUE(welcome.resumed[0].cancel_requested);
    EXPECT_TRUE(worker->await<protocol::cancel_notice>());
  }
  EXPECT_EQ(worker->tell(worker->frame(event_kind::cancel_ack, "told", 1)).reason,
            reason::cancel_acknowledged);
  EXPECT_EQ(worker->tell(worker->result("told", 1, outcome::cancelled)).reason,
            reason::cancel_completed);
}

TEST_P(sessions, ARevokeIsToldToTheHolder) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  start(worker, "taken");
  operate("taken", "revoke");
  const auto lost = worker.loss_of("taken");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lost.why, loss::revoked);
  EXPECT_EQ(lost->lost.gen.value, 1);
}

TEST_P(sessions, TheFinalAnswerToAnEarlyFrameComesInALaterSession) {
  std::optional<stream_peer> worker(std::in_place, server, "w1");
  worker->hello();
  worker->credit(1);
  submit("early");
  ASSERT_TRUE(worker->offer_of("early"));
  const auto early = worker->say(worker->frame(event_kind::renew, "early", 1, 1));
  const auto kept = worker->verdict_of(early);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->decision, decision::deferred);
  worker->vanish();

  worker.emplace(server, "w1");
  const auto welcome = worker->hello({{protocol::lease_id{"early"}, {1}, {}}});
  ASSERT_EQ(welcome.resumed.size(), 1U);
  EXPECT_EQ(welcome.resumed[0].state, protocol::lease_state::offered);
  worker->start("early", 1);
  const auto last = worker->await<protocol::frame_verdict>(
      [&](const protocol::frame_verdict& v) { return v.epoch == kept->epoch; });
  ASSERT_TRUE(last);
  EXPECT_EQ(last->answers, early);
  EXPECT_EQ(last->reason, reason::renewed);
}

TEST_P(sessions, AnEarlyFrameIsJudgedThoughTheCoordinatorWasKilledBeforeTheAck) {
  std::optional<stream_peer> worker(std::in_place, server, "w1");
  worker->hello();
  worker->credit(1);
  submit("durable");
  ASSERT_TRUE(worker->offer_of("durable"));
  EXPECT_EQ(worker->tell(worker->progress("durable", 1, 4, "four")).decision, decision::deferred);
  server.kill();
  server.start();
  worker.emplace(server, "w1");
  worker->hello({{protocol::lease_id{"durable"}, {1}, {}}});
  worker->start("durable", 1);
  expect_columns(server.job("durable"),
                 {{"progress_sequence", 4}, {"progress_value", "four"}, {"deferred", 0}});
  expect_replayable(server, "durable");
}

TEST_P(sessions, AGoodbyeHandsBackWhatItListsAndNothingElse) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(2);
  start(worker, "back");
  start(worker, "kept");
  worker.say(protocol::goodbye{{{protocol::lease_id{"back"}, {1}, {}}}});
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::goodbye));
  expect_columns(server.job("back"), {{"state", "released"}, {"attempt", 0}, {"losses", 1}});
  expect_columns(server.job("kept"), {{"state", "active"}});
}

TEST_P(sessions, ADisconnectChangesNoAuthority) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  start(worker, "alone");
  const auto before = server.job("alone");
  worker.vanish();
  EXPECT_TRUE(eventually(
      [this] { return server.get("/v1/workers").body.at("workers").as_array().empty(); }));
  EXPECT_EQ(server.job("alone"), before);
}

TEST_P(sessions, OffersGoToWhoeverHasCredit) {
  stream_peer first(server, "w1");
  stream_peer second(server, "w2", 'b');
  first.hello();
  second.hello();
  first.credit(1);
  second.credit(2);
  for (const auto* job : {"j1", "j2", "j3", "j4"}) submit(job);
  EXPECT_TRUE(first.await<protocol::offer>());
  EXPECT_TRUE(second.await<protocol::offer>());
  EXPECT_TRUE(second.await<protocol::offer>());
  EXPECT_TRUE(eventually([this] {
    const auto queue = server.get("/v1/queues").body.at("queues").at(0);
    return queue.at("ready") == 1 && queue.at("held") == 3;
  })) << server.get("/v1/queues").text;
  EXPECT_EQ(server.get("/v1/jobs/j4:why").status, 200);
  EXPECT_EQ(first.waiting<protocol::offer>() + second.waiting<protocol::offer>(), 0);
}

}  // namespace
}  // namespace leasehold::e2e
