#include "src/store/fair_turns.hpp"

#include <gtest/gtest.h>

namespace leasehold::storage {
namespace {

using std::chrono::milliseconds;
using duration = fair_turns::duration;

constexpr milliseconds most_ahead{5};

/// Both wait all the time.
struct shares {
  duration commits{};
  duration behind{};
};
shares share(fair_turns& turns, milliseconds commit, milliseconds slice, int count) {
  shares had;
  for (int i = 0; i < count; ++i) {
    if (turns.behind_goes_first()) {
      turns.behind_took(slice);
      had.behind += slice;
    } else {
      turns.commits_took(commit);
      had.commits += commit;
    }
  }
  return had;
}

TEST(FairTurns, CommitsGoFirst) { EXPECT_FALSE(fair_turns(most_ahead).behind_goes_first()); }

TEST(FairTurns, BothHaveHalfWhateverOneTurnTakes) {
  for (const auto& [commit, slice] :
       {std::pair{1, 1}, std::pair{4, 1}, std::pair{1, 4}, std::pair{3, 2}}) {
    fair_turns turns(most_ahead);
    const auto had = share(turns, milliseconds(commit), milliseconds(slice), 1000);
    EXPECT_LE(std::max(had.commits - had.behind, had.behind - had.commits), most_ahead)
        << commit << ' ' << slice;
  }
}

TEST(FairTurns, ATurnLongerThanTheLimitIsFollowedByOneOfTheOther) {
  fair_turns turns(most_ahead);
  turns.commits_took(milliseconds{400});
  EXPECT_TRUE(turns.behind_goes_first());
  turns.behind_took(milliseconds{400});
  EXPECT_FALSE(turns.behind_goes_first());
}

TEST(FairTurns, NoSideIsOwedForTheTimeWhenItDidNotWait) {
  fair_turns turns(most_ahead);
  for (int i = 0; i < 1000; ++i) turns.commits_took(milliseconds{4});
  const auto after_commits = share(turns, milliseconds{1}, milliseconds{1}, 20);
  EXPECT_LE(after_commits.behind - after_commits.commits, most_ahead + milliseconds{1});
  for (int i = 0; i < 1000; ++i) turns.behind_took(milliseconds{4});
  const auto after_slices = share(turns, milliseconds{1}, milliseconds{1}, 20);
  EXPECT_LE(after_slices.commits - after_slices.behind, most_ahead + milliseconds{1});
}

}  // namespace
}  // namespace leasehold::storage
