// What a lock is on, as people name it, and the one text that names it: the canonical key.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {

/// What sort of thing a target is; it decides how two spellings of one target are made equal. The
/// numbers are those of the wire and are never reused.
enum class target_kind : std::uint8_t { host = 1, ip, cidr, url, opaque };

std::string_view word(target_kind kind) noexcept;
std::optional<target_kind> target_kind_from_word(std::string_view text) noexcept;

/// What is locked, within a tenant. Typed or normalised: only a normalised one makes a key.
struct lock_name {
  std::string program;  ///< 1 to 128 bytes
  target_kind kind = target_kind::opaque;
  std::string target;           ///< 1 to 2048 bytes once it is normalised
  std::string workflow;         ///< 0 to 128 bytes; empty is a value of its own
  std::string operation_class;  ///< 0 to 128 bytes; empty is a value of its own

  friend auto operator<=>(const lock_name&, const lock_name&) = default;
};

/// A lock of a tenant, as its canonical key names it.
struct lock_key {
  tenant_id tenant;
  lock_name name;

  friend auto operator<=>(const lock_key&, const lock_key&) = default;
};

inline constexpr std::size_t largest_lock_part = 128;  ///< tenant, program and the like, in bytes
inline constexpr std::size_t largest_lock_target = 2048;  ///< of any kind, normalised, in bytes
/// No canonical key has more bytes: every byte of every part escaped, the longest word of a kind,
/// and five separators.
inline constexpr std::size_t largest_canonical_key =
    3 * (4 * largest_lock_part + largest_lock_target) + 6 + 5;

/// `TENANT/PROGRAM/KIND:TARGET/WORKFLOW/OPERATION_CLASS`, for instance
/// `acme/prog-1/host:example.com/scan/write`. Of each part all bytes but A-Z a-z 0-9 - . _ ~ are
/// written as % and two upper-case hex digits, so that no part reaches into another and different
/// locks never share a key. `normalised` is taken as it is.
std::string canonical_key(const tenant_id& tenant, const lock_name& normalised);

/// The lock that a key names. Nothing unless `text` is exactly what canonical_key() writes for it,
/// tenant, program and target are not empty and no part is over its size. Whether the target is
/// normalised is not judged: a key whose target is not names a lock that nobody can hold.
std::optional<lock_key> parse_canonical_key(std::string_view text);

}  // namespace leasehold::protocol
