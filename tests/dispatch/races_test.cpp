// Several processes race for the same cancels; what they did is counted outside of them.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "gate_scene.hpp"

namespace leasehold::tests {
namespace {

using protocol::dispatch_result;
using protocol::dispatch_status;

constexpr int racers = 4;

/// What CALLER wrote.
struct call {
  std::string job;
  std::string token;
  std::int64_t claimed_at = 0;
  std::int64_t expires_at = 0;
};

struct tally {
  std::int64_t cycles = 0;
  std::int64_t claimed = 0;
  std::int64_t reported = 0;
  std::int64_t errors = 0;
};

class DispatchRaces : public gate_scene {
 protected:
  /// `waits_ms`: how long the controller of each racer works.
  tally race(int count, std::int64_t claim_ms, const std::vector<int>& waits_ms,
             const std::string& caller = CALLER) {
    const auto number = std::to_string(++races_);
    std::vector<std::unique_ptr<e2e::program_run>> runs;
    for (std::size_t i = 0; i < waits_ms.size(); ++i) {
      const std::vector<std::string> words{url(),
                                           file("board" + number).string(),
                                           std::to_string(waits_ms.size()),
                                           std::to_string(count),
                                           std::to_string(claim_ms),
                                           caller,
                                           file("calls").string(),
                                           std::to_string(waits_ms[i])};
      runs.push_back(std::make_unique<e2e::program_run>(RACER, words, output(number, i)));
    }
    tally sum;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i]->wait(std::chrono::seconds{120}), 0);
      std::istringstream in(e2e::content_of(output(number, i)));
      std::string word;
      tally one;
      in >> word >> one.cycles >> word >> one.claimed >> word >> one.reported >> word >> one.errors;
      EXPECT_TRUE(in) << in.str();
      EXPECT_EQ(one.errors, 0) << in.str();
      sum.cycles += one.cycles;
      sum.claimed += one.claimed;
      sum.reported += one.reported;
    }
    return sum;
  }

  [[nodiscard]] std::filesystem::path output(const std::string& race, std::size_t racer) const {
    return file("racer" + race + "-" + std::to_string(racer));
  }

  [[nodiscard]] std::vector<call> calls() const {
    std::ifstream in(file("calls"));
    std::vector<call> out;
    for (call each; in >> each.job >> each.token >> each.claimed_at >> each.expires_at;) {
      out.push_back(each);
    }
    return out;
  }

 private:
  int races_ = 0;
};

TEST_P(DispatchRaces, OfFourProcessesOneCallsTheControllerForEachOfTwoHundredCancels) {
  constexpr int cancels = 200;
  open_many(cancels);
  const auto sum = race(cancels, 60'000, std::vector<int>(racers, 0));
  EXPECT_EQ(sum.claimed, cancels);
  EXPECT_EQ(sum.reported, cancels);
  std::set<std::string> jobs;
  std::set<std::string> tokens;
  for (const auto& each : calls()) {
    EXPECT_TRUE(jobs.insert(each.job).second) << each.job << " was dispatched twice";
    EXPECT_TRUE(tokens.insert(each.token).second);
    EXPECT_EQ(each.token.size(), 32U);
  }
  EXPECT_EQ(std::ssize(jobs), cancels);
  for (int i = 0; i < cancels; ++i) {
    const auto record = at(raced_key(i));
    ASSERT_EQ(record.status, dispatch_status::dispatched);
    ASSERT_EQ(record.dispatch_count, 1);
    ASSERT_EQ(record.version, 2);
    ASSERT_EQ(events(raced_key(i)).size(), 1U);
  }
}

TEST_P(DispatchRaces, WhatIsDispatchedOrClosedIsNeverCalledAgain) {
  open_many(20);
  race(10, 60'000, std::vector<int>(racers, 0));
  for (int i = 10; i < 20; ++i) close(raced_key(i));
  ASSERT_EQ(calls().size(), 10U);
  EXPECT_EQ(race(20, 60'000, std::vector<int>(racers, 0)).claimed, 0);
  EXPECT_EQ(calls().size(), 10U);
}

TEST_P(DispatchRaces, AClaimIsTakenOverOnceItHasExpiredAndItsOldOwnerIsRefused) {
  constexpr int cancels = 12;
  open_many(cancels);
  // Two of them are slower than their claims.
  const auto sum = race(cancels, 250, {600, 600, 0, 0});
  std::map<std::string, std::vector<call>> by_job;
  std::set<std::string> tokens;
  for (const auto& each : calls()) {
    by_job[each.job].push_back(each);
    EXPECT_TRUE(tokens.insert(each.token).second) << "each claim has a token of its own";
  }
  EXPECT_EQ(std::ssize(by_job), cancels);
  for (auto& [job, all] : by_job) {
    std::ranges::sort(all, {}, &call::claimed_at);
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_GE(all[i].claimed_at, all[i - 1].expires_at) << job << " within another's claim";
    }
  }
  std::int64_t counted = 0;
  for (int i = 0; i < cancels; ++i) {
    const auto record = at(raced_key(i));
    EXPECT_EQ(record.status, dispatch_status::dispatched);
    EXPECT_EQ(events(raced_key(i)).size(), 1U) << "those that came too late left nothing";
    counted += record.dispatch_count;
  }
  EXPECT_EQ(sum.claimed, counted);
  EXPECT_EQ(sum.reported, cancels);
  EXPECT_GE(std::ssize(tokens), cancels);
}

TEST_P(DispatchRaces, WhatFailsIsTriedAgainAfterItsStoredPauseByWhoeverComes) {
  open(raced_key(0));
  // Nobody has a controller; all try as fast as they can, for so many cycles.
  std::vector<std::unique_ptr<e2e::program_run>> runs;
  for (int i = 0; i < racers; ++i) {
    runs.push_back(std::make_unique<e2e::program_run>(
        RACER,
        std::vector<std::string>{url(), file("board").string(), std::to_string(racers), "1",
                                 "60000", "-", "-", "0"},
        file("missing" + std::to_string(i))));
  }
  ASSERT_TRUE(eventually([&] { return at(raced_key(0)).dispatch_count >= 6; }));
  runs.clear();
  const auto all = events(raced_key(0));
  ASSERT_GE(all.size(), 5U);
  const protocol::dispatch_pace pace{protocol::duration{60'000}, protocol::duration{20},
                                     protocol::duration{80}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].result, dispatch_result::controller_missing);
    EXPECT_EQ(all[i].dispatch_count, static_cast<std::int64_t>(i) + 1);
    if (i == 0) continue;
    const auto pause = all[i].at.ms - all[i - 1].at.ms;
    EXPECT_GE(pause, protocol::dispatch_backoff(pace, static_cast<std::int64_t>(i)).ms);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, DispatchRaces, testing::Values("sqlite", "postgres"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace leasehold::tests
