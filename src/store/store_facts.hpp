// What a store says about itself, whatever its database.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

/// What the store says about itself.
struct store_facts {
  std::string store_id;
  std::int64_t shards = 0;
  actors::log_head anchor;          ///< where the log begins: the row before its first one
  protocol::row_number checkpoint;  ///< records are as of this row
  std::int64_t record_count = 0;
  std::uint64_t record_sum = 0;  ///< of the check values of all records, modulo 2^64
  actors::store_state state;     ///< as of the checkpoint
  /// What was cut from the front of the log: when its last batch was written, and how much it was.
  protocol::instant anchor_time;
  std::int64_t batches_cut = 0;
  bool is_backup = false;  ///< made by backup_store and not yet served
};

/// The check value of a record in the checkpoint.
std::uint64_t record_check(const protocol::lease_key& key, std::string_view image);

/// 32 hex digits that no other store has.
std::string new_store_id();

}  // namespace leasehold::storage
