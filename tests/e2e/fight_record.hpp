// What fighters over locks have logged, what the evidence says of the same time, and whether the
// two and the target agree. Asks no server.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::e2e {

/// A grant as its holder saw it: from the row of the grant to the newest row at which it was told
/// that it holds the lock.
struct seen_grant {
  std::string holder;
  std::int64_t first_row = 0;
  std::int64_t last_row = 0;
  friend bool operator==(const seen_grant&, const seen_grant&) = default;
};

struct fight_record {
  /// By lease and token.
  std::map<std::pair<std::string, std::int64_t>, seen_grant> grants;
  std::int64_t written = 0;
  std::int64_t refused = 0;  ///< as stale
  std::int64_t failed = 0;
  std::vector<std::string> faults;  ///< a sentence each

  /// Adds one fighter's log: lines "granted LEASE TOKEN ROW HOLDER", "kept LEASE TOKEN ROW", and
  /// "written|stale|failed LEASE TOKEN" for each write.
  void read(const std::filesystem::path& log);
};

/// Intervals of one lease never overlap, and the later one has the higher token.
std::vector<std::string> faults_of_intervals(const fight_record& record);

/// Each interval lies within the evidence's of the same lease, token and holder; of each lease the
/// evidence grants only when nobody holds it, and always a higher token.
std::vector<std::string> faults_against(const fight_record& record,
                                        const std::vector<boost::json::object>& evidence);

/// Tokens of one lease as the target took them, in its order: they never fall.
std::vector<std::string> faults_of_target(
    const std::vector<std::pair<std::string, std::int64_t>>& written);

}  // namespace leasehold::e2e
