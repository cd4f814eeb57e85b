#include "leasehold/protocol/lock_key.hpp"

#include <array>
#include <utility>

namespace leasehold::protocol {
namespace {

constexpr std::array<std::pair<target_kind, std::string_view>, 5> kind_words{{
    {target_kind::host, "host"},
    {target_kind::ip, "ip"},
    {target_kind::cidr, "cidr"},
    {target_kind::url, "url"},
    {target_kind::opaque, "opaque"},
}};

constexpr std::string_view hex_digits = "0123456789ABCDEF";

/// The bytes that stand for themselves: RFC 3986's unreserved ones.
constexpr bool stands_for_itself(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

void append_part(std::string& out, std::string_view part) {
  for (const char c : part) {
    if (stands_for_itself(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += hex_digits[byte >> 4U];
      out += hex_digits[byte & 15U];
    }
  }
}

/// Nothing when the part is not written as append_part() writes it.
std::optional<std::string> read_part(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (stands_for_itself(text[at])) {
      out += text[at];
      continue;
    }
    if (text[at] != '%' || text.size() - at < 3) return std::nullopt;
    const std::size_t high = hex_digits.find(text[at + 1]);
    const std::size_t low = hex_digits.find(text[at + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    const char byte = static_cast<char>(static_cast<unsigned char>(high << 4U | low));
    if (stands_for_itself(byte)) return std::nullopt;
    out += byte;
    at += 2;
  }
  return out;
}

/// The text up to `separator`, which is taken from `rest` with it; nothing when there is none.
std::optional<std::string_view> take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return taken;
}

bool has_its_sizes(const lock_key& key) noexcept {
  const auto fits = [](const std::string& part) { return part.size() <= largest_lock_part; };
  const lock_name& name = key.name;
  return !key.tenant.empty() && fits(key.tenant.value) && !name.program.empty() &&
         fits(name.program) && !name.target.empty() && name.target.size() <= largest_lock_target &&
         fits(name.workflow) && fits(name.operation_class);
}

}  // namespace

std::string_view word(target_kind kind) noexcept {
  for (const auto& [value, text] : kind_words) {
    if (value == kind) return text;
  }
  return {};
}

std::optional<target_kind> target_kind_from_word(std::string_view text) noexcept {
  for (const auto& [value, known] : kind_words) {
    if (known == text) return value;
  }
  return std::nullopt;
}

std::string canonical_key(const tenant_id& tenant, const lock_name& normalised) {
  std::string out;
  append_part(out, tenant.value);
  out += '/';
  append_part(out, normalised.program);
  out += '/';
  out += word(normalised.kind);
  out += ':';
  append_part(out, normalised.target);
  out += '/';
  append_part(out, normalised.workflow);
  out += '/';
  append_part(out, normalised.operation_class);
  return out;
}

std::optional<lock_key> parse_canonical_key(std::string_view text) {
  if (text.size() > largest_canonical_key) return std::nullopt;
  std::string_view rest = text;
  std::array<std::string, 5> parts;
  std::optional<target_kind> kind;
  for (std::size_t number = 0; number < parts.size(); ++number) {
    if (number == 2) {
      const auto spelled = take_until(rest, ':');
      if (spelled) kind = target_kind_from_word(*spelled);
      if (!kind) return std::nullopt;
    }
    const bool is_last = number + 1 == parts.size();
    const auto written = is_last ? std::optional(rest) : take_until(rest, '/');
    if (!written) return std::nullopt;
    auto part = read_part(*written);
    if (!part) return std::nullopt;
    parts[number] = std::move(*part);
  }
  auto& [tenant, program, target, workflow, operation_class] = parts;
  lock_key out{tenant_id(std::move(tenant)),
               {std::move(program), *kind, std::move(target), std::move(workflow),
                std::move(operation_class)}};
  if (!has_its_sizes(out)) return std::nullopt;
  return out;
}

}  // namespace leasehold::protocol
