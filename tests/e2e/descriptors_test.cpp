// No descriptors left while the server runs: who is connected goes on, who comes is told so.
#include <algorithm>

#include "bench/figures.hpp"
#include "bench/process_cost.hpp"
#include "process_limits.hpp"
#include "steady_workers.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr rlim_t reserve = 256;  // of the server, for everything but connections

class descriptors : public on_threads {
 protected:
  live_server server{GetParam()};
  steady_workers others{server};

  void SetUp() override {
    // Connections that are kept: those who ask below.
    EXPECT_EQ(server.get("/readyz").status, 200);
    server.metrics();
  }

  void expect_turned_away() {
    test::raw_peer peer(server.port());
    const auto answer = test::read_answer(peer);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
    EXPECT_TRUE(answer->has("retry-after: 1")) << answer->head;
    EXPECT_TRUE(peer.read_to_end());
  }

  /// The server's CPU in a second of the others' work, while somebody tries to connect now and
  /// then.
  double cpu_of_a_second() {
    const double before = bench::cpu_seconds_of(server.process());
    const auto by = steady_clock::now() + milliseconds{1000};
    while (steady_clock::now() < by) {
      others.turn();
      const test::raw_peer in_vain(server.port());
    }
    return bench::cpu_seconds_of(server.process()) - before;
  }

  void expect_room_again() {
    EXPECT_TRUE(eventually([&] {
      others.turn();
      return server.get("/readyz").status == 200;
    }));
    stream_peer late(server, "w2", 'e');
    EXPECT_TRUE(late.upgraded());
    late.hello();
    others.expect_unharmed();
  }
};
LEASEHOLD_ON_THREADS(descriptors);

TEST_P(descriptors, AtTheLimitNewConnectionsAreTurnedAwayAndTheOthersGoOn) {
  const auto open = bench::metric(server.metrics(), "leasehold_connections");
  server.limit(RLIMIT_NOFILE, reserve + static_cast<rlim_t>(open) + 2);
  {
    stream_peer last(server, "w2", 'c');
    last.hello();
    const stream_peer very_last(server, "w2", 'd');
    EXPECT_TRUE(very_last.upgraded());
    expect_turned_away();
    const auto unready = server.get("/readyz");
    EXPECT_EQ(unready.status, 503);
    EXPECT_EQ(unready.body.at("reason"), "not_ready");
    EXPECT_NE(unready.text.find("connections"), std::string::npos) << unready.text;
    EXPECT_TRUE(server.has_logged("\"event\":\"connections were turned away\""));
    EXPECT_EQ(last.tell(last.frame(protocol::event_kind::renew, "none", 1, 1)).reason,
              protocol::reason::unknown_lease);
  }
  expect_room_again();
}

TEST_P(descriptors, WithoutAnyLeftNothingSpinsAndItRecovers) {
  server.limit(RLIMIT_NOFILE, next_descriptor_of(server));
  expect_turned_away();
  EXPECT_EQ(server.get("/readyz").status, 503);
  EXPECT_LT(cpu_of_a_second(), 0.5);
  others.expect_unharmed();
  EXPECT_TRUE(server.runs());

  server.limit(RLIMIT_NOFILE, 4096);
  expect_room_again();
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
