// What a directory holds, read row by row with plain SQL, and whether everything that somebody was
// told is there. It shares no code with the store's reader or with verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/protocol/evidence.hpp"
#include "support/driver.hpp"

namespace leasehold::tests {

struct stored_log {
  std::int64_t cut = 0;                    ///< rows up to this one were cut
  std::vector<protocol::stored_row> rows;  ///< in order, from the row behind it
  std::set<std::uint64_t> policies;
  std::vector<std::string> faults;  ///< why it could not be read as a whole
};
stored_log read_log(const std::filesystem::path& directory);

/// Compares a log with what a driver has seen; each fault is a sentence.
class loss_search {
 public:
  loss_search(const stored_log& log, const driver_log& seen);

  /// Everything that was told and is not there, or is there in part.
  std::vector<std::string> run();

 private:
  using frame_key = std::pair<std::int64_t, std::int64_t>;  ///< epoch and frame id

  void index();
  void look_for(const kept_verdict& said);
  void look_for(const kept_standing& said);
  void look_for(const kept_answer& said);
  void look_whether_whole(const kept_message& said);
  void look_whether_whole(const std::string& job, const std::string& payload);
  void compare_generations();
  /// The row, when it is one of this lease.
  const protocol::stored_row* row_of(const std::string& lease, std::int64_t row) const;
  /// How often the lease was granted up to this row.
  [[nodiscard]] std::int64_t grants_until(const std::string& lease, std::int64_t row) const;
  void report(std::string sentence);

  const stored_log& log_;
  const driver_log& seen_;
  std::multimap<frame_key, const protocol::stored_row*> frames_;
  std::map<std::string, std::vector<const protocol::stored_row*>> leases_;
  std::map<std::string, std::vector<std::int64_t>> grants_;
  std::vector<std::string> faults_;
};

}  // namespace leasehold::tests
