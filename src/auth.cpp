#include "src/auth.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

namespace leasehold::server {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view base64url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::optional<std::uint8_t> hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

/// Letters that carry 6 bits each, the last one padded with zero bits.
std::string in_base64url(const std::uint8_t* bytes, std::size_t count) {
  std::string out;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bits = (bits << 8U) | bytes[i];
    for (held += 8; held >= 6; held -= 6) out += base64url[(bits >> (held - 6)) & 63U];
  }
  if (held > 0) out += base64url[(bits << (6 - held)) & 63U];
  return out;
}

}  // namespace

token_hash hash_token(std::string_view token) {
  token_hash out{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), out.data());
  return out;
}

std::string to_hex(const token_hash& hash) {
  std::string out;
  for (const std::uint8_t byte : hash) {
    out += hex_digits[byte >> 4U];
    out += hex_digits[byte & 15U];
  }
  return out;
}

std::optional<token_hash> hash_from_hex(std::string_view text) noexcept {
  token_hash out{};
  if (text.size() != 2 * out.size()) return std::nullopt;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto high = hex_value(text[2 * i]);
    const auto low = hex_value(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    out[i] = static_cast<std::uint8_t>(*high << 4U | *low);
  }
  return out;
}

std::string token_name(const token_hash& hash) { return to_hex(hash).substr(0, 12); }

bool equal_in_constant_time(const token_hash& a, const token_hash& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string> make_token() {
  std::array<std::uint8_t, 32> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return std::nullopt;
  return "lh_" + in_base64url(random.data(), random.size());
}

std::string random_hex(std::size_t digits) {
  std::string bytes((digits + 1) / 2, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    std::ranges::fill(bytes, '\0');
  }
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += hex_digits[byte >> 4U];
    out += hex_digits[byte & 15U];
  }
  return out.substr(0, digits);
}

std::optional<std::string_view> bearer_token(std::string_view header) noexcept {
  constexpr std::string_view scheme = "bearer ";
  if (header.size() <= scheme.size()) return std::nullopt;
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    const char c =
        header[i] >= 'A' && header[i] <= 'Z' ? static_cast<char>(header[i] + 32) : header[i];
    if (c != scheme[i]) return std::nullopt;
  }
  const std::string_view token = header.substr(scheme.size());
  const bool plain = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; });
  if (!plain || token.size() > 512) return std::nullopt;
  return token;
}

}  // namespace leasehold::server
