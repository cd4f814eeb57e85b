// Reading the log and the checkpoint of a SQLite store: for recovery, for evidence, for verify.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_connection.hpp"

namespace leasehold::storage {

/// A record as the checkpoint has it, with its bytes.
struct stored_record {
  protocol::lease_key key;
  protocol::row_number last_row;
  std::uint64_t check = 0;
  std::string_view image;  ///< lives until the next one
};

/// One connection and its statements. One thread at a time; every call is one consistent view.
class sqlite_reader {
 public:
  explicit sqlite_reader(connection db);

  connection& database() noexcept { return db_; }

  /// Ends before the row `after`.
  actors::store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, protocol::row_number newest, std::size_t limit,
      protocol::row_number after = {});
  /// Begins with the oldest row when `from` was cut.
  actors::store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                                    std::size_t limit);
  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit);
  /// The newest batch that ends before `row`; nothing when none does.
  actors::store_result<std::optional<actors::stored_batch>> batch_before(protocol::row_number row);

  /// The last row of the newest batch written before `at`; 0 when none was.
  actors::store_result<protocol::row_number> row_before(protocol::instant at);
  actors::store_result<std::optional<protocol::policy>> find_policy(protocol::policy_id id);

  /// Every record, ordered by its key.
  std::optional<actors::store_error> each_record(
      const std::function<void(const stored_record&)>& out);
  /// Every policy; `chosen` is nothing when its text cannot be read.
  std::optional<actors::store_error> each_policy(
      const std::function<void(protocol::policy_id, std::optional<protocol::policy>)>& out);

 private:
  actors::store_result<std::optional<actors::stored_batch>> batch_holding(protocol::row_number row);
  /// When the batch that holds `row`, or the newest before it, was written, and its last row.
  struct written {
    protocol::row_number last_row;
    protocol::instant at;
  };
  actors::store_result<std::optional<written>> written_at(statement& query,
                                                          protocol::row_number row) const;
  /// The oldest batch, when the log begins behind `row`.
  actors::store_result<std::optional<actors::stored_batch>> front_after(protocol::row_number row);
  [[nodiscard]] actors::store_error broken(protocol::row_number row) const;

  connection db_;
  statement find_batch_;
  statement batches_from_;
};

/// A few readers for any number of threads. A caller waits while all of them are taken.
class reader_pool {
 public:
  explicit reader_pool(std::filesystem::path file, std::size_t most = 4);

  /// Runs `read` with a reader; Result is a store_result.
  template <class Result>
  Result with(const std::function<Result(sqlite_reader&)>& read) {
    auto taken = take();
    if (auto* fault = std::get_if<actors::store_error>(&taken)) return *fault;
    auto& reader = std::get<std::unique_ptr<sqlite_reader>>(taken);
    Result result = read(*reader);
    give_back(std::move(reader));
    return result;
  }

 private:
  actors::store_result<std::unique_ptr<sqlite_reader>> take();
  void give_back(std::unique_ptr<sqlite_reader> reader);

  std::filesystem::path file_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<sqlite_reader>> idle_;
  std::size_t made_ = 0;
};

}  // namespace leasehold::storage
