// A policy as canonical text, and the id that its text gives it.
#include <array>
#include <charconv>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {

namespace {

/// FNV-1a over the bytes, then the finish of MurmurHash3, so that every bit of the id depends on
/// every byte.
std::uint64_t mixed(std::string_view text) noexcept {
  std::uint64_t bits = 0xcbf29ce484222325U;
  for (const char each : text) {
    bits ^= static_cast<unsigned char>(each);
    bits *= 0x100000001b3U;
  }
  bits ^= bits >> 33U;
  bits *= 0xff51afd7ed558ccdU;
  bits ^= bits >> 33U;
  bits *= 0xc4ceb9fe1a85ec53U;
  return bits ^ (bits >> 33U);
}

bool set_from_text(policy& target, const policy_key& key, std::string_view value) {
  if (std::holds_alternative<std::string>(key.get(target))) {
    return key.set(target, std::string(value));
  }
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end && key.set(target, number);
}

}  // namespace

std::string canonical_text(const policy& chosen) {
  std::string text;
  for (const policy_key& key : policy_keys()) {
    const auto value = key.get(chosen);
    text += key.name;
    text += '=';
    if (const auto* number = std::get_if<std::int64_t>(&value)) text += std::to_string(*number);
    if (const auto* chosen_word = std::get_if<std::string>(&value)) text += *chosen_word;
    text += '\n';
  }
  return text;
}

std::optional<policy> policy_from_text(std::string_view text) {
  policy chosen;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const policy_key* key = find_policy_key(line.substr(0, equals));
    if (key == nullptr || !set_from_text(chosen, *key, line.substr(equals + 1))) {
      return std::nullopt;
    }
  }
  return chosen;
}

std::uint64_t hash_of(std::string_view bytes) noexcept { return mixed(bytes); }

policy_id id_of(const policy& chosen) {
  // 0 means "no policy", so the one text in 2^64 that would give it is moved aside.
  const std::uint64_t bits = mixed(canonical_text(chosen));
  return {bits == 0 ? 1 : bits};
}

std::string to_text(policy_id id) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = digits[(id.value >> (4 * (text.size() - 1 - i))) & 15U];
  }
  return text;
}

std::optional<policy_id> policy_id_from_text(std::string_view text) {
  policy_id id;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id.value, 16);
  if (text.size() != 16 || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  if (text != to_text(id)) return std::nullopt;
  return id;
}

}  // namespace leasehold::protocol
