// Where a coordinator keeps its log, for tests that run on more than one kind of store: it is
// opened, read back with plain SQL, and verified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "leasehold/actors/store.hpp"
#include "src/store/verify.hpp"
#include "support/stored_log.hpp"

namespace leasehold::tests {

/// How a store is opened.
struct opening {
  bool restored_backup = false;
  std::int64_t wal_bytes = std::int64_t{32} * 1024 * 1024;  ///< of a directory
  /// The coordinator's clock, for cancellation dispatch; empty: the time of the newest batch.
  std::function<protocol::instant()> now = {};
};

class log_place {
 public:
  virtual ~log_place() = default;

  virtual actors::store_result<std::unique_ptr<actors::store>> open(const opening& how) = 0;
  /// Shares no code with the store.
  [[nodiscard]] virtual stored_log read() const = 0;
  [[nodiscard]] virtual actors::store_result<storage::verify_report> verify() const = 0;
  /// Empty: it is no directory.
  [[nodiscard]] virtual std::filesystem::path directory() const { return {}; }
};

/// A directory with SQLite's files.
class directory_place final : public log_place {
 public:
  explicit directory_place(std::filesystem::path where) : where_(std::move(where)) {}

  actors::store_result<std::unique_ptr<actors::store>> open(const opening& how) override;
  [[nodiscard]] stored_log read() const override { return read_log(where_); }
  [[nodiscard]] actors::store_result<storage::verify_report> verify() const override {
    return storage::verify_directory(where_, {});
  }
  [[nodiscard]] std::filesystem::path directory() const override { return where_; }

 private:
  std::filesystem::path where_;
};

/// All rows of a log that is whole.
std::vector<protocol::stored_row> rows_of(const log_place& where);
/// What a log says of leases, one line for each row.
std::vector<std::string> history_of(const log_place& where);
/// Fails when anything in it does not follow.
void expect_proven(const log_place& where);

}  // namespace leasehold::tests
