// Which thread serves a lease or a queue.
#include "leasehold/actors/ports.hpp"
#include "leasehold/protocol/spread.hpp"

namespace leasehold::actors {

std::size_t thread_context::thread_of(const protocol::lease_key& key) const {
  return protocol::shard_of(key) % threads;
}

std::size_t thread_context::thread_of_queue(const protocol::tenant_id& tenant,
                                            const std::string& queue) const {
  return protocol::spread_pair(tenant.value, queue) % threads;
}

}  // namespace leasehold::actors
