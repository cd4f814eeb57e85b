// Where leases live in a store: the same in every process and build.
#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/spread.hpp"

namespace leasehold::protocol {

std::size_t shard_of(const lease_key& key) noexcept {
  return spread_pair(key.tenant.value, key.lease.value) % store_shards;
}

}  // namespace leasehold::protocol
