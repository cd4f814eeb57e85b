// The tables of cancellation dispatch of whatever store a URL names.
#pragma once

#include <memory>

#include "leasehold/actors/dispatch_store.hpp"
#include "leasehold/actors/store.hpp"
#include "src/store/store_url.hpp"
#include "src/system_clock.hpp"

namespace leasehold::server {

/// The coordinator's clock as this machine can tell it from the anchor of the newest batch: exact
/// in the same boot, else by the wall clock, and never before the anchor.
protocol::instant coordinator_time(const clock_sources& machine,
                                   const actors::clock_anchor& anchor);

/// For a process that is not the coordinator.
actors::store_result<std::unique_ptr<actors::dispatch_store>> open_dispatches(
    const storage::store_place& place, const clock_sources& machine);

}  // namespace leasehold::server
