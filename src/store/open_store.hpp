// Opens whatever store a URL names, for the process that is to write it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "leasehold/actors/store.hpp"
#include "src/store/store_url.hpp"

namespace leasehold::storage {

/// An epoch that was taken, and is renewed, by the caller.
struct taken_epoch {
  std::int64_t epoch = 0;
  std::string owner;
};

struct store_options {
  store_place place;
  std::int64_t shards = 64;  ///< of a new store; one that exists has its own
  /// The store was restored from a backup; see sqlite_options and postgres_options.
  bool restored_backup = false;
  /// Hears that the log behind the checkpoint is damaged, on a thread of the store.
  std::function<void(std::string)> on_damage;
  /// Hears, while it is opened, what makes the store less safe than it could be.
  std::function<void(std::string)> on_unsafe;
  /// The coordinator's clock, for cancellation dispatch: any thread. When it is not set, the time
  /// of the newest batch.
  std::function<protocol::instant()> now;
  /// PostgreSQL: nothing means that the store takes the epoch itself, keeps it as long as it lives
  /// and releases it then.
  std::optional<taken_epoch> epoch;
  std::string address;  ///< PostgreSQL, when it takes the epoch: where clients reach this process
  /// PostgreSQL, when it takes the epoch: whoever has not renewed it for so long has lost it.
  std::chrono::milliseconds term{5'000};
};

/// Refused as `taken`, with the owner's address, while another process has the store.
actors::store_result<std::unique_ptr<actors::store>> open_store(const store_options& how);

/// An owner that no other process has: 32 hex digits.
std::string new_owner();

}  // namespace leasehold::storage
