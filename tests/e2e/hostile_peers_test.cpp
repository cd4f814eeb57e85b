// Peers that waste what they can: time, pieces, size, pings, connections. Each ends as documented,
// those who work go on, and nothing of it stays.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>

#include "bench/figures.hpp"
#include "bench/load_stream.hpp"
#include "process_limits.hpp"
#include "steady_workers.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::close_code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::int64_t mib = std::int64_t{1024} * 1024;

/// Sends one piece after another, a pause between them, until it is answered or closed.
class slow_sender {
 public:
  slow_sender(std::uint16_t port, std::string_view begin, std::string piece, milliseconds pause)
      : peer_(port), piece_(std::move(piece)), pause_(pause) {
    peer_.send(begin);
  }

  /// True once the other end has said something.
  bool turn() {
    if (!peer_.silent_for(milliseconds{0})) return true;
    if (const auto now = steady_clock::now(); due_ <= now) {
      due_ = now + pause_;
      peer_.send(piece_);
    }
    return false;
  }
  test::raw_peer& peer() { return peer_; }

 private:
  test::raw_peer peer_;
  std::string piece_;
  milliseconds pause_;
  steady_clock::time_point due_ = steady_clock::now();
};

class hostile_peers : public on_threads {
 protected:
  live_server server{GetParam(), {"--heartbeat", "3s"}};

  void SetUp() override { server.metrics(); }  // the connection that asks is there from now on

  std::string upgrade(const std::string& principal) {
    return test::upgrade_request("/v1/stream",
                                 "Sec-WebSocket-Protocol: leasehold.v1.protobuf\r\n"
                                 "Authorization: Bearer " +
                                     server.token(principal) + "\r\n");
  }
  void expect_a_slow_body_answered(steady_workers& others) {
    slow_sender body(
        server.port(),
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 5000\r\nAuthorization: Bearer " +
            server.token("client") + "\r\n\r\n",
        " ", milliseconds{100});
    EXPECT_TRUE(meanwhile(
        others, [&] { return body.turn(); }, 2 * patience));
    const auto answer = test::read_answer(body.peer());
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 408);
  }
  /// Lets the others work until it holds.
  static bool meanwhile(steady_workers& others, const std::function<bool()>& holds,
                        milliseconds within = patience) {
    const auto by = steady_clock::now() + within;
    while (!holds()) {
      if (steady_clock::now() > by) return false;
      others.turn();
    }
    return true;
  }
};
LEASEHOLD_ON_THREADS(hostile_peers);

/// What is bounded by time takes that time, so one number of threads is enough.
class slow_peers : public hostile_peers {
 protected:
  /// A session that is welcomed, with the first piece of a message sent. Then an empty piece now
  /// and then: few enough, and too slow.
  slow_sender begin_message() {
    slow_sender made(server.port(), upgrade("w2"),
                     test::bytes_of({.opcode = 0, .payload = {}, .fin = false}),
                     milliseconds{1000});
    EXPECT_TRUE(made.peer().read_until("\r\n\r\n"));
    protocol::hello said;
    said.incarnation = std::string(32, 'd');
    protocol::codec codec(protocol::encoding::protobuf);
    const std::vector<protocol::worker_frame> frames{{1, std::move(said)}};
    std::string bytes;
    codec.encode(frames, bytes);
    made.peer().send(test::bytes_of({.opcode = 2, .payload = bytes}));
    EXPECT_TRUE(test::read_frame(made.peer()));
    made.peer().send(test::bytes_of({.opcode = 2, .payload = "x", .fin = false}));
    return made;
  }
  /// The close code, once there is one; heartbeats come before it.
  static std::optional<int> ended(slow_sender& message) {
    while (message.turn()) {
      const auto frame = test::read_frame(message.peer());
      if (!frame) return 0;
      if (frame->opcode != 8 || frame->payload.size() < 2) continue;
      return static_cast<unsigned char>(frame->payload[0]) << 8 |
             static_cast<unsigned char>(frame->payload[1]);
    }
    return std::nullopt;
  }
};
INSTANTIATE_TEST_SUITE_P(Threads, slow_peers, testing::Values(3),
                         [](const auto& with) { return std::to_string(with.param); });

TEST_P(slow_peers, AreAnsweredOrClosedInTime) {
  steady_workers others(server);
  const process_room before(server);
  const auto begun = steady_clock::now();

  slow_sender head(server.port(), "GET /v1/jobs HTTP/1.1\r\nX-Slow: ", "x", milliseconds{100});
  auto message = begin_message();
  // Half open: it has vanished without a word, with a lease.
  stream_peer vanished(server, "w2", 'c');
  vanished.hello();
  vanished.credit(1);
  server.submit("left", {{"lease_duration_ms", 3'600'000}});
  ASSERT_TRUE(vanished.offer_of("left"));
  vanished.start("left", 1);

  EXPECT_TRUE(meanwhile(others, [&] { return head.turn(); }));
  EXPECT_LT(steady_clock::now() - begun, milliseconds{10'000});
  const auto answer = test::read_answer(head.peer());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 408);

  std::optional<int> code;
  EXPECT_TRUE(meanwhile(others, [&] { return (code = ended(message)).has_value(); }));
  EXPECT_EQ(code, static_cast<int>(close_code::policy));
  EXPECT_GE(steady_clock::now() - begun, milliseconds{10'000});
  EXPECT_LT(steady_clock::now() - begun, milliseconds{20'000});

  // Nothing was read by it either: what it was sent ends with the close.
  EXPECT_TRUE(meanwhile(others, [&] {
    return server.get("/v1/workers", "operator").text.find("w2/c") == std::string::npos;
  }));
  EXPECT_EQ(vanished.close_code(), static_cast<int>(close_code::no_heartbeat));
  // A disconnect changes no authority.
  expect_columns(server.job("left"), {{"state", "active"}});

  // Half a minute long, so only where it is asked for.
  if (std::getenv("LEASEHOLD_SLOW_BODY") != nullptr) expect_a_slow_body_answered(others);
  head.peer().close();
  message.peer().close();
  others.expect_unharmed();
  EXPECT_TRUE(before.has_its_descriptors_back());
  EXPECT_TRUE(before.grew_at_most(8 * mib));
}

TEST_P(hostile_peers, WhoSendsTooMuchIsClosedAtOnce) {
  steady_workers others(server);
  const process_room before(server);
  std::string pieces = test::bytes_of({.opcode = 2, .payload = "x", .fin = false});
  for (int i = 0; i < 1000; ++i) {
    pieces += test::bytes_of({.opcode = 0, .payload = "x", .fin = false});
  }
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += test::bytes_of({.opcode = 9, .payload = "ping"});
  const std::vector<std::pair<std::string, close_code>> floods{
      {test::bytes_of({.opcode = 2, .payload = {}, .claimed_length = std::uint64_t{1} << 62}),
       close_code::too_big},
      {test::bytes_of({.opcode = 2, .payload = std::string(70'000, 'x')}), close_code::too_big},
      {pieces, close_code::policy},
      {pings, close_code::policy}};
  for (int round = 0; round < 5; ++round) {
    for (const auto& [bytes, code] : floods) {
      test::raw_peer peer(server.port());
      peer.send(upgrade("w2"));
      ASSERT_TRUE(peer.read_until("\r\n\r\n"));
      peer.send(bytes);
      EXPECT_EQ(test::read_close_code(peer), static_cast<int>(code));
      others.turn();
    }
  }
  others.expect_unharmed();
  EXPECT_TRUE(before.has_its_descriptors_back());
  EXPECT_TRUE(before.grew_at_most(8 * mib));
}

TEST_P(hostile_peers, AStormOfReconnectsLeavesNothingBehind) {
  constexpr int connects = 1000;
  constexpr int processes = 250;  // each comes back again and again
  constexpr std::size_t at_once = 100;
  steady_workers others(server);
  const process_room before(server);
  protocol::codec codec(protocol::encoding::protobuf);
  std::deque<bench::load_stream> open;
  for (int i = 0; i < connects; ++i) {
    auto& one = open.emplace_back(server.port(), server.token("w2"));
    ASSERT_FALSE(one.socket().gone());
    protocol::hello said;
    said.incarnation = std::to_string(i % processes);
    said.incarnation.insert(0, 32 - said.incarnation.size(), 'b');
    said.queues.push_back({"q", {}});
    const std::vector<protocol::worker_frame> frames{{1, said}};
    std::string bytes;
    codec.encode(frames, bytes);
    one.send(bytes);
    one.socket().flush();
    if (open.size() > at_once) open.pop_front();
    others.turn();
  }
  open.clear();
  EXPECT_TRUE(meanwhile(others, [&] {
    return bench::metric(server.metrics(), "leasehold_sessions") == 3;  // the others
  }));
  others.expect_unharmed();
  EXPECT_TRUE(before.has_its_descriptors_back());
  EXPECT_TRUE(before.grew_at_most(16 * mib));
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
