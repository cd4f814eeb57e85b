// Until when a lock may be relied on: never beyond what the coordinator keeps.
#include "tools/exec/authority.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace leasehold::tests {
namespace {

using std::chrono::milliseconds;
using tools::authority;
using tools::boot_time;
using tools::term_plan;

boot_time at(std::int64_t ms) { return boot_time(milliseconds(ms)); }

TEST(Authority, EndsOneTermAfterTheRequestWasSentWhateverTheCoordinatorsClockSays) {
  EXPECT_EQ(tools::first_authority(at(100), {5'000'000, 5'015'000}),
            (authority{at(15'100), 5'015'000}));
}

TEST(Authority, AShorterTermThanAskedForIsTakenAsTold) {
  EXPECT_EQ(tools::first_authority(at(100), {5'000, 5'001}).deadline, at(101));
  EXPECT_EQ(tools::first_authority(at(100), {5'000, 5'000}).deadline, at(100));
  EXPECT_EQ(tools::first_authority(at(100), {5'000, 4'999}).deadline, at(100));
}

TEST(Authority, AnAcceptedRenewMovesItToOneTermAfterTheRenewWasSent) {
  const authority before{at(15'100), 20'000};
  EXPECT_EQ(tools::renewed_authority(before, at(5'000), {10'000, 25'000}),
            (authority{at(20'000), 25'000}));
}

TEST(Authority, ARenewThatTookLongNeverMovesItBack) {
  const authority before{at(15'100), 20'000};
  EXPECT_EQ(tools::renewed_authority(before, at(99), {10'000, 25'000}).deadline, at(15'100));
  EXPECT_EQ(tools::renewed_authority(before, at(100), {10'000, 25'000}).deadline, at(15'100));
  EXPECT_EQ(tools::renewed_authority(before, at(101), {10'000, 25'000}).deadline, at(15'101));
}

TEST(Authority, AnEarlierEndThatIsToldCounts) {
  const authority before{at(15'100), 20'000};
  EXPECT_EQ(tools::renewed_authority(before, at(5'000), {10'000, 19'999}).deadline, at(14'999));
  EXPECT_EQ(tools::renewed_authority(before, at(5'000), {10'000, 20'000}).deadline, at(15'100));
}

TEST(TermPlan, TheMarginIsATenthOfTheTermAndLeavesTimeToDieInAShortOne) {
  for (const auto& [term, margin] :
       {std::pair(15'000, 1500), {4'010, 401}, {4'000, 400}, {3'999, 400}, {1'604, 400}}) {
    EXPECT_EQ(tools::margin_of({milliseconds(term), {}}), milliseconds(margin)) << term;
  }
  for (const auto& [term, margin] :
       {std::pair(1'600, 400), {1'596, 399}, {1'500, 375}, {500, 125}}) {
    EXPECT_EQ(tools::margin_of({milliseconds(term), {}}), milliseconds(margin)) << term;
  }
}

TEST(TermPlan, TheWatchdogLeavesThreeQuartersOfTheMarginToDieIn) {
  EXPECT_EQ(tools::watchdog_time(at(15'000), {milliseconds(15'000), {}}), at(13'875));
  EXPECT_EQ(tools::watchdog_time(at(1'500), {milliseconds(1'500), {}}), at(1'219));
  EXPECT_EQ(tools::watchdog_time(at(500), {milliseconds(500), {}}), at(407));
}

TEST(TermPlan, TermComesBeforeKillBeforeTheWatchdogBeforeTheDeadline) {
  std::vector<int> terms{15'000, 86'400'000};
  for (int term = 500; term < 5000; ++term) terms.push_back(term);
  for (const int term : terms) {
    for (const auto grace : {milliseconds(0), tools::default_grace(milliseconds(term)),
                             tools::longest_grace(milliseconds(term))}) {
      const term_plan plan{milliseconds(term), grace};
      const auto deadline = at(term);
      EXPECT_LE(tools::stop_time(deadline, plan), tools::kill_time(deadline, plan));
      EXPECT_LT(tools::kill_time(deadline, plan), tools::watchdog_time(deadline, plan));
      EXPECT_LT(tools::watchdog_time(deadline, plan), deadline);
      EXPECT_GE(tools::stop_time(deadline, plan), at(term / 2)) << "renews need their time";
    }
  }
}

TEST(TermPlan, TheDefaultGraceIsAllowed) {
  for (const int term : {500, 999, 1000, 1600, 4000, 24'999, 25'000, 25'001, 3'600'000}) {
    EXPECT_LE(tools::default_grace(milliseconds(term)), tools::longest_grace(milliseconds(term)));
  }
}

}  // namespace
}  // namespace leasehold::tests
