// When a lock is renewed, and what an answer means for it.
#include "tools/exec/renew_schedule.hpp"

#include <gtest/gtest.h>

namespace leasehold::tests {
namespace {

using std::chrono::milliseconds;
using tools::boot_time;
using tools::renew_schedule;

boot_time at(std::int64_t ms) { return boot_time(milliseconds(ms)); }

/// A term of 15 s that was asked for at 1000 and granted at the coordinator's 50'000.
renew_schedule schedule(double dice = 0) {
  return {milliseconds(15'000), at(1000), {50'000, 65'000}, [dice] { return dice; }};
}

TEST(RenewSchedule, RenewsAtAThirdOfTheTermOrUpToAFifthOfThatEarlier) {
  EXPECT_EQ(schedule(0).due(), at(6000));
  EXPECT_EQ(schedule(0.5).due(), at(5500));
  EXPECT_GT(schedule(0.999).due(), at(5000));
}

TEST(RenewSchedule, AnAcceptedRenewCountsFromWhenItWasSent) {
  auto renews = schedule();
  const auto first = renews.begin(at(6000));
  EXPECT_EQ(first.sequence, 1);
  renews.answered(first, {55'500, 70'500}, 1, false);
  EXPECT_EQ(renews.holds().deadline, at(21'000));
  EXPECT_EQ(renews.due(), at(11'000));
  EXPECT_EQ(renews.begin(at(11'000)).sequence, 2);
}

TEST(RenewSchedule, WithoutAnAnswerTheSameSequenceIsSentAgain) {
  auto renews = schedule();
  renews.begin(at(6000));
  renews.unanswered(at(9000));
  EXPECT_EQ(renews.due(), at(9050));
  const auto again = renews.begin(at(9050));
  EXPECT_EQ(again.sequence, 1);
  EXPECT_EQ(again.sent, at(9050));
  EXPECT_EQ(renews.holds().deadline, at(16'000));
}

TEST(RenewSchedule, ARepeatThatIsAcceptedCountsFromTheRepeat) {
  auto renews = schedule();
  renews.begin(at(6000));
  renews.unanswered(at(9000));
  renews.answered(renews.begin(at(9050)), {60'000, 75'000}, 1, false);
  EXPECT_EQ(renews.holds().deadline, at(24'050));
}

TEST(RenewSchedule, ARepeatOfWhatWasAcceptedBeforeCountsFromTheFirstSending) {
  auto renews = schedule();
  renews.begin(at(6000));
  renews.unanswered(at(9000));
  renews.answered(renews.begin(at(9050)), {55'500, 70'500}, 1, true);
  EXPECT_EQ(renews.holds().deadline, at(21'000));
  const auto next = renews.begin(at(11'000));
  EXPECT_EQ(next.sequence, 2);
}

TEST(RenewSchedule, TriesComeEverMoreSeldomButAtLeastTenTimesATerm) {
  auto renews = schedule();
  auto now = at(6000);
  milliseconds before(0);
  for (int tries = 0; tries < 20; ++tries) {
    renews.begin(now);
    renews.unanswered(now);
    const auto pause = std::chrono::duration_cast<milliseconds>(renews.due() - now);
    EXPECT_GE(pause, before);
    EXPECT_GE(pause, milliseconds(50));
    EXPECT_LE(pause, milliseconds(1500));
    before = pause;
    now = renews.due();
  }
  EXPECT_EQ(before, milliseconds(1500));
}

TEST(RenewSchedule, ASequenceThatCameTooLateWinsNothingAndTheNextGoesBeyondTheLast) {
  auto renews = schedule();
  renews.begin(at(6000));
  renews.outrun(at(6010), 7);
  EXPECT_EQ(renews.holds().deadline, at(16'000));
  EXPECT_EQ(renews.begin(renews.due()).sequence, 8);
}

TEST(RenewSchedule, NothingIsDueOnceItIsFinishedAndWhatIsHeldStays) {
  auto renews = schedule();
  renews.finish();
  EXPECT_EQ(renews.due(), boot_time::max());
  EXPECT_EQ(renews.holds().deadline, at(16'000));
}

TEST(RenewSchedule, AnAnswerIsWaitedForNoLongerThanAFifthOfTheTerm) {
  EXPECT_EQ(schedule().begin(at(6000)).patience, milliseconds(3000));
}

}  // namespace
}  // namespace leasehold::tests
