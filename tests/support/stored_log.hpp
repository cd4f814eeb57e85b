// What a directory holds, read row by row with plain SQL, and whether everything that somebody was
// told is there. It shares no code with the store's reader or with verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/protocol/evidence.hpp"
#include "support/driver.hpp"

namespace leasehold::tests {

struct stored_log {
  std::int64_t cut = 0;                    ///< rows up to this one were cut
  std::vector<protocol::stored_row> rows;  ///< in order, from the row behind it
  std::set<std::uint64_t> policies;
  std::map<std::size_t, std::int64_t> floors;  ///< of the checkpoint, by shard
  std::vector<std::string> faults;             ///< why it could not be read as a whole
};
stored_log read_log(const std::filesystem::path& directory);
/// Adds the next batch as it stands in a log, and what is wrong with it.
void add_batch(stored_log& into, std::int64_t first, std::int64_t last, std::string_view body);

/// Compares a log with what a driver has seen; each fault is a sentence. What was cut from the
/// front of the log is there when a base row of its lease is, or a row or floor that says that the
/// lease was forgotten, with no lower generation.
class loss_search {
 public:
  loss_search(const stored_log& log, const driver_log& seen);

  /// Everything that was told and is not there, or is there in part.
  std::vector<std::string> run();

 private:
  using frame_key = std::pair<std::int64_t, std::int64_t>;  ///< epoch and frame id

  void index();
  void note_generation(const protocol::stored_row& row);
  void look_for(const kept_verdict& said);
  void look_for(const kept_standing& said);
  void look_for(const kept_answer& said);
  void look_whether_whole(const kept_message& said);
  void look_whether_whole(const std::string& job, const std::string& payload);
  void compare_generations();
  /// The row, when it is one of this lease.
  const protocol::stored_row* row_of(const std::string& lease, std::int64_t row) const;
  /// The lease's generation as of this row; nothing where the rows that say so were cut.
  [[nodiscard]] std::optional<std::int64_t> generation_at(const std::string& lease,
                                                          std::int64_t row) const;
  /// Whether what was told of a row that was cut is still there.
  [[nodiscard]] bool is_covered(const std::string& lease, std::int64_t gen) const;
  [[nodiscard]] bool was_cut(std::int64_t row) const { return row <= log_.cut; }
  [[nodiscard]] const protocol::stored_row* row_of_kind(const std::string& lease,
                                                        protocol::event_kind kind) const;
  void report(std::string sentence);

  const stored_log& log_;
  const driver_log& seen_;
  protocol::tenant_id tenant_;  ///< all leases are one's
  std::multimap<frame_key, const protocol::stored_row*> frames_;
  std::map<std::string, std::vector<const protocol::stored_row*>> leases_;
  struct generation_from {
    std::int64_t row = 0;
    std::int64_t gen = 0;
  };
  std::map<std::string, std::vector<generation_from>> generations_;  ///< in the order of the rows
  std::vector<std::string> faults_;
};

}  // namespace leasehold::tests
