#include "src/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "src/rate_limits.hpp"
#include "src/store/read_pool.hpp"

namespace leasehold::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(metrics, CountersOfAllThreadsAreAddedUp) {
  auto a = std::make_shared<actors::counters>();
  auto b = std::make_shared<actors::counters>();
  a->commits.add(2);
  b->commits.add(3);
  a->count(protocol::event_kind::renew, protocol::decision::accepted, protocol::reason::renewed);
  b->count(protocol::event_kind::renew, protocol::decision::accepted, protocol::reason::renewed);
  b->count(protocol::event_kind::renew, protocol::decision::rejected,
           protocol::reason::lease_expired);
  a->leases[static_cast<std::size_t>(protocol::lease_state::active)].add(4);
  EXPECT_THAT(
      metrics_page({a, b}, nullptr),
      AllOf(
          HasSubstr("leasehold_store_commits_total 5"),
          HasSubstr("leasehold_events_total{event=\"renew\",decision=\"accepted\"} 2"),
          HasSubstr("leasehold_decisions_total{decision=\"rejected\",reason=\"lease_expired\"} 1"),
          HasSubstr("leasehold_leases{state=\"active\"} 4")));
}

TEST(metrics, AHistogramIsCumulativeAndEndsWithEverything) {
  auto c = std::make_shared<actors::counters>();
  for (const std::int64_t us : {100, 101, 250, 20'000'000}) c->commit_time.observe_us(us);
  EXPECT_THAT(metrics_page({c}, nullptr),
              AllOf(HasSubstr("leasehold_store_commit_seconds_bucket{le=\"0.0001\"} 1"),
                    HasSubstr("leasehold_store_commit_seconds_bucket{le=\"0.00025\"} 3"),
                    HasSubstr("leasehold_store_commit_seconds_bucket{le=\"10\"} 3"),
                    HasSubstr("leasehold_store_commit_seconds_bucket{le=\"+Inf\"} 4"),
                    HasSubstr("leasehold_store_commit_seconds_count 4")));
}

TEST(metrics, EveryReasonFitsTheTables) {
  for (const auto& entry : protocol::all_reasons())
    EXPECT_LT(entry.number, actors::counters::reasons);
}

TEST(bucket, LetsTwiceTheRateThroughAtOnceAndThenTheRate) {
  bucket b;
  protocol::instant now{1000};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(b.take(1, 10, now).ms, 0) << i;
  EXPECT_EQ(b.take(1, 10, now).ms, 100);
  now.ms += 99;
  EXPECT_EQ(b.take(1, 10, now).ms, 1);
  now.ms += 1;
  EXPECT_EQ(b.take(1, 10, now).ms, 0);
  EXPECT_EQ(b.take(1, 10, now).ms, 100);
  EXPECT_EQ(b.take(1'000'000, 0, now).ms, 0);
}

TEST(bucket, AClockThatStandsStillGivesNothingBack) {
  bucket b;
  EXPECT_EQ(b.take(20, 10, {1000}).ms, 0);
  EXPECT_EQ(b.take(1, 10, {500}).ms, 100);
  EXPECT_EQ(b.take(1, 10, {1000}).ms, 100);
}

TEST(bucket, WhatIsChargedMustBePaidBack) {
  bucket b;
  EXPECT_EQ(b.charge(20, 10, {1000}).ms, 0);
  EXPECT_EQ(b.charge(30, 10, {1000}).ms, 3000);
  EXPECT_EQ(b.charge(1, 10, {4000}).ms, 100);
}

TEST(tenant_quota, APlaceIsGivenBackWithItsLastCopy) {
  auto quota = std::make_shared<tenant_quota>();
  auto first = quota->enter("t", 1);
  auto copy = first;
  EXPECT_EQ(quota->enter("t", 1), nullptr);
  EXPECT_NE(quota->enter("u", 1), nullptr);
  first.reset();
  EXPECT_EQ(quota->enter("t", 1), nullptr);
  copy.reset();
  EXPECT_NE(quota->enter("t", 1), nullptr);
}

TEST(read_pool, TakesNoMoreThanMayWait) {
  std::mutex gate;
  gate.lock();
  std::atomic<int> done{0};
  storage::read_pool pool(1, 2);
  int taken = 0;
  for (int i = 0; i < 10; ++i) {
    if (pool.submit([&] {
          const std::lock_guard wait(gate);
          ++done;
        })) {
      ++taken;
    }
  }
  EXPECT_GE(taken, 2);
  EXPECT_LE(taken, 3);
  gate.unlock();
  pool.stop();
  EXPECT_FALSE(pool.submit([] {}));
}

}  // namespace
}  // namespace leasehold::server
