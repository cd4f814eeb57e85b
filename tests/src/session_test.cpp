// A worker's socket: what it may send, what is stamped, and when it is closed.
#include "src/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leasehold/protocol/codec.hpp"
#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using protocol::close_code;
using tests::api_rig;
using tests::fake_socket;

class session_test : public testing::Test {
 protected:
  void SetUp() override { events = connect(protocol::subprotocol_protobuf); }

  static http_request stream_request(std::string_view subprotocols) {
    auto request = api_rig::request("GET", "/v1/stream", "worker");
    if (!subprotocols.empty()) {
      request.headers.emplace_back("sec-websocket-protocol", std::string(subprotocols));
    }
    return request;
  }
  std::shared_ptr<socket_events> connect(std::string_view subprotocol) {
    auto answer = rig.http->upgrade(stream_request(subprotocol));
    auto* accepted = std::get_if<upgrade_accepted>(&answer);
    EXPECT_NE(accepted, nullptr);
    if (accepted == nullptr) return nullptr;
    EXPECT_EQ(accepted->subprotocol, subprotocol);
    return accepted->start(wire);
  }
  static std::string heartbeat(std::int64_t frame_id = 1, std::size_t copies = 1) {
    protocol::codec c(protocol::encoding::protobuf);
    std::string out;
    const protocol::worker_frame frame{frame_id, protocol::worker_heartbeat{5}};
    const std::vector<protocol::worker_frame> frames(copies, frame);
    c.encode(std::span<const protocol::worker_frame>(frames), out);
    return out;
  }
  void say(const std::string& message, bool text = false) {
    events->on_message(std::as_bytes(std::span(message.data(), message.size())), text);
  }
  std::optional<close_code> closed() const {
    if (wire->closed.empty()) return std::nullopt;
    return wire->closed.front().first;
  }

  api_rig rig;
  std::shared_ptr<fake_socket> wire = std::make_shared<fake_socket>();
  std::shared_ptr<socket_events> events;
};

TEST_F(session_test, AMessageIsDeliveredWithTheTimeAtWhichItWasRead) {
  rig.gateway.time = {5000};
  say(heartbeat(7));
  ASSERT_EQ(rig.gateway.delivered.size(), 1U);
  EXPECT_EQ(rig.gateway.delivered[0].frames.at(0).frame_id, 7);
  EXPECT_EQ(rig.gateway.stamps[0].ms, 5000);
  EXPECT_EQ(rig.gateway.opened.at(0).name, "worker");
}

TEST_F(session_test, FramesGoOutAsOneMessage) {
  const std::vector<protocol::coordinator_frame> frames(3, {1, protocol::server_heartbeat{{9}}});
  rig.gateway.sink->send(frames);
  ASSERT_EQ(wire->sent.size(), 1U);
  protocol::codec c(protocol::encoding::protobuf);
  const auto back = c.decode_coordinator(std::as_bytes(std::span(wire->sent[0])));
  EXPECT_EQ(back.frames, frames);
}

TEST_F(session_test, TheOtherKindOfMessageClosesWith1003) {
  say(heartbeat(), true);
  EXPECT_EQ(closed(), close_code::wrong_message_type);
  EXPECT_TRUE(rig.gateway.delivered.empty());
}

TEST_F(session_test, AJsonSessionTakesTextAlone) {
  wire = std::make_shared<fake_socket>();
  events = connect(protocol::subprotocol_json);
  say("{}", false);
  EXPECT_EQ(closed(), close_code::wrong_message_type);
}

TEST_F(session_test, AMessageThatCannotBeReadIsAnsweredAsOneFrame) {
  say("\xff\xff\xff");
  ASSERT_EQ(rig.gateway.delivered.size(), 1U);
  EXPECT_FALSE(rig.gateway.delivered[0].broken);
  ASSERT_EQ(rig.gateway.delivered[0].unreadable.size(), 1U);
  EXPECT_EQ(rig.gateway.delivered[0].unreadable[0].reason, protocol::reason::malformed);
  EXPECT_FALSE(closed());
}

TEST_F(session_test, TheEleventhBadFrameOfAMinuteClosesWith1008) {
  for (int i = 0; i < 10; ++i) say("\xff\xff\xff");
  EXPECT_FALSE(closed());
  rig.gateway.time.ms += 59'999;
  say("\xff\xff\xff");
  EXPECT_EQ(closed(), close_code::policy);
}

TEST_F(session_test, BadFramesOlderThanAMinuteAreForgiven) {
  for (int i = 0; i < 10; ++i) say("\xff\xff\xff");
  rig.gateway.time.ms += 60'000;
  for (int i = 0; i < 10; ++i) say("\xff\xff\xff");
  EXPECT_FALSE(closed());
}

TEST_F(session_test, ARevokedTokenEndsItsSessionAtTheNextMessage) {
  auto all = api_rig::everybody();
  rig.api->shared.principals->replace(all);
  say(heartbeat());
  EXPECT_FALSE(closed());
  all.entries[0].tokens = {hash_token("another")};
  rig.api->shared.principals->replace(all);
  say(heartbeat());
  EXPECT_EQ(closed(), close_code::credential_ended);
  EXPECT_EQ(rig.gateway.delivered.size(), 1U);
}

TEST_F(session_test, AnIdleSessionEndsWhenTheReplacedPrincipalsAreLookedAt) {
  auto all = api_rig::everybody();
  rig.api->shared.principals->replace(all);
  rig.api->sockets.check_all();
  EXPECT_FALSE(closed());
  all.entries[0].who.queues = {"other"};
  rig.api->shared.principals->replace(all);
  rig.api->sockets.check_all();
  EXPECT_EQ(closed(), close_code::credential_ended);
}

TEST_F(session_test, ACredentialThatEndedWhileTheUpgradeWasAnsweredOpensNoSessionForLong) {
  auto answer = rig.http->upgrade(stream_request(protocol::subprotocol_protobuf));
  rig.api->shared.principals->replace({});
  rig.api->sockets.check_all();
  wire = std::make_shared<fake_socket>();
  const auto late = std::get<upgrade_accepted>(answer).start(wire);
  EXPECT_EQ(closed(), close_code::credential_ended);
}

TEST_F(session_test, AClosedSessionIsLookedAtNoMore) {
  events->on_close();
  rig.api->shared.principals->replace({});
  rig.api->sockets.check_all();
  EXPECT_FALSE(closed());
}

TEST_F(session_test, NothingMoreIsSentToARevokedToken) {
  auto all = api_rig::everybody();
  all.entries[0].tokens = {hash_token("another")};
  rig.api->shared.principals->replace(all);
  const std::vector<protocol::coordinator_frame> one(1, {1, protocol::server_heartbeat{{9}}});
  rig.gateway.sink->send(one);
  EXPECT_TRUE(wire->sent.empty());
  EXPECT_EQ(closed(), close_code::credential_ended);
}

TEST_F(session_test, ASenderOverItsRateIsNotReadUntilItIsWithinIt) {
  options chosen;
  chosen.frames_per_second = 10;
  rig.api->shared.chosen->replace(chosen);
  say(heartbeat(1, 20));
  EXPECT_FALSE(wire->paused);
  say(heartbeat(1, 1));
  EXPECT_TRUE(wire->paused);
  rig.gateway.time.ms += 100;
  rig.fire_timers();
  EXPECT_FALSE(wire->paused);
}

TEST_F(session_test, TheCoordinatorsPauseOutlastsThatOfTheRate) {
  options chosen;
  chosen.frames_per_second = 10;
  rig.api->shared.chosen->replace(chosen);
  say(heartbeat(1, 21));
  rig.gateway.sink->pause_reading(true);
  rig.fire_timers();
  EXPECT_TRUE(wire->paused);
  rig.gateway.sink->pause_reading(false);
  EXPECT_FALSE(wire->paused);
}

TEST_F(session_test, ASenderThatStaysOverItsRateIsClosedWith1008) {
  options chosen;
  chosen.frames_per_second = 10;
  rig.api->shared.chosen->replace(chosen);
  for (int i = 0; i <= 30; ++i) {
    EXPECT_FALSE(closed()) << i;
    say(heartbeat(1, 40));
    rig.gateway.time.ms += 1000;
  }
  EXPECT_EQ(closed(), close_code::policy);
}

TEST_F(session_test, AClosedSocketIsToldOnceAndSentNothing) {
  const auto sink = rig.gateway.sink;
  events->on_close();
  EXPECT_EQ(rig.gateway.closed, (std::vector<actors::session_id>{1}));
  sink->send(std::vector<protocol::coordinator_frame>{{1, protocol::server_heartbeat{{9}}}});
  sink->close(close_code::draining, "late");
  sink->pause_reading(true);
  EXPECT_TRUE(wire->sent.empty());
  EXPECT_TRUE(wire->closed.empty());
}

TEST_F(session_test, ATenantsSessionsAreBounded) {
  options chosen;
  chosen.sessions_per_tenant = 1;
  rig.api->shared.chosen->replace(chosen);
  const auto again = rig.http->upgrade(stream_request(protocol::subprotocol_protobuf));
  ASSERT_TRUE(std::holds_alternative<upgrade_refused>(again));
  EXPECT_EQ(std::get<upgrade_refused>(again).response.status, 429);
  events->on_close();
  EXPECT_TRUE(std::holds_alternative<upgrade_accepted>(
      rig.http->upgrade(stream_request(protocol::subprotocol_protobuf))));
}

TEST_F(session_test, TheSubprotocolMustBeOneOfOurs) {
  for (const char* bad : {"", "chat", "leasehold.v2.protobuf, chat"}) {
    const auto answer = rig.http->upgrade(stream_request(bad));
    ASSERT_TRUE(std::holds_alternative<upgrade_refused>(answer)) << bad;
    EXPECT_EQ(std::get<upgrade_refused>(answer).response.status, 400) << bad;
  }
  const auto second = rig.http->upgrade(stream_request("chat, leasehold.v1.json"));
  ASSERT_TRUE(std::holds_alternative<upgrade_accepted>(second));
  EXPECT_EQ(std::get<upgrade_accepted>(second).subprotocol, "leasehold.v1.json");
}

}  // namespace
}  // namespace leasehold::server
