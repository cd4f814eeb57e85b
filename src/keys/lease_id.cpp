#include <openssl/evp.h>

#include <array>
#include <cstdlib>

#include "src/keys/normalise.hpp"

namespace leasehold::keys {

protocol::lease_id lock_lease_id(std::string_view canonical_key) noexcept {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  const int done = EVP_Digest(canonical_key.data(), canonical_key.size(), digest.data(), &size,
                              EVP_sha256(), nullptr);
  // Another id than the key's own would be another lock.
  if (done != 1 || size != digest.size()) std::abort();
  std::string out = "k:";
  for (const unsigned char byte : digest) {
    constexpr std::string_view hex = "0123456789abcdef";
    out += hex[byte >> 4U];
    out += hex[byte & 15U];
  }
  return protocol::lease_id(std::move(out));
}

}  // namespace leasehold::keys
