// What a batch means for cancellation dispatch, written in the transaction of its rows.
#pragma once

#include <vector>

#include "leasehold/protocol/dispatch.hpp"
#include "src/store/postgres_connection.hpp"

namespace leasehold::storage {

/// Adds the statements that make `changes` true, in their order, to a transaction that was begun.
/// Nothing can be read between them, so that each is one statement that finds out for itself. The
/// same changes may be added again in a new transaction, after the one before was rolled back.
void write_dispatch_changes(postgres_pipeline& into,
                            const std::vector<protocol::dispatch_change>& changes);

}  // namespace leasehold::storage
