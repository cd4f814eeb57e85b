// The PostgreSQL server under a coordinator ends at any message: what was answered is there
// afterwards, whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "crash_run.hpp"
#include "postgres_machine.hpp"

namespace leasehold::tests {
namespace {

TEST(PostgresCrashes, NothingThatWasAnsweredIsLostAndNothingIsHalfThere) {
  postgres_machine machine;
  const auto report = run_crashes(machine, {.crashes = crashes_wanted(6), .seed = seed_wanted()});
  std::cout << report.crashes << " crashes (" << report.crashes_at_start << " at a start), "
            << report.verdicts << " verdicts, " << report.offers << " offers, " << report.rows
            << " rows read\n";
  EXPECT_TRUE(report.losses.empty()) << first_of(report.losses);
  // It was a load.
  EXPECT_GT(report.verdicts, 100 * report.crashes);
}

TEST(PostgresCrashes, NothingIsLostWhileTheLogIsCutAndJobsAreForgotten) {
  postgres_machine machine;
  const auto report = run_crashes(
      machine, {.crashes = crashes_wanted(8), .seed = seed_wanted(), .short_memory = true});
  std::cout << report.crashes << " crashes, " << report.verdicts << " verdicts, rows up to "
            << report.cut_rows << " cut, " << report.forgotten << " forgotten jobs read\n";
  EXPECT_TRUE(report.losses.empty()) << first_of(report.losses);
  EXPECT_GT(report.cut_rows, 0);
}

}  // namespace
}  // namespace leasehold::tests
