#include "src/listener.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "src/admission.hpp"
#include "src/http_answer.hpp"
#include "support/net_rig.hpp"
#include "support/raw_http.hpp"

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using test::net_rig;
using test::raw_peer;
using test::read_answer;
using testing::HasSubstr;

std::string get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}

/// Sends bytes on a new connection; gives the status of the answer, 0 when there is none, after
/// having seen that the connection was closed.
int status_and_close(net_rig& rig, const std::string& bytes) {
  raw_peer peer{rig.port()};
  peer.send(bytes);
  const auto answer = read_answer(peer);
  EXPECT_TRUE(peer.read_to_end().has_value()) << bytes.substr(0, 60);
  return answer ? answer->status : 0;
}

TEST(Listener, AnswersRequestsOfOneConnectionOneAfterTheOther) {
  net_rig rig;
  raw_peer peer{rig.port()};
  for (const std::string target : {"/one", "/two?x=1", "/three"}) {
    ASSERT_TRUE(peer.send(get(target)));
    const auto answer = read_answer(peer);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, target + ' ');
  }
}

TEST(Listener, AnswersPipelinedRequestsInTheirOrder) {
  net_rig rig;
  raw_peer peer{rig.port()};
  std::string all;
  for (int i = 0; i < 200; ++i) all += get("/r" + std::to_string(i));
  ASSERT_TRUE(peer.send(all));
  for (int i = 0; i < 200; ++i) {
    const auto answer = read_answer(peer);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "/r" + std::to_string(i) + ' ');
  }
}

TEST(Listener, WhatComesBehindPipelinedRequestsIsReadAsItCame) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send("GET /1 HTTP/1.1\r\nHost: l\r\n\r\nGET /big HTTP/1.1\r\nHost: l\r\n\r\n");
  EXPECT_EQ(read_answer(peer)->body, "/1 ");
  // By now the second request was taken, and a read is under way that began behind it.
  peer.send("POST /3 HTTP/1.1\r\nHost: l\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(read_answer(peer)->body.size(), 4'000'000U);
  EXPECT_EQ(read_answer(peer)->body, "/3 hello");
}

TEST(Listener, AnswersPipelinedRequestsOfAPeerThatHasHalfClosed) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send(get("/one") + get("/two"));
  peer.half_close();
  EXPECT_EQ(read_answer(peer)->body, "/one ");
  EXPECT_EQ(read_answer(peer)->body, "/two ");
  EXPECT_TRUE(peer.read_to_end());
}

TEST(Listener, ReadsABodyByLengthAndInChunks) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(read_answer(peer)->body, "/p hello");
  peer.send(
      "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n");
  EXPECT_EQ(read_answer(peer)->body, "/p hello");
}

TEST(Listener, AsksForTheBodyOfAPeerThatWaitsForThat) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send("POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("ok");
  EXPECT_EQ(read_answer(peer)->body, "/p ok");
}

TEST(Listener, HeadIsAnsweredWithTheHeadAlone) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send("HEAD /h HTTP/1.1\r\nHost: h\r\n\r\n" + get("/next"));
  const auto head = read_answer(peer, false);
  EXPECT_TRUE(head->has("content-length: 3"));
  EXPECT_EQ(read_answer(peer)->body, "/next ");
}

TEST(Listener, AnHttp10RequestIsAnsweredAndClosed) {
  net_rig rig;
  EXPECT_EQ(status_and_close(rig, "GET /old HTTP/1.0\r\n\r\n"), 200);
}

TEST(Listener, ARequestWithConnectionCloseIsTheLast) {
  net_rig rig;
  EXPECT_EQ(status_and_close(rig, get("/x", "Connection: close\r\n")), 200);
}

TEST(Listener, ABigAnswerIsSentWhole) {
  net_rig rig;
  raw_peer peer{rig.port(), 4096};
  peer.send(get("/big") + get("/after"));
  EXPECT_EQ(read_answer(peer)->body.size(), 4'000'000U);
  EXPECT_EQ(read_answer(peer)->body, "/after ");
}

TEST(Listener, WhatIsNotHttpIsRefusedWith400AndClosed) {
  net_rig rig;
  const std::vector<std::string> malformed{
      "\x16\x03\x01\x02 not http at all\r\n\r\n",
      "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
      "GET /\r\nHost: h\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\nHost: h\n\n",
      "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nX: a\nb\r\n\r\n",
      std::string{"GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", 35},
      "GET / HTTP/1.1\r\nHost: h\r\n folded: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
      "GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
      "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost:\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  for (const std::string& bytes : malformed) EXPECT_EQ(status_and_close(rig, bytes), 400) << bytes;
  EXPECT_EQ(rig.counters().requests, 0);
}

TEST(Listener, WhatTwoReadersCouldReadInTwoWaysIsRefusedWith400AndClosed) {
  net_rig rig;
  const std::string post = "POST /p HTTP/1.1\r\nHost: h\r\n";
  const std::vector<std::string> smuggled{
      post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: identity\r\n\r\n",
      post + "Transfer-Encoding: xchunked\r\n\r\n",
      post + "Host: other\r\n\r\n",
      post + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
      post + "Upgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
      post +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
      "POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
  for (const std::string& bytes : smuggled) EXPECT_EQ(status_and_close(rig, bytes), 400) << bytes;
  EXPECT_EQ(rig.counters().requests, 0);
}

TEST(Listener, ATrailerDoesNotBecomeAHeaderField) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send(
      "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nUpgrade: "
      "websocket\r\n\r\n");
  EXPECT_EQ(read_answer(peer)->status, 200);
}

TEST(Listener, ALongTailOfAChunkedBodyIsAnsweredWith431AndNotWaitedFor) {
  net_rig rig;  // 30 s for a body: more than a peer of the test waits for an answer
  const std::string head = "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string trailers;
  while (trailers.size() < 50'000) trailers += "X-Trailer: " + std::string(89, 't') + "\r\n";
  EXPECT_EQ(status_and_close(rig, head + "2\r\nok\r\n0\r\n" + trailers), 431);
  EXPECT_EQ(status_and_close(rig, head + "2\r\nok\r\n0\r\n" + trailers + "\r\n"), 431);
  EXPECT_EQ(status_and_close(rig, head + "2;x=" + std::string(50'000, 'x')), 431);
  EXPECT_EQ(rig.counters().requests, 0);
  trailers.resize(10'000 - 10'000 % 102);
  EXPECT_EQ(status_and_close(rig,
                             "POST /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" +
                                 trailers + "\r\n"),
            200);
}

TEST(Listener, LimitsOfTheHeadAreAnsweredWith431) {
  net_limits limits;
  limits.fields = 8;
  limits.target_bytes = 100;
  limits.head_bytes = 2048;
  net_rig rig{limits};
  const auto fields = [](int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += "x-" + std::to_string(i) + ": v\r\n";
    return get("/", lines + "Connection: close\r\n");
  };
  EXPECT_EQ(status_and_close(rig, fields(5)), 200);
  EXPECT_EQ(status_and_close(rig, fields(6)), 200);
  EXPECT_EQ(status_and_close(rig, fields(7)), 431);
  EXPECT_EQ(status_and_close(rig, get('/' + std::string(99, 'p'), "Connection: close\r\n")), 200);
  EXPECT_EQ(status_and_close(rig, get('/' + std::string(100, 'p'))), 431);
  EXPECT_EQ(status_and_close(rig, get("/", "x: " + std::string(2100, 'v') + "\r\n")), 431);
}

TEST(Listener, LimitsOfTheBodyAreAnsweredWith413) {
  net_limits limits;
  limits.body_bytes = 1000;
  net_rig rig{limits};
  const auto post = [](std::size_t bytes) {
    return "POST /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: " +
           std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'b');
  };
  EXPECT_EQ(status_and_close(rig, post(999)), 200);
  EXPECT_EQ(status_and_close(rig, post(1000)), 200);
  EXPECT_EQ(status_and_close(rig, post(1001)), 413);
  EXPECT_EQ(status_and_close(rig, post(3'000'000)), 413);
  EXPECT_EQ(status_and_close(
                rig, "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                         std::string(1001, 'b') + "\r\n0\r\n\r\n"),
            413);
}

TEST(Listener, WhatIsTooLargeIsRefusedWithThatReason) {
  net_limits limits;
  limits.body_bytes = 10;
  limits.target_bytes = 10;
  net_rig rig{limits};
  const std::string long_body =
      "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\nbbbbbbbbbbb";
  for (const std::string& bytes : {long_body, get('/' + std::string(10, 'p'))}) {
    raw_peer peer{rig.port()};
    peer.send(bytes);
    const auto answer = read_answer(peer);
    ASSERT_TRUE(answer);
    EXPECT_THAT(answer->body, HasSubstr(R"("type":"urn:leasehold:reason:too_large")"));
    EXPECT_THAT(answer->body, HasSubstr(R"("reason":"too_large")"));
  }
}

TEST(Listener, ARefusalRepeatsTheIdsOfAHeadThatWasRead) {
  net_limits limits;
  limits.body_bytes = 10;
  net_rig rig{limits};
  const std::string trace = "00-" + std::string(32, 'a') + '-' + std::string(16, 'b') + "-01";
  const auto refused = [&](const std::string& ids) {
    raw_peer peer{rig.port()};
    peer.send("POST /p HTTP/1.1\r\nHost: h\r\n" + ids + "Content-Length: 11\r\n\r\n12345678901");
    const auto answer = read_answer(peer);
    return answer ? answer->body : "no answer";
  };
  const auto both = refused("X-Request-Id: r\"1\r\ntraceparent: " + trace + "\r\n");
  EXPECT_THAT(both, HasSubstr(R"("request_id":"r\"1")"));
  EXPECT_THAT(both, HasSubstr("\"trace_id\":\"" + trace + '"'));
  for (const char* ids : {"", "X-Request-Id: a b\r\ntraceparent: 1\r\n"}) {
    EXPECT_THAT(refused(ids), HasSubstr(R"("request_id":"","trace_id":"")"));
  }
}

TEST(Listener, ASlowHeadIsAnsweredWith408AndASilentPeerIsClosed) {
  net_limits limits;
  limits.head = milliseconds{50};
  net_rig rig{limits};
  EXPECT_EQ(status_and_close(rig, "GET / HTTP/1.1\r\nHost: h\r\nX-Slow"), 408);
  EXPECT_EQ(status_and_close(rig, ""), 0);
}

TEST(Listener, ASlowHeadIsNotSavedByOneByteAtATime) {
  net_limits limits;
  limits.head = milliseconds{60};
  net_rig rig{limits};
  raw_peer peer{rig.port()};
  peer.send("GET / HTTP/1.1\r\n");
  while (peer.silent_for(milliseconds{5})) peer.send("a");
  EXPECT_EQ(read_answer(peer)->status, 408);
}

TEST(Listener, ASlowBodyIsAnsweredWith408) {
  net_limits limits;
  limits.body = milliseconds{50};
  net_rig rig{limits};
  EXPECT_EQ(status_and_close(rig, "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe"),
            408);
}

TEST(Listener, AnIdleConnectionIsClosedWithoutAnAnswer) {
  net_limits limits;
  limits.idle = milliseconds{50};
  net_rig rig{limits};
  raw_peer peer{rig.port()};
  peer.send(get("/x"));
  EXPECT_EQ(read_answer(peer)->status, 200);
  EXPECT_EQ(peer.read_to_end(), "");
}

TEST(Listener, ARequestMayBeAnsweredLaterThanAnyLimit) {
  net_limits limits;
  limits.idle = limits.head = limits.body = milliseconds{20};
  net_rig rig{limits};
  raw_peer peer{rig.port()};
  peer.send(get("/wait"));
  ASSERT_TRUE(rig.seen().wait_for("/wait"));
  EXPECT_TRUE(peer.silent_for(milliseconds{100}));
  rig.on_loop([&] {
    EXPECT_FALSE(rig.api().waiting_peer_gone());
    rig.api().answer_waiting();
    return 0;
  });
  EXPECT_EQ(read_answer(peer)->body, "at last");
}

TEST(Listener, APeerThatLeavesWhileItsRequestWaitsIsGone) {
  for (const bool by_reset : {false, true}) {
    net_rig rig;
    raw_peer peer{rig.port()};
    peer.send(get("/wait"));
    ASSERT_TRUE(rig.seen().wait_for("/wait"));
    by_reset ? peer.reset() : peer.close();
    EXPECT_TRUE(net_rig::eventually(
        [&] { return rig.on_loop([&] { return rig.api().waiting_peer_gone(); }); }));
    rig.on_loop([&] {
      rig.api().answer_waiting();
      return 0;
    });
    EXPECT_TRUE(net_rig::eventually([&] { return rig.counters().connections_open == 0; }));
  }
}

TEST(Listener, APeerThatHalfClosesStillGetsItsAnswer) {
  net_rig rig;
  raw_peer peer{rig.port()};
  peer.send(get("/wait"));
  ASSERT_TRUE(rig.seen().wait_for("/wait"));
  peer.half_close();
  EXPECT_TRUE(net_rig::eventually(
      [&] { return rig.on_loop([&] { return rig.api().waiting_peer_gone(); }); }));
  rig.on_loop([&] {
    rig.api().answer_waiting();
    return 0;
  });
  EXPECT_EQ(read_answer(peer)->body, "at last");
  EXPECT_TRUE(peer.read_to_end());
}

TEST(Listener, AHeaderValueOfTheApiCannotBeginAnotherAnswer) {
  const std::string text =
      answer_text({200, {{"x-good", "yes"}, {"x-bad", "a\r\nset-cookie: b"}}, "body"}, true, true);
  EXPECT_THAT(text, HasSubstr("x-good: yes\r\n"));
  EXPECT_EQ(text.find("cookie"), std::string::npos);
}

TEST(Listener, ConnectionsBeyondTheCapAreTurnedAwayUntilOneLeaves) {
  net_limits limits;
  limits.connections = 2;
  net_rig rig{limits};
  raw_peer first{rig.port()};
  raw_peer second{rig.port()};
  ASSERT_TRUE(net_rig::eventually([&] { return rig.listener().connections() == 2; }));
  raw_peer third{rig.port()};
  EXPECT_EQ(read_answer(third)->status, 503);
  first.close();
  ASSERT_TRUE(net_rig::eventually([&] { return rig.listener().connections() == 1; }));
  raw_peer fourth{rig.port()};
  fourth.send(get("/x"));
  EXPECT_EQ(read_answer(fourth)->status, 200);
}

TEST(Listener, ConnectionsAreSharedOutEvenlyAndStayOnTheirThread) {
  net_rig rig{{}, 3};
  std::vector<std::unique_ptr<raw_peer>> peers;
  for (int i = 0; i < 9; ++i) {
    peers.push_back(std::make_unique<raw_peer>(rig.port()));
    peers.back()->send(get("/x"));
    ASSERT_EQ(read_answer(*peers.back())->status, 200);
  }
  EXPECT_THAT(rig.listener().connections_by_thread(), testing::Each(3));
}

TEST(Listener, APortThatIsTakenIsRefusedWithASentence) {
  net_rig rig;
  thread_loop loop;
  loop.start();
  listener second{{{&loop, nullptr}}, {}};
  auto outcome = second.open("127.0.0.1", rig.port());
  ASSERT_TRUE(std::holds_alternative<listen_failed>(outcome));
  EXPECT_THAT(std::get<listen_failed>(outcome).sentence,
              HasSubstr("127.0.0.1:" + std::to_string(rig.port())));
  outcome = second.open("localhost", 0);
  EXPECT_THAT(std::get<listen_failed>(outcome).sentence, HasSubstr("localhost"));
}

TEST(Listener, AStopAnswersWhatIsBeingAnsweredAndCutsOffTheRest) {
  net_rig rig;
  raw_peer idle{rig.port()};
  raw_peer waiting{rig.port()};
  waiting.send(get("/wait"));
  ASSERT_TRUE(rig.seen().wait_for("/wait"));
  auto stopped = std::async(std::launch::async, [&] {
    rig.listener().stop(protocol::close_code::draining, "", std::chrono::seconds{5});
  });
  EXPECT_EQ(idle.read_to_end(), "");
  rig.on_loop([&] {
    rig.api().answer_waiting();
    return 0;
  });
  const auto answer = read_answer(waiting);
  EXPECT_EQ(answer->body, "at last");
  EXPECT_TRUE(answer->has("connection: close"));
  waiting.close();
  stopped.wait();
  EXPECT_EQ(rig.listener().connections(), 0U);
  EXPECT_FALSE(raw_peer{rig.port()}.connected());
}

TEST(Listener, AStopCutsOffWhatIsStillOpenAtItsLimit) {
  net_rig rig;
  raw_peer waiting{rig.port()};
  waiting.send(get("/wait"));
  ASSERT_TRUE(rig.seen().wait_for("/wait"));
  rig.listener().stop(protocol::close_code::draining, "", milliseconds{20});
  EXPECT_TRUE(waiting.read_to_end());
  EXPECT_EQ(rig.listener().connections(), 0U);
}

TEST(Admission, CountsHandshakesByAddressUntilTheyAreEstablished) {
  net_limits limits;
  limits.handshakes_per_address = 2;
  const auto gate = std::make_shared<admission>(limits);
  auto first = gate->admit("192.0.2.1", false);
  auto second = gate->admit("192.0.2.1", false);
  EXPECT_FALSE(gate->admit("192.0.2.1", false).admitted);
  EXPECT_TRUE(gate->admit("192.0.2.2", false).admitted);
  first.admitted->established();
  EXPECT_TRUE(gate->admit("192.0.2.1", false).admitted);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(gate->admit("127.0.0.1", true).admitted);
}

TEST(Admission, LeavesDescriptorsForEverythingElse) {
  EXPECT_EQ(connection_cap(1, 256), 1U);
  EXPECT_EQ(connection_cap(10, 1'000'000'000), 1U);
}

}  // namespace
}  // namespace leasehold::server
