// The table of a shard's leases, and a lease that wakes and rests in it.
#include "actors/lease_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace leasehold::actors {
namespace {

using protocol::lease_key;

lease_key key_of(const std::string& tenant, const std::string& lease) {
  return {protocol::tenant_id{tenant}, protocol::lease_id{lease}};
}

std::vector<lease_key> keys_in(const lease_table& table) {
  std::vector<lease_key> keys;
  for (const auto& entry : table.all()) keys.push_back(entry.key());
  return keys;
}

TEST(LeaseTable, FindsByKeyAndByMarkWhatItMadeAndNothingElse) {
  lease_table table;
  auto& made = table.of(key_of("a", "job"));
  EXPECT_EQ(&table.of(key_of("a", "job")), &made);
  EXPECT_EQ(table.find(key_of("a", "job")), &made);
  EXPECT_EQ(table.find(made.mark), &made);
  EXPECT_EQ(made.key(), key_of("a", "job"));
  EXPECT_EQ(made.store_shard, protocol::shard_of(key_of("a", "job")));
  EXPECT_EQ(table.find(key_of("b", "job")), nullptr);
  EXPECT_EQ(table.find(key_of("a", "jo")), nullptr);
  EXPECT_EQ(table.find(key_of("aj", "ob")), nullptr);
  EXPECT_EQ(table.find(made.mark + 1), nullptr);
}

TEST(LeaseTable, GoesOnBehindAKeyInTheOrderOfTenantsAndThenIds) {
  lease_table table;
  const std::vector<lease_key> sorted{key_of("a", "1"), key_of("a", "10"), key_of("a", "2"),
                                      key_of("b", ""),  key_of("b", "1"),  key_of("ba", "0")};
  auto mixed = sorted;
  std::ranges::shuffle(mixed, std::mt19937(1));
  for (const auto& key : mixed) table.of(key);
  EXPECT_EQ(keys_in(table), sorted);
  EXPECT_EQ(table.after(key_of("a", "10"))->key(), key_of("a", "2"));
  EXPECT_EQ(table.after(key_of("a", "11"))->key(), key_of("a", "2"));
  EXPECT_EQ(table.after(key_of("a", "2"))->key(), key_of("b", ""));
  EXPECT_EQ(table.after({})->key(), key_of("a", "1"));
  EXPECT_EQ(table.after(key_of("ba", "0")), table.all().end());
}

TEST(LeaseTable, AMarkIsNeverThatOfAnotherLease) {
  lease_table table;
  const auto first = table.of(key_of("a", "1")).mark;
  table.erase(table.at(first));
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.find(key_of("a", "1")), nullptr);
  EXPECT_TRUE(table.all().empty());

  auto& second = table.of(key_of("a", "2"));
  EXPECT_NE(second.mark, first);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.find(second.mark), &second);
  EXPECT_EQ(&table.at(second.mark), &second);
}

TEST(LeaseTable, HoldsWhatAMapHoldsAfterAnyMakingAndErasing) {
  lease_table table;
  std::map<lease_key, std::uint64_t> model;
  std::mt19937 random(7);
  for (int step = 0; step < 20'000; ++step) {
    const auto key = key_of(std::to_string(random() % 3), std::to_string(random() % 2000));
    if (random() % 3 != 0) {
      const auto mark = table.of(key).mark;
      EXPECT_EQ(model.try_emplace(key, mark).first->second, mark);
    } else if (auto* const entry = table.find(key); entry != nullptr) {
      EXPECT_EQ(model.erase(key), 1U);
      table.erase(*entry);
    } else {
      EXPECT_FALSE(model.contains(key));
    }
  }
  std::vector<lease_key> keys;
  for (const auto& [key, mark] : model) {
    keys.push_back(key);
    ASSERT_NE(table.find(key), nullptr);
    EXPECT_EQ(table.find(key), table.find(mark));
  }
  EXPECT_EQ(keys_in(table), keys);
}

class RestingLease : public testing::TestWithParam<const char*> {};

TEST_P(RestingLease, WakesAsItWasPutToRest) {
  lease_table table;
  auto& entry = table.of(key_of("tenant", "lease"));
  EXPECT_FALSE(entry.known());

  auto& lease = entry.awake();
  EXPECT_EQ(lease.state->lease.value, "lease");
  auto state = *lease.state;
  state.job = protocol::job_id{GetParam()};
  state.state = protocol::lease_state::vacant;
  state.gen = {3};
  state.progress_value = std::string(600, '\0') + "1" + std::string(255, '\0');
  lease.state = std::make_shared<const protocol::record>(state);
  lease.policy = {0xfedc'ba98'7654'3210U};
  lease.last_row = {12};
  lease.submitted_row = {2};
  lease.body = std::string("body\0of it", 10);
  protocol::count_reason(lease.counts, protocol::reason::stale_sequence, 4);
  const lease_facts before = lease;

  const auto is_as_before = [&](const lease_facts& now) {
    EXPECT_EQ(*now.state, state);
    EXPECT_EQ(now.policy, before.policy);
    EXPECT_EQ(now.last_row, before.last_row);
    EXPECT_EQ(now.submitted_row, before.submitted_row);
    EXPECT_EQ(now.body, before.body);
    EXPECT_EQ(now.counts, before.counts);
  };
  for (int round = 0; round < 3; ++round) {
    entry.rest();
    EXPECT_EQ(entry.if_awake(), nullptr);
    EXPECT_TRUE(entry.known());
    EXPECT_EQ(entry.key(), key_of("tenant", "lease"));
    EXPECT_EQ(*entry.state(), state);
    is_as_before(entry.facts());
    is_as_before(entry.awake());
    EXPECT_EQ(entry.key(), key_of("tenant", "lease"));
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, RestingLease, testing::Values("", "lease", "another"));

}  // namespace
}  // namespace leasehold::actors
