// The store port on PostgreSQL (architecture.md 4, 5).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "leasehold/actors/store.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

struct postgres_options {
  postgres_access access;
  std::int64_t epoch = 0;    ///< taken before, for access.owner (postgres_epoch)
  std::int64_t shards = 64;  ///< of a new store; one that exists has its own
  /// The database was restored from a backup, and its first commit takes the mark of a copy away.
  /// Without this a copy that was not yet served is refused.
  bool restored_backup = false;
  /// Hears that the log behind the checkpoint is damaged, on a thread of the store.
  std::function<void(std::string)> on_damage;
  /// Hears, while it is opened, that the server may lose what it confirmed.
  std::function<void(std::string)> on_unsafe;
  /// The coordinator's clock, for cancellation dispatch: any thread. When it is not set, the time
  /// of the newest batch.
  std::function<protocol::instant()> now;
  std::shared_ptr<void> held;  ///< lives until the store has ended
  std::size_t readers = 4;     ///< connections for reads
  /// A transaction that may pass is tried again for so long before it is busy.
  std::chrono::milliseconds retry_for{5'000};
  /// A commit whose outcome is unknown is settled within this, or the coordinator must stop.
  std::chrono::milliseconds settle_for{30'000};
};

/// The store of one epoch: once that has moved, nothing is written any more (deposed). The writer's
/// thread runs until the store is destroyed, which first writes what still waits.
actors::store_result<std::unique_ptr<actors::store>> open_postgres_store(
    const postgres_options& how);

}  // namespace leasehold::storage
