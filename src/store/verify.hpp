// Proves, from what is stored or from exported lines, that every decision follows from its inputs
// (architecture.md 4), and says what it cannot see.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/evidence_json.hpp"
#include "src/store/store_url.hpp"

namespace leasehold::storage {

/// Something that does not follow. `column` is empty when it concerns the whole row.
struct verify_problem {
  protocol::row_number row;
  std::string column;
  std::string sentence;
};

struct verify_report {
  std::int64_t rows = 0;
  std::int64_t batches = 0;
  std::int64_t leases = 0;
  std::int64_t policies = 0;
  std::int64_t records = 0;      ///< compared with the fold
  std::int64_t passed_over = 0;  ///< jobs that were shown at another time than the rows
  actors::log_head head;
  bool head_was_asked = false;
  std::int64_t problem_count = 0;
  std::vector<verify_problem> problems;  ///< the first ones
  std::vector<std::string> remarks;      ///< what could not be looked at here and usually can

  [[nodiscard]] bool proven() const noexcept { return problem_count == 0; }
};

/// What no verification of this kind can see, one sentence each: always printed with the verdict.
std::span<const std::string_view> beyond_a_store() noexcept;
std::span<const std::string_view> beyond_lines() noexcept;

/// Says how far it is: rows done of rows in all.
using verify_progress = std::function<void(std::int64_t done, std::int64_t all)>;

struct verify_options {
  std::optional<actors::log_head> head;  ///< the log must extend this one
  std::size_t most_problems = 20;
  verify_progress progress;
};

/// Reads only, and may run while the coordinator does. An error says that the store cannot be read.
actors::store_result<verify_report> verify_directory(const std::filesystem::path& directory,
                                                     const verify_options& how);

class store_source;
/// The same of a store that is open, and of one at a place.
actors::store_result<verify_report> verify_source(store_source& from, const verify_options& how);
actors::store_result<verify_report> verify_store(const store_place& place,
                                                 const verify_options& how);

/// Where the log of a store ends. Reads only.
actors::store_result<actors::log_head> head_of_store(const store_place& place);
/// Where the log of a directory ends. Reads only.
actors::store_result<actors::log_head> head_of_directory(const std::filesystem::path& directory);

/// "ROW:HASH" as `leasehold head` prints it.
std::string to_text(const actors::log_head& head);
std::optional<actors::log_head> head_from_text(std::string_view text);

/// Collects problems and keeps the first ones.
class problem_list {
 public:
  problem_list(verify_report& report, std::size_t most) : report_(report), most_(most) {}
  void add(protocol::row_number row, std::string column, std::string sentence);
  void add(const protocol::fold::mismatch& wrong);

 private:
  verify_report& report_;
  std::size_t most_;
};

/// Rebuilds every record from exported lines. The rows of one lease must come in their order; those
/// of different leases may be mixed in any way.
class line_verifier {
 public:
  explicit line_verifier(std::size_t most_problems = 20) : problems_(report_, most_problems) {}

  /// A line that cannot be read is a problem that names its place; the answer says what is wrong
  /// with it.
  std::optional<std::string> feed(std::string_view line);
  /// Compares a job, as GET shows it, with the record that was rebuilt, field by field. Passes over
  /// a job that was shown before the newest row of its lease, or after the last line of all.
  void compare_job(const boost::json::object& job);
  /// Call it after the last line and job.
  verify_report finish();

  [[nodiscard]] const std::map<protocol::lease_key, protocol::fold::lease_image>& records()
      const noexcept {
    return fold_.leases();
  }

 private:
  void compare_cells(const evidence_line& line);
  [[nodiscard]] bool is_of_another_time(const boost::json::object& job,
                                        const protocol::fold::lease_image* image) const;
  verify_report report_;
  problem_list problems_;
  protocol::fold fold_;
  struct submitted_job {
    protocol::lease_key key;
    boost::json::object attachment;
  };
  std::map<std::string, submitted_job> submitted_;  ///< by lease: lines are one tenant's
  std::int64_t lines_ = 0;
};

}  // namespace leasehold::storage
