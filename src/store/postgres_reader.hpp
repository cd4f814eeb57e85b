// Reading the log and the checkpoint of a PostgreSQL store: for recovery, for evidence, for verify.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/store/log_reader.hpp"
#include "src/store/postgres_connection.hpp"
#include "src/store/postgres_schema.hpp"

namespace leasehold::storage {

class postgres_reader final : public log_reader {
 public:
  explicit postgres_reader(postgres_connection db) : db_(std::move(db)) {}

  postgres_connection& database() noexcept { return db_; }

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
  [[nodiscard]] bool usable() override { return db_.usable(); }

 protected:
  std::optional<actors::store_error> begin_view() override;
  void end_view() override;
  found_batch batch_begun_by(protocol::row_number row) override;
  actors::store_result<std::vector<actors::stored_batch>> batches_begun_at(
      protocol::row_number row, std::size_t limit) override;
  actors::store_result<std::optional<written>> written_by(protocol::row_number row) override;
  [[nodiscard]] std::string place() const override { return db_.place(); }

 private:
  postgres_result<postgres_rows> page_of_records(const std::optional<protocol::lease_key>& after);

  postgres_connection db_;
};

/// Opens readers of a store that is there; what is not one is refused at the first.
open_reader opens_readers_of(const postgres_access& how);

}  // namespace leasehold::storage
