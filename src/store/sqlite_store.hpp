// The store port on SQLite (architecture.md 4).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

struct sqlite_options {
  std::filesystem::path directory;  ///< made when it is missing, for its owner only
  std::int64_t shards = 64;         ///< of a new store; one that exists has its own
  /// The directory holds a backup that becomes the store: its first commit takes the mark of a
  /// backup away. Without this a backup is refused.
  bool restored_backup = false;
  /// Hears that the log behind the checkpoint is damaged, on a thread of the store.
  std::function<void(std::string)> on_damage;
  /// Hears, while it is opened, that nothing says how far the log of a used store reached.
  std::function<void(std::string)> on_unguarded;
  /// The coordinator's clock, for cancellation dispatch: any thread. When it is not set, the time
  /// of the newest batch.
  std::function<protocol::instant()> now;
  /// How long a commit waits for another process that writes before it is refused as busy.
  std::chrono::milliseconds lock_wait{5000};
  /// The write-ahead log is copied into the database once it is longer than this.
  std::int64_t wal_bytes = std::int64_t{32} * 1024 * 1024;
};

/// Takes the directory for life: a second coordinator is told `taken`. The writer's thread runs
/// until the store is destroyed, which first writes what still waits.
actors::store_result<std::unique_ptr<actors::store>> open_sqlite_store(const sqlite_options& how);

}  // namespace leasehold::storage
