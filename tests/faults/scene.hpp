// A coordinator and its workers on a real database, on a clock of the test's, and what is seen of
// them from outside.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/coordinator_rig.hpp"
#include "support/log_place.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {

struct scene_options {
  actors::actor_options actors;
  std::int64_t wal_bytes = std::int64_t{32} * 1024 * 1024;
  bool restored_backup = false;
};

/// One life of the process.
class scene {
 public:
  scene(std::filesystem::path directory, std::shared_ptr<manual_clock> clock,
        const scene_options& how = {});
  /// On any store.
  scene(log_place& where, std::shared_ptr<manual_clock> clock, const scene_options& how = {});

  /// Why it did not start.
  [[nodiscard]] const std::optional<actors::store_error>& start_error() const { return error_; }
  /// The process would have ended.
  [[nodiscard]] bool ended() const { return !rig->fatal.empty(); }
  [[nodiscard]] bool is_ready() const { return rig->counters->store_failing.value() == 0; }
  [[nodiscard]] actors::store& store() { return *store_; }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  /// Where a backup may be made.
  [[nodiscard]] std::filesystem::path backup() const { return beside_.path() / "backup"; }

  rig_worker& worker(const std::string& incarnation_digit = "a");
  /// A job that worker "a" holds in generation 1.
  void hold(const std::string& job, const protocol::policy& chosen = {});

  /// Everything outside the log that a decision leaves: records with their rows, credit, queues,
  /// and counts. Instants are left out of `outcome`, so that it compares with what came later.
  std::string state();
  std::string outcome();

  std::unique_ptr<coordinator_rig> rig;

 private:
  void start(log_place& where, std::shared_ptr<manual_clock> clock, const scene_options& how);
  std::string picture(bool with_instants);

  temporary_directory beside_;
  std::filesystem::path directory_;
  std::shared_ptr<actors::store> store_;
  std::optional<actors::store_error> error_;
  std::map<std::string, std::unique_ptr<rig_worker>> workers_;
};

/// The same for a directory as for any place.
inline std::vector<std::string> history_of(const std::filesystem::path& directory) {
  return history_of(directory_place(directory));
}
inline std::vector<protocol::stored_row> rows_of(const std::filesystem::path& directory) {
  return rows_of(directory_place(directory));
}
inline void expect_proven(const std::filesystem::path& directory) {
  expect_proven(directory_place(directory));
}

}  // namespace leasehold::tests
