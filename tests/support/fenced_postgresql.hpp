// A table in PostgreSQL that is written to behind the statements of share/leasehold/sql.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "support/fenced_target.hpp"

namespace leasehold::tests {

class fenced_postgresql final : public fenced_target {
 public:
  /// Null: there is no such server.
  static std::unique_ptr<fenced_postgresql> open(const std::string& connection_string);

  write_end write(const std::string& key, std::int64_t token, const std::string& text) override;
  write_end raise(const std::string& key, std::int64_t token) override;
  std::vector<written_row> rows(const std::string& key) override;
  /// As raise(), for keys that are there already.
  write_end raise_known(const std::string& key, std::int64_t token);
  /// Any statements without parameters; false: one failed.
  bool execute(const std::string& statements);
  /// The one value that a query yields.
  std::string value(const std::string& query);
  /// The SQLSTATE of the last raise(); empty: it did not fail.
  [[nodiscard]] const std::string& sql_state() const noexcept { return sql_state_; }

 private:
  using connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
  using result = std::unique_ptr<PGresult, decltype(&PQclear)>;

  explicit fenced_postgresql(connection server) : server_(std::move(server)) {}
  result run(const std::string& statement, const std::vector<std::string>& values);
  write_end run_fence(const std::string& sql, const std::string& key, std::int64_t token);

  connection server_;
  std::string sql_state_;
};

}  // namespace leasehold::tests
