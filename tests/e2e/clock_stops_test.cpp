// The machine sleeps, or the server is stopped: the deadlines that passed meanwhile have passed, at
// their own instants, before anything that waited is judged; and nobody is sent away for it.
#include <array>

#include "clock_scene.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::outcome;
using protocol::reason;

class clock_stops : public clock_scene {
 protected:
  /// The session goes on: the server has looked after it and has something to say.
  void expect_heartbeat_since(stream_peer& worker, std::int64_t coordinator_ms) {
    EXPECT_TRUE(worker.await<protocol::server_heartbeat>([&](const auto& beat) {
      return beat.server_time.ms >= coordinator_ms;
    })) << "the session was closed";
  }
};
LEASEHOLD_ON_THREADS(clock_stops);

TEST_P(clock_stops, ASuspendEndsEveryLeaseThatIsDueAtItsOwnDeadline) {
  auto server = make_server({"--heartbeat", "1s"});
  auto worker = worker_of(server);
  begin(server, worker, "kept", hours{2});
  begin_mortal(server, worker, "longest", 30 * hours{24});  // more ms than 31 bits hold
  begin(server, worker, "again", hours{2}, {{"retry_backoff_ms", 1'800'000}});
  EXPECT_EQ(worker.tell(worker.result("again", 1, outcome::failed, "", true)).reason,
            reason::retry_scheduled);
  server.submit("offered", {{"ack_timeout_ms", 1'200'000}, {"on_ack_timeout", "fail"}});
  ASSERT_TRUE(worker.offer_of("offered"));
  const auto minutes_of = [](int i) { return minutes{7 * i}; };
  for (int i = 1; i <= 8; ++i) {
    begin_mortal(server, worker, "due-" + std::to_string(i), minutes_of(i));
  }
  const auto kept_until = expires_at(server, "kept");
  worker.say(protocol::worker_heartbeat{});

  clocks.suspend(hours{1});
  const auto awake = coordinator_now(server);
  expect_heartbeat_since(worker, awake);
  for (int i = 1; i <= 8; ++i) {
    worker.say(protocol::worker_heartbeat{});
    const auto job = "due-" + std::to_string(i);
    EXPECT_TRUE(server.reaches(job, "failed")) << job;
    const auto row = expect_expired_at_its_deadline(server, job);
    EXPECT_GE(row.at("fired_at").as_int64(),
              row.at("at").as_int64() + milliseconds{minutes{60} - minutes_of(i + 1)}.count());
  }
  EXPECT_TRUE(server.reaches("offered", "failed"));
  expect_expired_at_its_deadline(server, "offered");
  const auto offer = worker.offer_of("again");
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->standing.gen.value, 2);
  EXPECT_EQ(expires_at(server, "kept"), kept_until);
  expect_renewed(server, worker, "kept", 1);
  expect_columns(server.job("longest"), {{"state", "active"}});
  clocks.suspend(30 * hours{24});
  EXPECT_TRUE(server.reaches("longest", "failed"));
  expect_expired_at_its_deadline(server, "longest");
  expect_one_clock(anchors_of(server));
  server.kill();
  expect_proven(server);
}

TEST_P(clock_stops, WhatWaitedForAStoppedServerIsJudgedWhenItIsRead) {
  auto server = make_server();
  auto worker = worker_of(server);
  begin(server, worker, "over", minutes{1});
  begin(server, worker, "kept", hours{1});
  worker.credit(0);
  stream_peer silent(server, "w2", 'b');
  silent.hello();
  const auto deadline = expires_at(server, "over");

  server.stand_still();
  const auto first = worker.say_all({worker.frame(event_kind::renew, "over", 1, 1),
                                     worker.progress("over", 1, 1, "half"),
                                     worker.frame(event_kind::renew, "kept", 1, 1),
                                     worker.result("over", 1, outcome::success, "done")});
  clocks.pass(minutes{10});
  const auto awake = coordinator_now(server);
  server.go_on();
  const std::array<reason, 4> expected{reason::lease_expired, reason::lease_expired,
                                       reason::renewed, reason::lease_expired};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto said = worker.verdict_of(first + static_cast<std::int64_t>(i));
    ASSERT_TRUE(said);
    EXPECT_EQ(said->reason, expected[i]) << "frame " << i;
  }
  // The worker's word that it was sent in time changes nothing; that it has stopped is kept.
  expect_columns(server.job("over"), {{"state", "expired"},
                                      {"expires_at", deadline},
                                      {"progress_sequence", 0},
                                      {"terminal_result", "none"},
                                      {"unproven", 0}});
  EXPECT_GE(expect_expired_at_its_deadline(server, "over").at("fired_at").as_int64(), awake);
  const auto late = last_row(server.evidence("over"), "progress");
  expect_columns(late, {{"decision", "rejected"}, {"late_progress", true}});
  EXPECT_GE(late.at("at").as_int64(), awake);
  expect_columns(last_row(server.evidence("over"), "stop"), {{"reason", "holder_reported_stop"}});

  const auto renewed = last_row(server.evidence("kept"), "renew");
  EXPECT_GE(renewed.at("at").as_int64(), awake);
  EXPECT_EQ(renewed.at("expires_at").as_int64(),
            renewed.at("at").as_int64() + milliseconds{hours{1}}.count());
  expect_heartbeat_since(silent, awake);
  expect_renewed(server, worker, "kept", 2);
  server.kill();
  expect_proven(server);
}

TEST_P(clock_stops, AStopShorterThanTheLeaseEndsNone) {
  auto server = make_server();
  auto worker = worker_of(server);
  begin(server, worker, "kept", minutes{1});
  server.stand_still();
  const auto asked = worker.say(worker.frame(event_kind::renew, "kept", 1, 1));
  clocks.pass(std::chrono::seconds{40});
  const auto awake = coordinator_now(server);
  server.go_on();
  const auto said = worker.verdict_of(asked);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, reason::renewed);
  EXPECT_GE(expires_at(server, "kept"), awake + milliseconds{minutes{1}}.count());
  // What it was good for at first is over; the renewed lease is not.
  clocks.suspend(std::chrono::seconds{40});
  expect_renewed(server, worker, "kept", 2);
  server.kill();
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
