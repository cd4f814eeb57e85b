// Spreads names over a few buckets, the same in every process and build.
#pragma once

#include <cstdint>
#include <string_view>

namespace leasehold::protocol {

/// FNV-1a, 64 bit: stable, and good enough once its high bits are folded in.
constexpr std::uint64_t spread(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

constexpr std::uint64_t spread_pair(std::string_view first, std::string_view second) noexcept {
  constexpr std::uint64_t basis = 0xcbf29ce484222325ULL;
  const std::uint64_t hash = spread(spread(spread(basis, first), "\n"), second);
  return hash ^ (hash >> 32U);
}

}  // namespace leasehold::protocol
