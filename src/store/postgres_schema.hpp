// The tables of a PostgreSQL store, and what must be true of a database before it is used.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/actors/store.hpp"
#include "src/store/postgres_connection.hpp"
#include "src/store/store_facts.hpp"

namespace leasehold::storage {

/// The format of the tables in the schema `leasehold` that this build makes and reads.
inline constexpr std::int64_t postgres_format = 1;

/// Makes the schema of a database that has none, and refuses one of another program or of a newer
/// version. Several processes may do it at once. `shards`: of a new store; nothing: one that is not
/// there is refused, too.
std::optional<actors::store_error> prepare_schema(postgres_connection& in,
                                                  std::optional<std::int64_t> shards);

actors::store_result<store_facts> read_facts(postgres_connection& from);
/// The newest piece of the log; the anchor when there is none.
actors::store_result<actors::log_head> read_head(postgres_connection& from,
                                                 const store_facts& facts);

/// Adds the statements that write facts to a transaction that was begun.
void write_checkpoint_facts(postgres_pipeline& into, const store_facts& facts);
void write_anchor_facts(postgres_pipeline& into, const store_facts& facts);
void write_backup_mark(postgres_pipeline& into, bool is_backup);

/// Nothing is written behind this statement unless the epoch is still `epoch`, which then stays
/// until the transaction ends. Else it fails with `moved_epoch`.
void check_epoch(postgres_pipeline& into, std::int64_t epoch);
inline constexpr std::string_view moved_epoch = "22012";

/// Says what makes the server lose what it confirmed; empty when nothing does.
actors::store_result<std::string> find_unsafe_settings(postgres_connection& of);

/// Bytes of the database as a view; of another size they are left as zeros, which no hash is.
actors::chain_hash chain_of(std::string_view bytes);
std::string_view bytes_of(const actors::chain_hash& chain);

}  // namespace leasehold::storage
