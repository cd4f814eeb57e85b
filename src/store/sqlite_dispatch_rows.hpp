// The tables of cancellation dispatch in SQLite: their statements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leasehold/actors/dispatch_rows.hpp"
#include "src/store/sqlite_connection.hpp"

namespace leasehold::storage {

/// Makes them, in the transaction of the caller.
std::optional<actors::store_error> create_dispatch_tables(connection& in);

/// Writes, within a transaction of the caller's. One thread; lives no longer than the connection.
class sqlite_dispatch_rows final : public actors::dispatch_rows {
 public:
  using fault = std::optional<actors::store_error>;

  explicit sqlite_dispatch_rows(connection& on);

  actors::store_result<std::optional<protocol::dispatch_record>> find(
      const protocol::lease_key& key) override;
  fault insert(const protocol::dispatch_record& made) override;
  actors::store_result<bool> update(const protocol::dispatch_record& after,
                                    std::int64_t before) override;
  fault close_unread(const protocol::dispatch_change& what) override;
  fault append(const protocol::dispatch_event& event) override;
  actors::store_result<std::optional<protocol::process_handle>> find_handle(
      const protocol::lease_key& key, protocol::generation gen) override;
  fault put_handle(const protocol::lease_key& key, protocol::generation gen,
                   const protocol::process_handle& handle) override;
  fault drop_handles(const protocol::lease_key& key, protocol::generation gen) override;
  fault forget(const protocol::lease_key& key) override;
  fault begin_part() override;
  fault end_part(bool keep) override;

 private:
  fault run(statement& what, std::string_view doing);

  connection& on_;
  statement find_;
  statement insert_;
  statement update_;
  statement close_;
  statement append_;
  statement find_handle_;
  statement put_handle_;
  statement drop_handles_;
  statement forget_record_;
  statement forget_events_;
};

/// Reads, each call one consistent view. No record that they yield has a token.
actors::store_result<actors::dispatch_page> read_dispatch_page(connection& from,
                                                               const actors::dispatch_query& what,
                                                               protocol::instant now);
actors::store_result<std::optional<protocol::dispatch_record>> read_dispatch(
    connection& from, const protocol::lease_key& key);
actors::store_result<std::vector<protocol::dispatch_event>> read_dispatch_events(
    connection& from, const protocol::lease_key& key, std::int64_t after, std::size_t limit);
actors::store_result<std::vector<protocol::dispatch_record>> read_exited_dispatches(
    connection& from, protocol::instant since, std::size_t limit);
actors::store_result<actors::dispatch_counts> count_dispatches(connection& from);

}  // namespace leasehold::storage
