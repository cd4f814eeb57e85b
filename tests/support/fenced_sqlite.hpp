// A table in SQLite that is written to behind the statements of share/leasehold/sql.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fenced_target.hpp"

namespace leasehold::tests {

class fenced_sqlite final : public fenced_target {
 public:
  /// Null: it cannot be opened.
  static std::unique_ptr<fenced_sqlite> open(const std::filesystem::path& file);

  write_end write(const std::string& key, std::int64_t token, const std::string& text) override;
  write_end raise(const std::string& key, std::int64_t token) override;
  std::vector<written_row> rows(const std::string& key) override;
  /// Lease and token of every write, oldest first.
  std::vector<std::pair<std::string, std::int64_t>> all();
  /// As raise(), for keys that are there already.
  write_end raise_known(const std::string& key, std::int64_t token);
  /// Any statements without parameters; false: one failed.
  bool execute(const std::string& statements);
  void wait_for_others(int ms) { sqlite3_busy_timeout(database_.get(), ms); }

 private:
  using connection = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
  using statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

  explicit fenced_sqlite(connection database) : database_(std::move(database)) {}
  statement prepare(const std::string& text);
  write_end run_fence(const std::string& sql, const std::string& key, std::int64_t token);

  connection database_;
};

}  // namespace leasehold::tests
