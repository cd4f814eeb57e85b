// The way of an acquire to its shard, the same for a call and for a frame.
#pragma once

#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

/// As it is judged. A wait is cut to the longest that is allowed.
shard_operation acquire_operation(acquire_request what, const actor_options& options,
                                  protocol::instant ingress);
/// To the shard of the lock; by way of the shard of the job that the lock is to be tied to.
void send_acquire(const thread_context& from, shard_operation operation);

}  // namespace leasehold::actors
