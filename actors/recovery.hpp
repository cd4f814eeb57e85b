// A start: the records of the checkpoint and the rows after it become leases again, and the time
// that the coordinator was away is accounted for (protocol.md 5, recover).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "leasehold/actors/messages.hpp"
#include "leasehold/actors/ports.hpp"
#include "leasehold/actors/store.hpp"

namespace leasehold::actors {

struct recovered_leases {
  protocol::row_number last_row;
  protocol::row_number checkpoint;
  protocol::row_number anchor;  ///< the log begins behind it
  store_state state;
  std::vector<load_leases> by_thread;
};

/// Recovers everything and makes the rows of the recovery durable; blocks until they are. `basis`
/// says how the clock went on: boot, wall or operator. `restored_backup`: the store is a backup
/// that becomes the store.
store_result<recovered_leases> recover_leases(store& where, const clock& time,
                                              std::string_view basis, bool restored_backup,
                                              const std::vector<context_ptr>& threads);

}  // namespace leasehold::actors
