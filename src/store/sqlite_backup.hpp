// A copy of a store, also while a coordinator writes to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

struct backup_options {
  std::filesystem::path from;  ///< a data directory
  std::filesystem::path to;    ///< a directory that is empty or not there; made for its owner only
  /// While the copy is read, the coordinator's write-ahead log cannot be shortened. Over this the
  /// backup gives up.
  std::int64_t most_wal_bytes = std::int64_t{1} << 30;
  /// Pages copied, pages in all, bytes of the write-ahead log.
  std::function<void(std::int64_t, std::int64_t, std::int64_t)> progress;
  /// Then the copy is checked: rows checked, rows in all.
  std::function<void(std::int64_t, std::int64_t)> checking;
};

/// The name of a copy that is damaged: nobody takes it for a store.
inline constexpr std::string_view damaged_copy_name = "leasehold.db.damaged";

struct backup_report {
  actors::log_head head;  ///< the copy's
  std::int64_t bytes = 0;
  std::int64_t wal_bytes = 0;  ///< the write-ahead log's size at its largest
};

/// Copies in one read transaction, so that writes never make it begin again. The copy is marked: a
/// coordinator serves it with --restored-backup only, because what was granted after it is unknown.
/// The copy is read again: its pages, the chain and the checks of its rows, and its records. What
/// is damaged there is damaged in the store; the copy is then kept under `damaged_copy_name`, and
/// the error says so (corrupt). On any other failure nothing is left in `to`.
actors::store_result<backup_report> backup_store(const backup_options& how);

}  // namespace leasehold::storage
