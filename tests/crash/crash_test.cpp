// Power is lost at any store call; what was answered is there afterwards, whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "crash_run.hpp"
#include "sqlite_machine.hpp"

namespace leasehold::tests {
namespace {

TEST(Crashes, NothingThatWasAnsweredIsLostAndNothingIsHalfThere) {
  sqlite_machine machine;
  const auto report = run_crashes(machine, {.crashes = crashes_wanted(25), .seed = seed_wanted()});
  std::cout << report.crashes << " crashes (" << report.crashes_at_start << " at a start), "
            << report.verdicts << " verdicts, " << report.offers << " offers, " << report.rows
            << " rows read, " << report.lost_changes << " changes that were not synced\n";
  EXPECT_TRUE(report.losses.empty()) << first_of(report.losses);
  // It was a load, and there was something to be lost.
  EXPECT_GT(report.verdicts, 100 * report.crashes);
  EXPECT_GT(report.lost_changes, report.crashes);
}

TEST(Crashes, NothingIsLostWhileTheLogIsCutAndJobsAreForgotten) {
  sqlite_machine machine;
  const auto report = run_crashes(
      machine, {.crashes = crashes_wanted(12), .seed = seed_wanted(), .short_memory = true});
  std::cout << report.crashes << " crashes, " << report.verdicts << " verdicts, " << report.offers
            << " offers, rows up to " << report.cut_rows << " cut, " << report.forgotten
            << " forgotten jobs read\n";
  EXPECT_TRUE(report.losses.empty()) << first_of(report.losses);
  EXPECT_GT(report.cut_rows, 100);
  EXPECT_GT(report.forgotten, 10);
}

TEST(Crashes, ABackupTakenUnderLoadIsServedAndNoTokenSinceIsGivenAgain) {
  sqlite_machine machine;
  const auto report = run_restore(machine, {.seed = seed_wanted()});
  std::cout << report.backup_rows << " rows in the backup, " << report.lost_rows
            << " behind it, tokens of " << report.offers_before << " jobs before, "
            << report.offers_after << " offers after\n";
  EXPECT_TRUE(report.faults.empty()) << first_of(report.faults);
  EXPECT_GT(report.backup_rows, 100);
  EXPECT_GT(report.lost_rows, 100);
  EXPECT_GT(report.offers_before, 10);
  EXPECT_GT(report.offers_after, 10);
}

/// The search finds what is lost when the writer does not wait for the disk: a control of the test
/// above.
TEST(Crashes, AWriterThatDoesNotWaitForTheDiskIsFoundOut) {
  sqlite_machine machine(true);
  const auto report = run_crashes(machine, {.crashes = 4, .checkpoints = false});
  EXPECT_THAT(report.losses, testing::Contains(testing::HasSubstr("were answered")));
  EXPECT_THAT(report.losses, testing::Contains(testing::HasSubstr("has no such row")));
  EXPECT_THAT(report.losses, testing::Contains(testing::HasSubstr("is not in the log")));
}

}  // namespace
}  // namespace leasehold::tests
