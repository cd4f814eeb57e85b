// Where leases and queues live: the same in every process and build.
#include "leasehold/actors/ports.hpp"

namespace leasehold::actors {

namespace {

/// FNV-1a, 64 bit: stable, and good enough to spread names over a few buckets once its high bits
/// are folded in.
std::uint64_t spread(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::uint64_t fold_bits(std::uint64_t hash) noexcept { return hash ^ (hash >> 32U); }

std::uint64_t spread_pair(std::string_view first, std::string_view second) noexcept {
  constexpr std::uint64_t basis = 0xcbf29ce484222325ULL;
  return fold_bits(spread(spread(spread(basis, first), std::string_view("\n")), second));
}

}  // namespace

std::size_t shard_of(const protocol::lease_key& key) noexcept {
  return spread_pair(key.tenant.value, key.lease.value) % store_shards;
}

std::size_t thread_context::thread_of(const protocol::lease_key& key) const {
  return shard_of(key) % threads;
}

std::size_t thread_context::thread_of_queue(const protocol::tenant_id& tenant,
                                            const std::string& queue) const {
  return spread_pair(tenant.value, queue) % threads;
}

}  // namespace leasehold::actors
