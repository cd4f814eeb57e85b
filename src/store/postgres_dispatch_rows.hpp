// The tables of cancellation dispatch in PostgreSQL: their statements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "leasehold/actors/dispatch_rows.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

/// Makes them in the schema of a store; separated by semicolons.
extern const std::string_view postgres_dispatch_tables;

/// A record and the handle of its attempt's process.
struct seen_dispatch {
  protocol::dispatch_record record;
  std::optional<protocol::process_handle> process;
  bool is_damaged = false;  ///< it cannot be read; only its key is
};

/// A record as it is to be, instead of the one of version `before`; with the event of it, or none.
struct next_dispatch {
  protocol::dispatch_record record;
  std::int64_t before = 0;
  std::optional<protocol::dispatch_event> event;
};

/// The records of `keys` with their tokens, in any order; those that are missing are left out.
postgres_result<std::vector<seen_dispatch>> look_for_dispatches(
    postgres_connection& in, std::span<const protocol::lease_key> keys);
/// One statement: writes each record whose version is still the one before, together with its
/// event or not at all, and yields the keys of those that were written. No row is locked after it.
postgres_result<std::vector<protocol::lease_key>> write_dispatches(
    postgres_connection& in, std::span<const next_dispatch> next);

/// Reads. No record that they yield has a token.
actors::store_result<actors::dispatch_page> read_dispatch_page(postgres_connection& from,
                                                               const actors::dispatch_query& what,
                                                               protocol::instant now);
actors::store_result<std::optional<protocol::dispatch_record>> read_dispatch(
    postgres_connection& from, const protocol::lease_key& key);
actors::store_result<std::vector<protocol::dispatch_event>> read_dispatch_events(
    postgres_connection& from, const protocol::lease_key& key, std::int64_t after,
    std::size_t limit);
actors::store_result<std::vector<protocol::dispatch_record>> read_exited_dispatches(
    postgres_connection& from, protocol::instant since, std::size_t limit);
actors::store_result<actors::dispatch_counts> count_dispatches(postgres_connection& from);

/// The coordinator's clock by the database's.
postgres_result<protocol::instant> read_dispatch_clock(postgres_connection& from);
/// Ties the two together; a coordinator of an older epoch changes nothing.
std::optional<postgres_error> write_dispatch_clock(postgres_connection& to, std::int64_t epoch,
                                                   protocol::instant now);

}  // namespace leasehold::storage
