// What a lock protects, for tests: a table that holders write to, behind one form of the fence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tests {

enum class write_end { written, stale, failed };
std::string_view word(write_end end);

/// A write that was let through.
struct written_row {
  std::int64_t token = 0;
  std::string text;
  friend bool operator==(const written_row&, const written_row&) = default;
};

/// One connection to a target. Not for use from two threads.
class fenced_target {
 public:
  fenced_target() = default;
  virtual ~fenced_target() = default;
  fenced_target(const fenced_target&) = delete;
  fenced_target& operator=(const fenced_target&) = delete;

  /// One transaction: the fence, then the row. `failed`: neither was done, for another reason.
  virtual write_end write(const std::string& key, std::int64_t token, const std::string& text) = 0;
  /// The fence alone: how a holder makes itself known before its first work.
  virtual write_end raise(const std::string& key, std::int64_t token) = 0;
  /// What was written under a key, oldest first.
  virtual std::vector<written_row> rows(const std::string& key) = 0;
};

/// The text of a file of share/leasehold/sql.
std::string shipped_sql(std::string_view file);

/// Opens `sqlite:FILE`, `postgresql:CONNECTION STRING` or `guard:SOCKET`
/// (tests/support/guarded_service); the tables of a database are made where they are missing. Null:
/// it cannot be opened.
std::unique_ptr<fenced_target> open_target(const std::string& address);

}  // namespace leasehold::tests
