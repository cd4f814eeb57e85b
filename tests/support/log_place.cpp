#include "support/log_place.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/store/sqlite_store.hpp"

namespace leasehold::tests {

actors::store_result<std::unique_ptr<actors::store>> directory_place::open(const opening& how) {
  return storage::open_sqlite_store({.directory = where_,
                                     .restored_backup = how.restored_backup,
                                     .now = how.now,
                                     .wal_bytes = how.wal_bytes});
}

std::vector<protocol::stored_row> rows_of(const log_place& where) {
  auto log = where.read();
  for (const auto& fault : log.faults) ADD_FAILURE() << fault;
  return std::move(log.rows);
}

std::vector<std::string> history_of(const log_place& where) {
  std::vector<std::string> lines;
  for (const auto& row : rows_of(where)) {
    if (row.key.lease.value.empty()) continue;
    lines.push_back(row.key.lease.value + " " + std::string(word(row.input.kind)) + " " +
                    std::string(word(row.answer.decision)) + " " +
                    std::string(word(row.answer.reason)));
  }
  return lines;
}

void expect_proven(const log_place& where) {
  const auto said = where.verify();
  if (const auto* fault = std::get_if<actors::store_error>(&said)) {
    ADD_FAILURE() << fault->sentence;
    return;
  }
  for (const auto& each : std::get<storage::verify_report>(said).problems) {
    ADD_FAILURE() << "verify: row " << each.row.value << ": " << each.sentence;
  }
}

}  // namespace leasehold::tests
