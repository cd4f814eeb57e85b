// The tables of a SQLite store, and what must be true of a file before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "leasehold/actors/store.hpp"
#include "src/store/sqlite_connection.hpp"
#include "src/store/store_facts.hpp"

namespace leasehold::storage {

inline constexpr std::int64_t schema_version = 2;
/// What `prepare_writing` makes of a new database: the log is made of large bodies.
inline constexpr std::int64_t database_page_bytes = 16384;
inline constexpr std::string_view database_name = "leasehold.db";

/// Refuses a file that is not a store, or one of a newer version; a missing or empty file is
/// neither.
std::optional<actors::store_error> find_foreign(const std::filesystem::path& file);

/// Opens the database of a store and checks what it is. `create`: makes the tables of an empty
/// file. `refuse` looks at a store that is there before anything of it is changed, and says why it
/// is not to be used. For a process that does not have it open yet: a look at the file that does
/// not go through SQLite gives up the locks that the process has on it.
actors::store_result<connection> open_database(
    const std::filesystem::path& file, connection::access how,
    std::optional<std::int64_t> create_with_shards,
    const std::function<std::optional<actors::store_error>(connection&)>& refuse = {});

/// The same for a process beside the coordinator: the database must be there, of this version, and
/// nothing of it is prepared or made. Asks SQLite alone, so that a process may have it open
/// already.
actors::store_result<connection> open_beside(const std::filesystem::path& file);

/// Brings the tables of an older version up to this one; rows stay as they are.
std::optional<actors::store_error> upgrade_tables(connection& db);

actors::store_result<store_facts> read_facts(connection& from);
std::optional<actors::store_error> write_checkpoint_facts(connection& to, const store_facts& facts);
/// Where the log begins.
std::optional<actors::store_error> write_anchor_facts(connection& to, const store_facts& facts);
/// Marks the file as a backup, or as a store again.
std::optional<actors::store_error> write_backup_mark(connection& to, bool is_backup);

/// The newest piece of the log; the anchor when there is none.
actors::store_result<actors::log_head> read_head(connection& from, const store_facts& facts);

/// The clock's anchor of the newest batch; none of any boot when there is no batch.
actors::store_result<actors::clock_anchor> read_newest_anchor(connection& from);

}  // namespace leasehold::storage
