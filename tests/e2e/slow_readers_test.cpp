// Workers that do not read what they ask for: bounded, closed, and nobody else's trouble.
#include <algorithm>

#include "bench/figures.hpp"
#include "bench/mute_reader.hpp"
#include "process_limits.hpp"
#include "steady_workers.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;

constexpr std::size_t count = 30;
constexpr std::int64_t mib = 1024 * 1024;

class slow_readers : public on_threads {
 protected:
  live_server server{GetParam()};

  double closed_for_it() { return bench::metric(server.metrics(), "leasehold_slow_readers_total"); }
};
LEASEHOLD_ON_THREADS(slow_readers);

TEST_P(slow_readers, AreCutOffWhileTheOthersRenew) {
  steady_workers others(server);
  server.submit("offered", {{"ack_timeout_ms", 500}}, "idle");
  closed_for_it();  // the connection that asks is among the descriptors
  const process_room before(server);

  std::vector<bench::mute_reader> readers;
  for (std::size_t i = 0; i < count; ++i) {
    auto incarnation = std::to_string(i);
    incarnation.insert(0, 32 - incarnation.size(), 'b');
    readers.emplace_back(bench::mute_reader::options{.port = server.port(),
                                                     .principal = "w2",
                                                     .token = server.token("w2"),
                                                     .incarnation = incarnation,
                                                     .queue = "idle"});
    ASSERT_FALSE(readers.back().gone());
    others.turn();
  }
  const auto by = std::chrono::steady_clock::now() + patience;
  bool bounded = true;
  bench::keep_asking(readers, std::chrono::milliseconds{20}, [&] {
    others.turn();
    // A queue of 256 KiB, and what the buffers that it grew through may take beside it.
    bounded = bounded && before.grew_at_most(static_cast<std::int64_t>(count) * mib + 8 * mib);
    return std::chrono::steady_clock::now() > by ||
           std::ranges::all_of(readers, [](const auto& r) { return r.took().has_value(); });
  });
  EXPECT_TRUE(bounded);
  for (const auto& each : readers) {
    ASSERT_TRUE(each.took());
    EXPECT_LT(each.took()->count(), 15);
  }
  EXPECT_EQ(closed_for_it(), count);
  others.expect_unharmed();
  EXPECT_TRUE(before.has_its_descriptors_back());
  // What they took is given back, not only free to be used again.
  EXPECT_TRUE(eventually([&] {
    others.turn();
    return before.grew_at_most(6 * mib);
  })) << before.growth();
  expect_proven(server);
}

TEST_P(slow_readers, OneThatReadsAtLastIsTold4002) {
  stream_peer worker(server, "w1");
  worker.hello();
  const std::vector<frame_body> asks(128, worker.frame(event_kind::renew, "none", 1, 1));
  ASSERT_TRUE(eventually([&] {
    worker.say_all(asks);
    return closed_for_it() > 0;
  }));
  EXPECT_EQ(worker.close_code(), static_cast<int>(protocol::close_code::slow_reader));
}

}  // namespace
}  // namespace leasehold::e2e
