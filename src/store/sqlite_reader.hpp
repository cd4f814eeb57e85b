// Reading the log and the checkpoint of a SQLite store: for recovery, for evidence, for verify.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/log_reader.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_connection.hpp"

namespace leasehold::storage {

/// One connection and its statements.
class sqlite_reader final : public log_reader {
 public:
  explicit sqlite_reader(connection db);

  connection& database() noexcept { return db_; }

  actors::store_result<store_facts> facts() override { return read_facts(db_); }
  actors::store_result<actors::log_head> head(const store_facts& facts) override {
    return read_head(db_, facts);
  }
  actors::store_result<std::optional<protocol::policy>> find_policy(
      protocol::policy_id id) override;
  actors::store_result<std::optional<std::string>> find_image(
      const protocol::lease_key& key) override;
  std::optional<actors::store_error> each_record(
      const std::function<void(const stored_record&)>& out) override;
  std::optional<actors::store_error> each_policy(
      const std::function<void(protocol::policy_id, std::optional<protocol::policy>)>& out)
      override;
  [[nodiscard]] actors::store_error damaged(std::string_view what) const override;

 protected:
  std::optional<actors::store_error> begin_view() override;
  void end_view() override;
  found_batch batch_begun_by(protocol::row_number row) override;
  actors::store_result<std::vector<actors::stored_batch>> batches_begun_at(
      protocol::row_number row, std::size_t limit) override;
  actors::store_result<std::optional<written>> written_by(protocol::row_number row) override;
  [[nodiscard]] std::string place() const override { return db_.file(); }

 private:
  connection db_;
  statement find_batch_;
  statement batches_from_;
  statement find_written_;
  std::optional<transaction> view_;
};

}  // namespace leasehold::storage
