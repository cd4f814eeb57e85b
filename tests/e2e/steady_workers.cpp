#include "steady_workers.hpp"

#include <algorithm>
#include <string>

#include "bench/load_poll.hpp"

namespace leasehold::e2e {

namespace {
constexpr std::size_t leases_each = 2;
constexpr std::chrono::milliseconds renew_pause{100};
constexpr int wait_ms = 2;
}  // namespace

steady_workers::steady_workers(live_server& server, std::size_t count,
                               std::chrono::milliseconds lease) {
  for (std::size_t i = 0; i < count * leases_each; ++i) {
    server.submit("steady" + std::to_string(i), {{"lease_duration_ms", lease.count()}}, "steady");
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto incarnation = std::to_string(i);
    incarnation.insert(0, 32 - incarnation.size(), 'f');
    workers_.emplace_back(bench::renew_worker::options{.port = server.port(),
                                                       .token = server.token("w1"),
                                                       .incarnation = incarnation,
                                                       .queue = "steady",
                                                       .leases = leases_each});
  }
  EXPECT_TRUE(eventually([this] {
    poll();
    return std::ranges::all_of(workers_, [](const auto& w) { return w.holds_all(); });
  }));
  due_ = std::chrono::steady_clock::now();
}

void steady_workers::turn() {
  if (const auto now = std::chrono::steady_clock::now(); due_ <= now) {
    due_ = now + renew_pause;
    renew();
  }
  poll();
}

void steady_workers::renew() {
  for (auto& each : workers_) each.renew_one();
  asked_ += static_cast<std::int64_t>(workers_.size());
}

void steady_workers::expect_unharmed() {
  renew();
  EXPECT_TRUE(eventually([this] {
    poll();
    return std::ranges::all_of(workers_, [](const auto& w) { return w.answered(); });
  }));
  std::int64_t accepted = 0;
  for (auto& each : workers_) {
    const auto tally = each.take_tally();
    accepted += tally.accepted;
    EXPECT_EQ(tally.refused, 0);
    EXPECT_EQ(each.lost(), 0);
  }
  EXPECT_EQ(accepted, std::exchange(asked_, 0));
}

void steady_workers::poll() {
  for (auto& each : workers_) each.turn();
  EXPECT_TRUE(bench::poll_all(
      workers_, [](bench::renew_worker& w) -> bench::load_socket& { return w.socket(); }, wait_ms));
}

}  // namespace leasehold::e2e
