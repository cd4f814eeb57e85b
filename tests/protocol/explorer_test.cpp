// Every state that two holders, two generations, five frames, a cancel, a revoke and a restart can
// reach, each visited once: no transition breaks safety.
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>

#include "tests/protocol/explorer.hpp"

namespace leasehold {
namespace {

using namespace protocol;

policy small_policy(on_conflict how) {
  policy chosen;
  chosen.ack_timeout = duration{40};
  chosen.lease_duration = duration{60};
  chosen.cancel_grace = duration{30};
  chosen.reconcile_window = duration{50};
  chosen.recovery_grace = duration{20};
  chosen.max_clock_skew = duration{10'000};
  chosen.on_conflict = how;
  return chosen;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Walks, says how far it went, and expects that nothing was wrong; yields the seconds spent.
double walk_all(explorer& walk, const budget& left) {
  const double start = cpu_seconds();
  walk.walk(left);
  const double spent = cpu_seconds() - start;
  std::cout << walk.states() << " states, " << walk.transitions() << " transitions, " << left.frames
            << " frames, " << spent << " s\n";
  EXPECT_EQ(walk.complaint(), "");
  for (int s = static_cast<int>(lease_state::offered);
       s <= static_cast<int>(lease_state::cancelled); ++s) {
    const auto state = static_cast<lease_state>(s);
    if (state == lease_state::acked) continue;
    EXPECT_GT(walk.states_in(state), 0) << word(state);
  }
  EXPECT_EQ(walk.states_in(lease_state::acked), 0);
  return spent;
}

TEST(Explorer, NoReachableTransitionBreaksSafety) {
  explorer walk(small_policy(on_conflict::freeze));
  budget left;
  left.frames = LEASEHOLD_EXPLORER_FRAMES;
  const double spent = walk_all(walk, left);
  if (left.frames < 5) return;
  EXPECT_GE(walk.states(), 1'000'000);
  EXPECT_LT(spent, 90);
}

/// Fewer frames, but operators, the dispatcher and a restart of the coordinator join in.
TEST(Explorer, NoReachableTransitionOfOperatorsAndRestartsBreaksSafety) {
  for (const on_conflict how : {on_conflict::freeze, on_conflict::resolve_by_record}) {
    explorer walk(small_policy(how));
    budget left;
    left.frames = (LEASEHOLD_EXPLORER_FRAMES + 1) / 2;
    left.others = 1;
    left.recoveries = 1;
    walk_all(walk, left);
  }
}

}  // namespace
}  // namespace leasehold
