#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "src/websocket_frame.hpp"
#include "support/net_rig.hpp"
#include "support/raw_http.hpp"

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using test::bytes_of;
using test::net_rig;
using test::raw_frame;
using test::raw_peer;
using test::read_answer;
using test::read_close_code;
using test::read_frame;
using test::upgrade_request;

constexpr int text = 1;
constexpr int binary = 2;
constexpr int close_frame = 8;
constexpr int ping = 9;
constexpr int pong = 10;

std::string message(std::string words, int opcode = binary) {
  return bytes_of({.opcode = opcode, .payload = std::move(words)});
}

raw_peer open_socket(net_rig& rig, std::string_view target = "/ws", int receive_buffer = 0) {
  raw_peer peer{rig.port(), receive_buffer};
  EXPECT_TRUE(peer.send(upgrade_request(target)));
  EXPECT_EQ(read_answer(peer)->status, 101);
  return peer;
}

/// Sends bytes on a new socket; gives the code that it is closed with.
int code_after(net_rig& rig, const std::string& bytes, std::string_view target = "/ws") {
  raw_peer peer = open_socket(rig, target);
  peer.send(bytes);
  const int code = read_close_code(peer).value_or(0);
  peer.close();
  return code;
}

// ---- before the upgrade

TEST(Upgrade, IsAcceptedWithTheSubprotocolThatTheApiChose) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send(upgrade_request("/ws", "Sec-WebSocket-Protocol: test.v1\r\n"));
  const auto answer = read_answer(peer);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 101);
  EXPECT_TRUE(answer->has("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_TRUE(answer->has("Sec-WebSocket-Protocol: test.v1\r\n"));
  EXPECT_FALSE(answer->has("Beast"));
}

TEST(Upgrade, IsRefusedByTheApiWithAPlainAnswer) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send(upgrade_request("/elsewhere"));
  const auto answer = read_answer(peer);
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->body, "not here");
  EXPECT_TRUE(peer.read_to_end());
  EXPECT_EQ(rig.counters().sockets_opened, 0);
}

TEST(Upgrade, AMalformedOneNeverReachesTheApi) {
  net_rig rig;
  const std::string good = upgrade_request("/ws");
  const auto with = [&good](std::string_view part, std::string_view instead) {
    std::string changed = good;
    return changed.replace(changed.find(part), part.size(), instead);
  };
  const std::vector<std::pair<std::string, int>> cases{
      {with("GET", "POST"), 400},
      {with("HTTP/1.1", "HTTP/1.0"), 400},
      {with("Connection: Upgrade", "Connection: close"), 400},
      {with("dGhlIHNhbXBsZSBub25jZQ==", "short=="), 400},
      {with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZR=="), 400},
      {with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), 400},
      {with("Version: 13", "Version: 8"), 426},
      {with("Version: 13\r\n", "Version: 13\r\nContent-Length: 1\r\n") + "x", 400},
      {good + message("too early"), 400},
  };
  for (const auto& [bytes, status] : cases) {
    raw_peer peer{rig.port()};
    peer.send(bytes);
    EXPECT_EQ(read_answer(peer)->status, status) << bytes;
    EXPECT_TRUE(peer.read_to_end());
  }
  EXPECT_EQ(rig.seen().count_of("/ws"), 0);
}

TEST(Upgrade, AnyOtherUpgradeIsIgnored) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send("GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_EQ(read_answer(peer)->status, 200);
}

// ---- messages

TEST(Socket, AnswersInTheKindThatWasAgreedOn) {
  net_rig rig;
  for (const auto& [target, kind] : {std::pair{"/ws", binary}, std::pair{"/ws/text", text}}) {
    raw_peer peer = open_socket(rig, target);
    peer.send(message("hello", text));
    const auto answer = read_frame(peer);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->payload, "hello");
    EXPECT_EQ(answer->opcode, kind);
    EXPECT_TRUE(answer->fin);
    EXPECT_FALSE(answer->masked);
  }
  EXPECT_EQ(rig.seen().count_of("text"), 2);
}

TEST(Socket, MessagesOfEachLengthFormComeBackWhole) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 65535U, 65536U}) {
    peer.send(message(std::string(size, 'm')));
    const auto answer = read_frame(peer);
    ASSERT_TRUE(answer) << size;
    EXPECT_EQ(answer->payload, std::string(size, 'm'));
  }
}

TEST(Socket, AFragmentedMessageIsDeliveredOnceAndWholeAroundAPing) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  peer.send(bytes_of({.opcode = binary, .payload = "one ", .fin = false}) +
            bytes_of({.opcode = 0, .payload = "two ", .fin = false}) +
            bytes_of({.opcode = ping, .payload = "are you there"}) +
            bytes_of({.opcode = 0, .payload = "three"}));
  const auto answer_to_ping = read_frame(peer);
  EXPECT_EQ(answer_to_ping->opcode, pong);
  EXPECT_EQ(answer_to_ping->payload, "are you there");
  EXPECT_EQ(read_frame(peer)->payload, "one two three");
  EXPECT_EQ(rig.seen().count_of("binary"), 1);
}

TEST(Socket, AMessageByteByByteIsDeliveredOnce) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  for (const char byte : message("slow but whole")) peer.send({&byte, 1});
  EXPECT_EQ(read_frame(peer)->payload, "slow but whole");
}

TEST(Socket, SixtyFourMessagesInFlightCostAtMostEightWriteCallsPerSixtyFourAnswers) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  const auto before = rig.counters().write_calls.load();
  constexpr int rounds = 50;
  std::string sixty_four;
  for (int i = 0; i < 64; ++i) sixty_four += message("renew " + std::to_string(i));
  for (int round = 0; round < rounds; ++round) {
    peer.send(sixty_four);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(read_frame(peer)->payload, "renew " + std::to_string(i));
  }
  EXPECT_EQ(rig.counters().messages_sent, 64 * rounds);
  EXPECT_LE(rig.counters().write_calls - before, 8 * rounds);
}

TEST(Socket, MessagesSentInOneTurnLeaveInOneCall) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  const auto before = rig.counters().write_calls.load();
  peer.send(message("count"));
  for (int i = 0; i < 64; ++i) ASSERT_EQ(read_frame(peer)->payload, "answer " + std::to_string(i));
  EXPECT_EQ(rig.counters().write_calls - before, 1);
}

TEST(Socket, APauseStopsReadingAndLosesNothing) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  peer.send(message("pause") + message("one") + message("two"));
  ASSERT_TRUE(rig.seen().wait_for("paused"));
  EXPECT_TRUE(peer.silent_for(milliseconds{50}));
  EXPECT_EQ(rig.seen().count_of("binary"), 1);
  rig.on_loop([&] {
    rig.api().last_socket()->pause_reading(false);
    return 0;
  });
  EXPECT_EQ(read_frame(peer)->payload, "one");
  EXPECT_EQ(read_frame(peer)->payload, "two");
}

TEST(Socket, SilenceOfASocketThatIsNotReadIsNotDeath) {
  net_limits limits;
  limits.ping = milliseconds{10};
  limits.idle = milliseconds{30};
  net_rig rig{limits};
  raw_peer peer = open_socket(rig);
  peer.send(message("pause"));
  ASSERT_TRUE(rig.seen().wait_for("paused"));
  EXPECT_TRUE(peer.silent_for(milliseconds{100}));
  rig.on_loop([&] {
    rig.api().last_socket()->pause_reading(false);
    return 0;
  });
  EXPECT_EQ(read_close_code(peer), 1001);
}

// ---- what breaks the protocol

TEST(Socket, WhatRfc6455ForbidsIsClosedWith1002) {
  net_rig rig;
  const std::vector<std::pair<std::string, raw_frame>> cases{
      {"not masked", {.payload = "x", .masked = false}},
      {"reserved bit 1", {.payload = "x", .reserved = 4}},
      {"reserved bit 2", {.payload = "x", .reserved = 2}},
      {"reserved bit 3", {.payload = "x", .reserved = 1}},
      {"reserved data opcode", {.opcode = 3, .payload = "x"}},
      {"reserved control opcode", {.opcode = 11, .payload = "x"}},
      {"continuation of nothing", {.opcode = 0, .payload = "x"}},
      {"fragmented control frame", {.opcode = ping, .payload = "x", .fin = false}},
      {"control frame of 126 bytes", {.opcode = ping, .payload = std::string(126, 'p')}},
      {"close frame of one byte", {.opcode = close_frame, .payload = "x"}},
      {"close code 1005", {.opcode = close_frame, .payload = "\x03\xed"}},
      {"close code 999", {.opcode = close_frame, .payload = "\x03\xe7"}},
  };
  for (const auto& [name, frame] : cases) EXPECT_EQ(code_after(rig, bytes_of(frame)), 1002) << name;
  EXPECT_EQ(code_after(rig, bytes_of({.payload = "a", .fin = false}) + message("b")), 1002);
  EXPECT_EQ(rig.seen().count_of("binary"), 0);
  EXPECT_TRUE(rig.seen().wait_for("closed", 13));
}

TEST(Socket, AMessageOverTheLimitIsClosedWith1009BeforeItIsRead) {
  net_rig rig;
  constexpr std::uint64_t limit = std::uint64_t{64} * 1024;
  EXPECT_EQ(code_after(rig, bytes_of({.payload = "x", .claimed_length = limit + 1})), 1009);
  EXPECT_EQ(code_after(rig, bytes_of({.payload = "x", .claimed_length = std::uint64_t{1} << 62})),
            1009);
  EXPECT_EQ(code_after(rig, bytes_of({.payload = std::string(limit, 'x'), .fin = false}) +
                                bytes_of({.opcode = 0, .payload = "y"})),
            1009);
  EXPECT_EQ(rig.seen().count_of("binary"), 0);
}

TEST(Socket, TextThatIsNotUtf8IsClosedWith1007) {
  net_rig rig;
  for (const std::string_view words :
       {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_EQ(code_after(rig, message(std::string{words}, text)), 1007);
  }
  EXPECT_EQ(rig.seen().count_of("text"), 0);
  raw_peer peer = open_socket(rig, "/ws/text");
  peer.send(message("\xe2\x82\xac", text));
  EXPECT_EQ(read_frame(peer)->payload, "\xe2\x82\xac");
}

TEST(Socket, ControlFramesBeyondTheirRateAreClosedWith1008) {
  for (const int kind : {ping, pong}) {
    net_limits limits;
    limits.control_frame_burst = 20;
    net_rig rig{limits};
    std::string flood;
    for (int i = 0; i < 60; ++i) flood += bytes_of({.opcode = kind, .payload = ""});
    EXPECT_EQ(code_after(rig, flood), 1008);
  }
}

TEST(Socket, AMessageInTooManyPiecesIsClosedWith1008) {
  net_limits limits;
  limits.pieces = 8;
  net_rig rig{limits};
  std::string pieces = bytes_of({.payload = "a", .fin = false});
  for (int i = 0; i < 8; ++i) pieces += bytes_of({.opcode = 0, .payload = "b", .fin = false});
  EXPECT_EQ(code_after(rig, pieces), 1008);
}

TEST(Socket, AMessageThatTakesTooLongIsClosedWith1008) {
  net_limits limits;
  limits.assembly = milliseconds{30};
  net_rig rig{limits};
  EXPECT_EQ(code_after(rig, bytes_of({.payload = "a", .fin = false})), 1008);
}

// ---- peers that are slow, silent or gone

TEST(Socket, ASlowReaderIsClosedWith4002AndOthersGoOn) {
  net_limits limits;
  limits.closing = milliseconds{1000};
  net_rig rig{limits};
  raw_peer slow = open_socket(rig, "/ws", 4096);
  raw_peer other = open_socket(rig);
  slow.send(message("flood"));
  ASSERT_TRUE(rig.seen().wait_for("flooded"));
  EXPECT_EQ(rig.counters().slow_readers, 1);
  EXPECT_TRUE(rig.seen().wait_for("closed"));
  other.send(message("still served"));
  EXPECT_EQ(read_frame(other)->payload, "still served");
  EXPECT_EQ(read_close_code(slow), 4002);
}

TEST(Socket, ASlowReaderThatReadsNothingIsCutOffInTime) {
  net_limits limits;
  limits.closing = milliseconds{50};
  net_rig rig{limits};
  raw_peer slow = open_socket(rig, "/ws", 4096);
  std::string floods;
  for (int i = 0; i < 4; ++i) floods += message("flood");
  slow.send(floods);
  ASSERT_TRUE(rig.seen().wait_for("closed"));
  EXPECT_TRUE(net_rig::eventually([&] { return rig.counters().connections_open == 0; }));
  EXPECT_EQ(rig.listener().connections(), 0U);
}

TEST(Socket, ASilentPeerIsPingedAndThenClosedWith1001) {
  net_limits limits;
  limits.ping = milliseconds{20};
  limits.idle = milliseconds{60};
  net_rig rig{limits};
  raw_peer peer = open_socket(rig);
  EXPECT_EQ(read_frame(peer)->opcode, ping);
  EXPECT_EQ(read_close_code(peer), 1001);
}

TEST(Socket, APeerThatAnswersPingsStays) {
  net_limits limits;
  limits.ping = milliseconds{10};
  limits.idle = milliseconds{1000};
  limits.control_frames_per_second = 1000;
  net_rig rig{limits};
  raw_peer peer = open_socket(rig);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(read_frame(peer)->opcode, ping);
    peer.send(bytes_of({.opcode = pong, .payload = ""}));
  }
  peer.send(message("here"));
  const auto next = read_frame(peer);
  EXPECT_EQ(next->opcode == ping ? read_frame(peer)->payload : next->payload, "here");
}

TEST(Socket, APeerThatIsGoneClosesTheEventsOnce) {
  for (const bool by_reset : {false, true}) {
    net_rig rig;
    raw_peer peer = open_socket(rig);
    peer.send(message("here"));
    ASSERT_EQ(read_frame(peer)->payload, "here");
    by_reset ? peer.reset() : peer.close();
    ASSERT_TRUE(rig.seen().wait_for("closed"));
    EXPECT_TRUE(net_rig::eventually([&] { return rig.counters().connections_open == 0; }));
    EXPECT_EQ(rig.seen().count_of("closed"), 1);
    EXPECT_EQ(rig.counters().sockets_open, 0);
  }
}

TEST(Socket, APeerThatIsGoneInTheMiddleOfAMessageDeliversNothing) {
  for (const bool by_reset : {false, true}) {
    net_rig rig;
    raw_peer peer = open_socket(rig);
    peer.send(bytes_of({.payload = "half of it", .claimed_length = 20}));
    by_reset ? peer.reset() : peer.half_close();
    ASSERT_TRUE(rig.seen().wait_for("closed"));
    EXPECT_EQ(rig.seen().count_of("binary"), 0);
  }
}

TEST(Socket, APeerThatIsGoneWhileItIsFloodedIsNoticed) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  peer.send(message("pause") + message("x"));
  ASSERT_TRUE(rig.seen().wait_for("paused"));
  peer.reset();
  rig.on_loop([&] {
    rig.api().last_socket()->send(std::string(1000, 's'));
    return 0;
  });
  EXPECT_TRUE(rig.seen().wait_for("closed"));
}

// ---- closing

TEST(Socket, ACloseOfThePeerIsAnsweredWithItsCode) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  peer.send(bytes_of({.opcode = close_frame, .payload = "\x03\xe8"}));
  EXPECT_EQ(read_close_code(peer), 1000);
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_TRUE(rig.seen().wait_for("closed"));
}

TEST(Socket, ACloseOfOursSendsWhatWasQueuedAndNothingAfterwards) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  peer.send(message("before") + message("supersede") + message("ignored"));
  EXPECT_EQ(read_frame(peer)->payload, "before");
  const auto last = read_frame(peer);
  EXPECT_EQ(last->opcode, close_frame);
  EXPECT_EQ(last->payload, std::string("\x0f\xa1", 2) + "another one came");
  ASSERT_TRUE(rig.seen().wait_for("closed"));
  peer.send(message("late"));
  peer.send(bytes_of({.opcode = close_frame, .payload = "\x0f\xa1"}));
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_EQ(rig.seen().count_of("binary"), 2);
  EXPECT_EQ(rig.seen().count_of("message after close"), 0);
}

TEST(Socket, ACloseThatThePeerNeverAnswersEndsInTime) {
  net_limits limits;
  limits.closing = milliseconds{40};
  net_rig rig{limits};
  raw_peer peer = open_socket(rig);
  peer.send(message("supersede"));
  EXPECT_EQ(read_close_code(peer), 4001);
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_TRUE(net_rig::eventually([&] { return rig.listener().connections() == 0; }));
}

TEST(Socket, AStopClosesWithItsCode) {
  net_rig rig{{}, 3};
  std::vector<raw_peer> peers;
  peers.reserve(6);
  for (int i = 0; i < 6; ++i) peers.push_back(open_socket(rig));
  auto stopped = std::async(std::launch::async, [&] {
    rig.listener().stop(protocol::close_code::draining, "draining", std::chrono::seconds{5});
  });
  for (raw_peer& peer : peers) {
    EXPECT_EQ(read_close_code(peer), 4005);
    peer.close();
  }
  stopped.wait();
  EXPECT_EQ(rig.seen().count_of("closed"), 6);
  EXPECT_EQ(rig.listener().connections(), 0U);
}

TEST(Socket, AStopDoesNotWaitForPeersThatDoNotAnswer) {
  net_rig rig;
  raw_peer peer = open_socket(rig);
  rig.listener().stop(protocol::close_code::going_away, "", milliseconds{30});
  EXPECT_EQ(rig.seen().count_of("closed"), 1);
  EXPECT_EQ(rig.listener().connections(), 0U);
}

TEST(FrameHead, HasTheShortestLengthForm) {
  for (const auto& [size, length] :
       {std::pair{0U, 2U}, {125U, 2U}, {126U, 4U}, {65535U, 4U}, {65536U, 10U}}) {
    EXPECT_EQ(message_head(false, size).size(), length);
  }
}

}  // namespace
}  // namespace leasehold::server
