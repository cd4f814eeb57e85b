#include "src/store/store_facts.hpp"

#include <openssl/rand.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstring>

#include "src/store/batch_log.hpp"

namespace leasehold::storage {

std::uint64_t record_check(const protocol::lease_key& key, std::string_view image) {
  const auto add = [](std::uint64_t seed, std::string_view text) {
    return XXH3_64bits_withSeed(text.data(), text.size(), seed);
  };
  return add(add(add(0, key.tenant.value), key.lease.value), image);
}

std::string new_store_id() {
  std::array<unsigned char, 16> bits{};
  RAND_bytes(bits.data(), static_cast<int>(bits.size()));
  actors::chain_hash padded{};
  std::memcpy(padded.data(), bits.data(), bits.size());
  return to_hex(padded).substr(0, 2 * bits.size());
}

}  // namespace leasehold::storage
