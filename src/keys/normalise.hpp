// Makes two spellings of one target equal before anything is locked. Reads no file, asks no
// resolver and depends on no locale: the same text gives the same key everywhere.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "leasehold/protocol/lock_key.hpp"

namespace leasehold::keys {

/// Why a name or target is refused (reason invalid_target), in one sentence. It never repeats what
/// was typed, which may hold a secret.
struct refusal {
  std::string sentence;
  friend auto operator<=>(const refusal&, const refusal&) = default;
};

/// Every part as typed may have so many bytes; its own limit is judged once it is normalised.
inline constexpr std::size_t largest_typed = 8192;

/// Program, workflow and operation class become NFC (program 1 to 128 bytes, the others 0 to 128,
/// without control characters), the target what its kind asks for:
///  - host: A-labels by IDNA 2008 with the UTS 46 non-transitional mapping, lower case, one dot at
///    the end dropped. ASCII labels are what DNS takes: letters, digits, hyphens and underscores
///    anywhere.
///  - ip: the text of RFC 5952; IPv4-mapped IPv6 becomes IPv4.
///  - cidr: the address masked to its prefix, then as ip.
///  - url: RFC 3986's syntax normalisation for http, https, ws and wss; no fragment, no user.
///  - opaque: NFC, 1 to 512 bytes without control characters.
/// Normalising what was normalised changes nothing. Memory that runs out ends the process.
std::variant<protocol::lock_name, refusal> normalise(const protocol::lock_name& typed) noexcept;

/// The lease of a lock: "k:" and the SHA-256 of its canonical key as 64 lower-case hex digits.
protocol::lease_id lock_lease_id(std::string_view canonical_key) noexcept;

}  // namespace leasehold::keys
