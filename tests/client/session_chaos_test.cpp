// Whole lives of jobs over a channel that reorders, repeats, delays and drops frames both ways,
// with reconnects: what must never happen does not, and when the faults stop everything ends.
#include <gtest/gtest.h>

#include <random>

#include "client/session_bench.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;
using protocol::lease_state;
using protocol::outcome;

client::chaos_options faults(std::uint64_t seed) {
  client::chaos_options chosen;
  chosen.reorder = 0.3;
  chosen.dup = 0.15;
  chosen.drop = 0.15;
  chosen.delay_most = {40};
  chosen.seed = seed;
  return chosen;
}

/// One worker, a few jobs, and a day full of trouble.
class rough_day {
 public:
  explicit rough_day(std::uint64_t seed) : bench(faults(seed), 4), random_(seed) {
    bench.coordinator.policy.lease_duration = {1200};
    bench.coordinator.policy.ack_timeout = {400};
    bench.connect();
  }

  void run() {
    for (int ms = 0; ms < 20000; ++ms) step(true);
    bench.disconnect();
    bench.to_coordinator = client::chaos_channel<protocol::worker_frame>({}, 0);
    bench.to_worker = client::chaos_channel<protocol::coordinator_frame>({}, 0);
    bench.connect();
    for (int ms = 0; ms < 20000 && !all_settled(); ++ms) step(false);
    bench.run_for(6000);
  }

  [[nodiscard]] bool all_settled() const {
    for (const auto& lease : leases_) {
      if (!bench.coordinator.knows(lease)) return false;
      if (!protocol::is_settled(bench.coordinator.record(lease).state)) return false;
    }
    return true;
  }
  [[nodiscard]] const std::vector<std::string>& leases() const { return leases_; }
  session_bench bench;

 private:
  bool one_in(int n) { return std::uniform_int_distribution<int>(1, n)(random_) == 1; }

  void step(bool trouble) {
    bench.run_for(1);
    if (trouble && one_in(1500)) bench.disconnect();
    if (!bench.connected && one_in(100)) bench.connect();
    if (bench.connected && !bench.over.empty()) {
      bench.over.clear();
      bench.disconnect();
    }
    if (trouble && leases_.size() < 60 && one_in(150))
      leases_.push_back("L" + std::to_string(leases_.size()));
    if (bench.connected && one_in(20)) offer_something();
    if (trouble && !leases_.empty() && one_in(1000)) {
      bench.coordinator.cancel(bench.server_now(), leases_[random_() % leases_.size()]);
    }
    work();
    check_authority();
  }

  void offer_something() {
    if (leases_.empty() || bench.running.size() >= 3) return;
    const auto& lease = leases_[random_() % leases_.size()];
    bench.coordinator.offer(bench.server_now(), lease);
    bench.settle();
  }

  /// The program: tells progress, ends after a while, stops when it is told to.
  void work() {
    const auto running = bench.running;
    for (const auto& job : running) {
      if (one_in(50)) bench.session.progress(bench.now, job, std::to_string(bench.now.ms));
      if (bench.cancelled.contains(job) ? one_in(30) : one_in(600)) {
        bench.finish(job, bench.cancelled.contains(job) ? outcome::cancelled : outcome::success);
      }
    }
    const auto lost = bench.lost;
    for (const auto& [job, why] : lost) {
      if (!stopped_.contains(job) && one_in(100)) {
        stopped_.insert(job);
        bench.finish(job, outcome::failed);
      }
    }
  }

  /// Whoever works without having been told to stop has authority, by the coordinator's clock. Only
  /// what the coordinator ends early, a cancel at its deadline, is bounded by the worker's margin
  /// too.
  void check_authority() {
    for (const auto& job : bench.running) {
      const auto& r = bench.coordinator.record(job.lease.value);
      ASSERT_EQ(r.gen, job.gen);
      if (bench.cancelled.contains(job) || r.cancel_requested_at) continue;
      ASSERT_EQ(r.state, lease_state::active) << job.lease.value;
      ASSERT_LT(bench.server_now(), r.expires_at);
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> leases_;
  std::set<grant> stopped_;
};

class session_chaos : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(seeds, session_chaos, testing::Range(1, 41));

TEST_P(session_chaos, NobodyWorksTwiceOrWithoutAuthorityAndEverythingEnds) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  rough_day day(static_cast<std::uint64_t>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(day.run());
  EXPECT_GT(day.leases().size(), 20U);
  for (const auto& [job, times] : day.bench.starts) EXPECT_EQ(times, 1) << job.lease.value;
  EXPECT_TRUE(day.all_settled());
  EXPECT_EQ(day.bench.session.grants(), 0U);
  EXPECT_EQ(day.bench.session.unanswered(), 0U);
}

TEST_P(session_chaos, SequencesRiseAndAResultIsTheLastWord) {
  rough_day day(static_cast<std::uint64_t>(GetParam()));
  ASSERT_NO_FATAL_FAILURE(day.run());
  std::map<grant, protocol::event> closing;
  std::map<std::pair<grant, std::int64_t>, std::string> progress;
  for (const auto& frame : day.bench.sent) {
    const auto* about = std::get_if<protocol::lease_frame>(&frame.body);
    if (about == nullptr) continue;
    const auto& what = about->what;
    const grant of{what.lease, what.gen};
    const bool closes = what.kind == event_kind::result || what.kind == event_kind::release;
    if (closes) {
      const auto [first, is_new] = closing.emplace(of, what);
      EXPECT_EQ(first->second.kind, what.kind);
      EXPECT_EQ(first->second.ending, what.ending);
      EXPECT_EQ(first->second.sent_at, what.sent_at) << "a repeat has the same content";
    } else if (what.kind == event_kind::renew || what.kind == event_kind::progress) {
      EXPECT_FALSE(closing.contains(of)) << "nothing is sent for a generation that has ended";
    }
    if (what.kind == event_kind::progress) {
      const auto [first, is_new] = progress.emplace(std::pair(of, what.seq.value), what.value);
      EXPECT_EQ(first->second, what.value) << "one value for each sequence";
    }
  }
}

}  // namespace
}  // namespace leasehold::tests
