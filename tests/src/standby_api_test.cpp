// What a coordinator says that is not the active one: before it was, and once it has lost the
// store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/session.hpp"
#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using protocol::close_code;
using testing::HasSubstr;
using tests::api_rig;
using tests::fake_socket;

struct standby_rig : api_rig {
  std::int64_t now = 1000;
  std::shared_ptr<active_role> role = std::make_shared<active_role>([this] { return now; });
  standby_rig() { api->shared.role = role; }

  /// Becomes the active one, with 1000 ms of its lease left.
  void activate() {
    role->take(4, "here:1", true);
    role->extend(now + 1000);
    role->serve();
  }
  http_request upgrade_request() {
    auto r = request("GET", "/v1/stream", "worker");
    r.headers.emplace_back("sec-websocket-protocol", "leasehold.v1.json");
    return r;
  }
};

TEST(standby, EveryRouteButThoseOfTheProcessItselfIsRefused) {
  standby_rig rig;
  rig.role->watch(3, "10.0.0.1:7878");
  for (const route& r : routes()) {
    std::string path(r.pattern);
    if (const auto id = path.find("{id}"); id != std::string::npos) path.replace(id, 4, "j");
    auto asked = api_rig::request(std::string(r.method), path, "operator", "{}");
    http_response said;
    if (r.upgrade != nullptr) {
      said = std::get<upgrade_refused>(rig.http->upgrade(asked)).response;
    } else {
      said = rig.ask(asked);
    }
    if (path == "/healthz" || path == "/metrics") {
      EXPECT_EQ(said.status, 200) << path;
      continue;
    }
    EXPECT_EQ(said.status, 503) << path;
    const auto body = api_rig::json(said);
    EXPECT_EQ(body.at("reason"), "standby") << path;
    EXPECT_EQ(body.at("class"), "retryable") << path;
    EXPECT_EQ(body.at("active"), "10.0.0.1:7878") << path;
    EXPECT_EQ(api_rig::header(said, "Leasehold-Active"), "10.0.0.1:7878") << path;
    EXPECT_EQ(api_rig::header(said, "Retry-After"), "1") << path;
  }
}

TEST(standby, WhereTheActiveOneIsIsToldWithoutACredential) {
  standby_rig rig;
  rig.role->watch(3, "10.0.0.1:7878");
  EXPECT_EQ(api_rig::json(rig.ask("GET", "/v1/jobs", "nobody")).at("active"), "10.0.0.1:7878");
}

TEST(standby, AnActiveOneThatIsNotKnownIsNotNamed) {
  standby_rig rig;
  const auto said = rig.ask("GET", "/readyz", "");
  EXPECT_EQ(said.status, 503);
  EXPECT_FALSE(api_rig::json(said).contains("active"));
  EXPECT_EQ(api_rig::header(said, "Leasehold-Active"), "");
}

TEST(standby, ItServesMetricsWithoutAnythingBehindIt) {
  standby_rig rig;
  rig.api->gateway = nullptr;
  EXPECT_EQ(rig.ask("GET", "/metrics", "operator").status, 200);
  EXPECT_EQ(rig.ask("GET", "/metrics", "nobody").status, 401);
}

TEST(standby, WhileItRecoversItIsNotReady) {
  standby_rig rig;
  rig.role->take(4, "here:1", true);
  rig.role->extend(rig.now + 1000);
  EXPECT_EQ(api_rig::json(rig.ask("GET", "/readyz", "")).at("reason"), "not_ready");
  EXPECT_EQ(api_rig::json(rig.ask("GET", "/v1/jobs", "client")).at("reason"), "not_ready");
}

TEST(standby, ItAnswersFromServingOnUntilItsLeaseEnds) {
  standby_rig rig;
  rig.activate();
  EXPECT_EQ(rig.ask("GET", "/readyz", "").status, 200);
  rig.now += 999;
  EXPECT_EQ(rig.ask("GET", "/v1/queues", "client").status, 200);
  rig.now += 1;
  EXPECT_EQ(api_rig::json(rig.ask("GET", "/v1/queues", "client")).at("reason"), "standby");
  EXPECT_EQ(rig.ask("GET", "/readyz", "").status, 503);
}

TEST(standby, AReadThatWasUnderWayIsNotAnsweredAnyMore) {
  standby_rig rig;
  rig.activate();
  rig.gateway.meanwhile = [&] { rig.now += 1000; };
  const auto said = rig.ask("GET", "/v1/queues", "client");
  EXPECT_EQ(said.status, 503);
  EXPECT_EQ(api_rig::json(said).at("reason"), "standby");
}

TEST(standby, WhatBecameOfAWriteThatWasUnderWayIsNotSaid) {
  standby_rig rig;
  rig.activate();
  auto& job = rig.gateway.add_job("t", "j");
  rig.gateway.answer_with = actors::answer{
      protocol::decision::accepted, protocol::reason::cancel_requested, job, {}, false, {}};
  rig.gateway.meanwhile = [&] { rig.now += 1000; };
  const auto said = rig.ask("POST", "/v1/jobs/j:cancel", "client", R"({"request_id": "r1"})");
  EXPECT_EQ(said.status, 503);
  const auto body = api_rig::json(said);
  EXPECT_EQ(body.at("reason"), "unknown_outcome");
  EXPECT_EQ(body.at("request_id"), "r1");
}

struct open_stream : standby_rig {
  std::shared_ptr<fake_socket> socket = std::make_shared<fake_socket>();
  std::shared_ptr<socket_events> events;
  open_stream() {
    activate();
    events = std::get<upgrade_accepted>(http->upgrade(upgrade_request())).start(socket);
  }
};

TEST(standby, ASessionHearsNothingMoreAndIsClosed) {
  open_stream rig;
  auto& sink = *rig.gateway.sink;
  const protocol::coordinator_frame frame{.frame_id = 1, .body = protocol::server_heartbeat{}};
  sink.send({&frame, 1});
  EXPECT_EQ(rig.socket->sent.size(), 1U);
  rig.now += 1000;
  sink.send({&frame, 1});
  EXPECT_EQ(rig.socket->sent.size(), 1U);
  ASSERT_EQ(rig.socket->closed.size(), 1U);
  EXPECT_EQ(rig.socket->closed[0].first, close_code::going_away);
}

TEST(standby, ASessionsFramesAreNotTaken) {
  open_stream rig;
  rig.now += 1000;
  const std::string text = R"({"frames":[]})";
  rig.events->on_message(std::as_bytes(std::span(text)), true);
  EXPECT_TRUE(rig.gateway.delivered.empty());
  ASSERT_EQ(rig.socket->closed.size(), 1U);
}

TEST(standby, MetricsShowItsRoleAndEpoch) {
  standby_rig rig;
  rig.role->watch(3, "there:1");
  const auto page = [&] { return metrics_page({}, nullptr, nullptr, 0, rig.role.get()); };
  EXPECT_THAT(page(), HasSubstr("leasehold_role 0"));
  EXPECT_THAT(page(), HasSubstr("leasehold_epoch 3"));
  rig.activate();
  EXPECT_THAT(page(), HasSubstr("leasehold_role 1"));
  EXPECT_THAT(page(), HasSubstr("leasehold_epoch 4"));
  EXPECT_THAT(page(), HasSubstr("leasehold_takeovers_total 1"));
}

}  // namespace
}  // namespace leasehold::server
