// What a start reads: the checkpoint, and the log after it, each batch checked before it is used.
#pragma once

#include <functional>

#include "leasehold/actors/store.hpp"
#include "src/store/log_reader.hpp"

namespace leasehold::storage {

/// Who is told what was read; see actors::store::recover.
struct recovery_listener {
  const std::function<void(const actors::store_state&)>& on_state;
  const std::function<void(actors::checkpoint_entry&&)>& on_record;
  const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy;
  const std::function<void(actors::stored_batch&&)>& on_batch;
};

/// Reads a store that nobody writes: `facts` and `head` are as it is opened.
actors::store_result<actors::recovered_head> recover_store(log_reader& from,
                                                           const store_facts& facts,
                                                           const actors::log_head& head,
                                                           const recovery_listener& to);

}  // namespace leasehold::storage
