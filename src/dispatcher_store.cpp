#include "src/dispatcher_store.hpp"

#include <utility>

#include "src/store/open_dispatches.hpp"

namespace leasehold::server {

protocol::instant coordinator_time(const clock_sources& machine,
                                   const actors::clock_anchor& anchor) {
  const auto clock = system_clock::start(machine, anchor, protocol::duration{protocol::max_number},
                                         accepted_clock::wall);
  // Every clock was accepted.
  const auto* started = std::get_if<std::shared_ptr<system_clock>>(&clock);
  return started == nullptr ? anchor.coordinator_time : (*started)->now();
}

actors::store_result<std::unique_ptr<actors::dispatch_store>> open_dispatches(
    const storage::store_place& place, const clock_sources& machine) {
  const auto now = [machine](const actors::clock_anchor& anchor) {
    return coordinator_time(machine, anchor);
  };
  return storage::open_dispatches({place, now});
}

}  // namespace leasehold::server
