// The dispatch port on PostgreSQL: beside the coordinator's log and from a process of its own, by
// sessions of its own (cancellation-dispatch.md, Who runs it).
#pragma once

#include <functional>
#include <memory>

#include "leasehold/actors/dispatch_store.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

struct postgres_dispatch_options {
  postgres_access access;
  /// The coordinator's clock: any thread. When it is not set, the time of the newest batch.
  std::function<protocol::instant()> now;
};

/// Connects when it is first asked.
std::unique_ptr<actors::dispatch_store> make_postgres_dispatches(postgres_dispatch_options how);

}  // namespace leasehold::storage
