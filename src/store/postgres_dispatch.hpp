// The dispatch port on PostgreSQL: beside the coordinator's log and from a process of its own, by
// sessions of its own (cancellation-dispatch.md, Who runs it).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "leasehold/actors/dispatch_store.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

struct postgres_dispatch_options {
  postgres_access access;
  /// The coordinator's clock: any thread. When it is not set, it is told by the database's clock,
  /// which a coordinator ties to its own.
  std::function<protocol::instant()> now;
  /// Of the coordinator whose clock it is; 0: of none, and nothing is tied to it.
  std::int64_t epoch = 0;
};

/// Connects when it is first asked. No row stays locked between two statements, so that a process
/// that is stopped in the middle of a call keeps nobody waiting. When the connection is lost the
/// answer is an error, and whether the call was done is not known: a claim that was not confirmed
/// is not acted on, and a report that was not confirmed may be repeated; it is then written, or
/// answered with stale_claim because it had been. What still waits at the end is not answered.
std::unique_ptr<actors::dispatch_store> make_postgres_dispatches(postgres_dispatch_options how);

/// The same for a process that is not the coordinator's: refuses a database without a store, and
/// one that was restored and not yet served.
actors::store_result<std::unique_ptr<actors::dispatch_store>> open_postgres_dispatches(
    postgres_dispatch_options how);

}  // namespace leasehold::storage
