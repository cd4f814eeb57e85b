// A coordinator under load whose machine loses power again and again: after each crash it starts
// anew on what is left, and all that it ever told somebody is looked for there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::tests {

class crash_machine;

struct crash_options {
  int crashes = 1;
  std::uint64_t seed = 1;
  std::size_t threads = 2;
  std::size_t sessions = 64;
  /// Checkpoints come now and then, and are most of the writes of a life that has them.
  bool checkpoints = true;
  /// The log is cut and settled jobs are forgotten all the time, and their names come again.
  bool short_memory = false;
  /// How many crashes the same directory sees before another begins.
  int lives_of_a_store = 8;
};

struct crash_report {
  std::vector<std::string> losses;
  int crashes = 0;
  int crashes_at_start = 0;  ///< before the coordinator served
  std::int64_t verdicts = 0;
  std::int64_t offers = 0;
  std::int64_t rows = 0;
  std::int64_t lost_changes = 0;  ///< writes that had not been synced at a crash
  std::int64_t cut_rows = 0;
  std::int64_t forgotten = 0;  ///< rows that say so, as far as they were not cut
};

crash_report run_crashes(crash_machine& machine, const crash_options& how);

struct restore_report {
  std::vector<std::string> faults;
  std::int64_t backup_rows = 0;    ///< in the backup
  std::int64_t lost_rows = 0;      ///< of the store behind the backup
  std::int64_t offers_before = 0;  ///< whose generations must not come again
  std::int64_t offers_after = 0;
};

/// A backup is taken under load, the load goes on, and the backup is served under load again.
/// For stores in directories.
restore_report run_restore(crash_machine& machine, const crash_options& how);

/// The first losses, for people.
std::string first_of(const std::vector<std::string>& losses);

/// LEASEHOLD_CRASHES, or what CI runs.
int crashes_wanted(int otherwise);
/// LEASEHOLD_CRASH_SEED, or 1.
std::uint64_t seed_wanted();

}  // namespace leasehold::tests
