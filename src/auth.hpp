// Tokens: made at random, kept as hashes, compared in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// SHA-256 of a token. Tokens are long and random, so a fast hash is enough.
using token_hash = std::array<std::uint8_t, 32>;

token_hash hash_token(std::string_view token);
/// 64 hex digits and back.
std::string to_hex(const token_hash& hash);
std::optional<token_hash> hash_from_hex(std::string_view text) noexcept;
/// Names a token to people without saying anything about its value: 12 digits of its hash.
std::string token_name(const token_hash& hash);

/// Takes the same time whatever differs.
bool equal_in_constant_time(const token_hash& a, const token_hash& b) noexcept;

/// `lh_` and 256 random bits in base64url. Nothing when the machine has no randomness to give.
std::optional<std::string> make_token();

/// Random hex digits for ids; never for secrets that outlive the process.
std::string random_hex(std::size_t digits);

/// The token of an Authorization header: `Bearer TOKEN`, else nothing.
std::optional<std::string_view> bearer_token(std::string_view header) noexcept;

}  // namespace leasehold::server
