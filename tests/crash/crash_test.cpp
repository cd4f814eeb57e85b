// Power is lost at any store call; what was answered is there afterwards, whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "crash_run.hpp"

namespace leasehold::tests {
namespace {

std::string first_of(const std::vector<std::string>& losses) {
  std::string text = std::to_string(losses.size()) + " losses";
  for (std::size_t i = 0; i < losses.size() && i < 10; ++i) text += "\n  " + losses[i];
  return text;
}

TEST(Crashes, NothingThatWasAnsweredIsLostAndNothingIsHalfThere) {
  const auto report = run_crashes({.crashes = crashes_wanted(25)});
  std::cout << report.crashes << " crashes (" << report.crashes_at_start << " at a start), "
            << report.verdicts << " verdicts, " << report.offers << " offers, " << report.rows
            << " rows read, " << report.lost_changes << " changes that were not synced\n";
  EXPECT_TRUE(report.losses.empty()) << first_of(report.losses);
  // It was a load, and there was something to be lost.
  EXPECT_GT(report.verdicts, 100 * report.crashes);
  EXPECT_GT(report.lost_changes, report.crashes);
}

/// The search finds what is lost when the writer does not wait for the disk: a control of the test
/// above.
TEST(Crashes, AWriterThatDoesNotWaitForTheDiskIsFoundOut) {
  const auto report = run_crashes({.crashes = 4, .never_sync = true});
  EXPECT_THAT(report.losses, testing::Contains(testing::HasSubstr("were answered")));
  EXPECT_THAT(report.losses, testing::Contains(testing::HasSubstr("has no such row")));
  EXPECT_THAT(report.losses, testing::Contains(testing::HasSubstr("is not in the log")));
}

}  // namespace
}  // namespace leasehold::tests
