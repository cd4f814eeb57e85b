// The life of the process: drained, stopped, killed, started again.
#include <signal.h>

#include <future>

#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::close_code;
using protocol::event_kind;
using protocol::outcome;
using protocol::reason;

class lifecycle : public on_threads {};
LEASEHOLD_ON_THREADS(lifecycle);

const json::object an_hour{
    {"lease_duration_ms", 3'600'000}, {"ack_timeout_ms", 3'600'000}, {"max_clock_skew_ms", 60'000}};

/// A session with one active lease.
stream_peer working_on(live_server& server, const std::string& job) {
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit(job, an_hour);
  worker.offer_of(job);
  worker.start(job, 1);
  return worker;
}

TEST_P(lifecycle, ADrainLetsOpenWorkFinishAndThenEndsInGoodOrder) {
  live_server server(GetParam(), {"--drain-timeout", "60s"});
  auto worker = working_on(server, "last");
  server.signal(SIGTERM);
  const auto told = worker.await<protocol::drain>();
  ASSERT_TRUE(told);
  EXPECT_GT(told->release_by, worker.now());
  // Nothing new is taken; what is open goes on.
  const auto refused = server.post("/v1/jobs", {{"queue", "q"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body.at("reason"), "draining");
  EXPECT_EQ(server.get("/readyz", "").status, 503);
  EXPECT_TRUE(stream_peer(server, "w2", 'b').upgrade_answer().starts_with("HTTP/1.1 503"));
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "last", 1, 1)).reason, reason::renewed);
  EXPECT_TRUE(server.runs());
  EXPECT_EQ(worker.tell(worker.result("last", 1, outcome::success)).reason, reason::completed);
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::draining));
  EXPECT_EQ(server.wait_for_end(), 0) << server.log();
  EXPECT_TRUE(server.has_logged("\"event\":\"stopped\""));
  expect_proven(server);
}

TEST_P(lifecycle, ADrainEndsAtItsTimeoutAndLeavesTheLeaseToItsHolder) {
  live_server server(GetParam(), {"--drain-timeout", "300ms"});
  auto worker = working_on(server, "long");
  server.signal(SIGTERM);
  EXPECT_TRUE(worker.await<protocol::drain>());
  EXPECT_EQ(worker.close_code(), static_cast<int>(close_code::draining));
  EXPECT_EQ(server.wait_for_end(), 0) << server.log();
  server.start();
  stream_peer again(server, "w1");
  const auto welcome = again.hello({{protocol::lease_id{"long"}, {1}, {}}});
  ASSERT_EQ(welcome.resumed.size(), 1U);
  EXPECT_EQ(again.tell(again.result("long", 1, outcome::success)).reason, reason::completed);
  expect_proven(server);
}

TEST_P(lifecycle, ADrainWithALiveLeaseEndsWithinItsTimeout) {
  live_server server(GetParam(), {"--drain-timeout", "1s"});
  const auto worker = working_on(server, "unending");
  server.signal(SIGTERM);
  const auto sent = std::chrono::steady_clock::now();
  EXPECT_EQ(server.wait_for_end(), 0) << server.log();
  // Ten times the timeout: the machine may be busy, but the lease is good for an hour.
  EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds{10});
  expect_proven(server);
}

/// A call on a connection and a thread of its own.
std::future<tools::http_answer> call_apart(const live_server& server, tools::http_call what) {
  return std::async(std::launch::async, [&server, what = std::move(what)] {
    tools::client_options chosen;
    chosen.where = {.tls = false, .host = "127.0.0.1", .port = std::to_string(server.port())};
    chosen.token = server.token("client");
    const auto said = tools::http_client(std::move(chosen)).call(what);
    const auto* answer = std::get_if<tools::http_answer>(&said);
    return answer != nullptr ? *answer : tools::http_answer{};
  });
}

TEST_P(lifecycle, ADrainAnswersWhoeverWaitsAndIsNotHeldUpByLocks) {
  live_server server(GetParam(), {"--drain-timeout", "1h"});
  auto worker = working_on(server, "work");
  json::object lock{{"program", "p"}, {"target", {{"opaque", "x"}}}, {"ttl_ms", 3'600'000}};
  const auto held = server.post("/v1/locks:acquire", lock);
  ASSERT_EQ(held.status, 201) << held.text;
  const std::string id(held.body.at("lock").at("lease_id").as_string());
  lock["wait_ms"] = 60'000;
  lock["instance"] = "another";
  std::vector<std::future<tools::http_answer>> calls;
  calls.push_back(call_apart(
      server, {.method = "POST", .target = "/v1/locks:acquire", .body = json::serialize(lock)}));
  calls.push_back(call_apart(
      server, {.target = "/v1/locks/" + id + "?wait_for=change&generation=1&wait_ms=60000"}));
  calls.push_back(call_apart(server, {.target = "/v1/jobs/work?wait_for=settled&wait_ms=60000"}));
  ASSERT_TRUE(eventually(
      [&] { return server.metrics().find("leasehold_lock_waiters 1\n") != std::string::npos; }));
  server.signal(SIGTERM);
  for (auto& each : calls) {
    const auto said = each.get();
    EXPECT_EQ(said.status, 503) << said.body;
    EXPECT_NE(said.body.find("\"draining\""), std::string::npos) << said.body;
  }
  EXPECT_TRUE(server.runs()) << "the job is still at work";
  EXPECT_EQ(worker.tell(worker.result("work", 1, outcome::success)).reason, reason::completed);
  EXPECT_EQ(server.wait_for_end(), 0) << server.log();
  server.start();
  const auto kept = server.get("/v1/locks/" + id);
  EXPECT_EQ(kept.body.at("state"), "active") << kept.text;
  expect_proven(server);
}

TEST_P(lifecycle, ASecondSigtermEndsAtOnce) {
  live_server server(GetParam(), {"--drain-timeout", "1h"});
  auto worker = working_on(server, "stuck");
  server.signal(SIGTERM);
  ASSERT_TRUE(worker.await<protocol::drain>());
  EXPECT_TRUE(server.runs());
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait_for_end(), 128 + SIGTERM);
  expect_proven(server);
}

TEST_P(lifecycle, AWorkerFinishesItsLeaseAfterTheCoordinatorWasKilled) {
  live_server server(GetParam());
  auto worker = working_on(server, "survivor");
  worker.tell(worker.frame(event_kind::renew, "survivor", 1, 1));
  EXPECT_EQ(worker.tell(worker.progress("survivor", 1, 3, "three")).reason,
            reason::progress_recorded);
  for (int i = 0; i < 20; ++i) server.submit("waiting-" + std::to_string(i), an_hour, "idle");
  EXPECT_EQ(server.post("/v1/jobs/waiting-7:cancel").status, 200);
  const auto before = server.get("/v1/jobs").body.at("jobs");
  ASSERT_EQ(before.as_array().size(), 21U);
  server.kill();
  EXPECT_EQ(worker.close_code(), 0);

  server.start();
  const auto recovered = server.get("/v1/jobs").body.at("jobs");
  ASSERT_EQ(recovered.as_array().size(), 21U);
  for (std::size_t i = 0; i < 21; ++i) {
    // A recovery may extend a live lease a little; nothing else changes.
    if (recovered.at(i).at("state") == "active") continue;
    EXPECT_EQ(recovered.at(i), before.at(i));
  }
  stream_peer again(server, "w1");
  const auto welcome = again.hello({{protocol::lease_id{"survivor"}, {1}, {}}});
  ASSERT_EQ(welcome.resumed.size(), 1U);
  EXPECT_TRUE(welcome.lost.empty());
  const auto& resumed = welcome.resumed[0];
  EXPECT_EQ(resumed.lease.value, "survivor");
  EXPECT_EQ(resumed.gen.value, 1);
  EXPECT_EQ(resumed.state, protocol::lease_state::active);
  EXPECT_EQ(resumed.renew_sequence.value, 1);
  EXPECT_EQ(resumed.progress_sequence.value, 3);
  EXPECT_EQ(again.tell(again.frame(event_kind::renew, "survivor", 1, 2)).reason, reason::renewed);
  EXPECT_EQ(again.tell(again.result("survivor", 1, outcome::success)).reason, reason::completed);
  expect_columns(server.job("survivor"),
                 {{"state", "completed"}, {"generation", 1}, {"attempt", 1}});
  expect_replayable(server, "survivor");
  expect_proven(server);
}

TEST_P(lifecycle, AnAnswerThatWasGivenSurvivesAKillInTheNextInstant) {
  live_server server(GetParam());
  for (int round = 1; round <= 3; ++round) {
    const auto job = "round-" + std::to_string(round);
    auto worker = working_on(server, job);
    const auto answered = worker.tell(worker.result(job, 1, outcome::success, job));
    server.kill();
    EXPECT_EQ(answered.reason, reason::completed);
    server.start();
    expect_columns(server.job(job), {{"state", "completed"}, {"terminal_detail", job}});
  }
  expect_proven(server);
}

TEST_P(lifecycle, AJobThatWasHandedBackIsOfferedAfterAKillWithANewerGeneration) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  // The next offer may still go to the same worker: nobody takes it, and it ends soon.
  server.submit("twice", {{"ack_timeout_ms", 2000}, {"recovery_grace_ms", 0}});
  ASSERT_TRUE(worker.offer_of("twice"));
  worker.start("twice", 1);
  worker.credit(0);
  EXPECT_EQ(worker.tell(worker.frame(event_kind::release, "twice", 1)).reason, reason::released);
  server.kill();
  server.start();
  stream_peer again(server, "w2", 'b');
  again.hello();
  again.credit(1);
  const auto offer = again.offer_of("twice");
  ASSERT_TRUE(offer);
  EXPECT_GE(offer->standing.gen.value, 2);
  EXPECT_EQ(offer->payload, "work of twice");
  again.start("twice", offer->standing.gen.value);
  expect_proven(server);
}

TEST_P(lifecycle, TwoCoordinatorsDoNotShareADirectory) {
  live_server server(GetParam());
  const tests::temporary_directory kept;
  auto arguments = server.arguments();
  arguments[3] = "127.0.0.1:0";
  program_run second(LEASEHOLDD, arguments, kept.path() / "log");
  EXPECT_EQ(second.wait(), 1);
  const auto said = content_of(kept.path() / "log");
  EXPECT_NE(said.find(R"("level":"error","event":"not started","why":)"), std::string::npos)
      << said;
  EXPECT_NE(said.find(server.data().string()), std::string::npos) << said;
  EXPECT_NE(said.find("another coordinator (process "), std::string::npos) << said;
  EXPECT_NE(said.find("stop it, or name another data directory"), std::string::npos) << said;
  EXPECT_EQ(server.get("/readyz", "").status, 200);
  server.submit("unharmed");
  expect_proven(server);
}

TEST_P(lifecycle, TwoCoordinatorsDoNotShareAnAddress) {
  live_server server(GetParam());
  const tests::temporary_directory kept;
  auto arguments = server.arguments();
  arguments[1] = (kept.path() / "data").string();
  program_run second(LEASEHOLDD, arguments, kept.path() / "log");
  EXPECT_EQ(second.wait(), 1);
  const auto said = content_of(kept.path() / "log");
  EXPECT_NE(said.find(std::to_string(server.port())), std::string::npos) << said;
}

}  // namespace
}  // namespace leasehold::e2e
