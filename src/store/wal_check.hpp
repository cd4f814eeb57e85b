// The write-ahead log of a store, read before SQLite opens it. SQLite takes a log up to its first
// frame with a wrong checksum for a log that ends there, and a database that is missing or empty
// for a reason to delete the log; it says neither.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

/// A frame that is wrong although the disk had it: it was changed or cut out afterwards.
struct wal_damage {
  std::int64_t frame = 0;   ///< counted from 1; 0: the log's header
  std::int64_t frames = 0;  ///< in the file
  std::uint64_t salts = 0;  ///< of this generation of the log
  friend bool operator==(const wal_damage&, const wal_damage&) = default;
};

/// A crash leaves frames that were not synced, in any choice, behind the last commit that was. So a
/// wrong frame alone is no damage; it is damage when a transaction that the writer syncs stands
/// whole behind it, and another one was begun behind that. Those that are not synced, slices of the
/// checkpoint, all write the table `meta`. May run while another process appends to the log.
std::optional<wal_damage> find_wal_damage(const std::filesystem::path& wal);

/// The same as a refusal: of a damaged log, and of a log without its database. Nothing is changed.
/// For a process that does not have the database open.
std::optional<actors::store_error> find_lost_log(const std::filesystem::path& database);
std::optional<actors::store_error> find_lost_database(const std::filesystem::path& database);

}  // namespace leasehold::storage
