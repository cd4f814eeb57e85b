// Opens the tables of cancellation dispatch of whatever store a URL names, for a process that is
// not its coordinator.
#pragma once

#include <functional>
#include <memory>

#include "leasehold/actors/store.hpp"
#include "src/store/store_url.hpp"

namespace leasehold::storage {

struct dispatches_options {
  store_place place;
  /// SQLite: the coordinator's clock as the machine's clocks and the anchor of the newest batch
  /// tell it. PostgreSQL has the database's clock for it.
  std::function<protocol::instant(const actors::clock_anchor&)> now;
};

/// Refused as foreign: there is no store, one of another version, or a backup that was not served.
actors::store_result<std::unique_ptr<actors::dispatch_store>> open_dispatches(
    const dispatches_options& how);

}  // namespace leasehold::storage
