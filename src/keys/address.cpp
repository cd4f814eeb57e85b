// Addresses and networks.
#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "src/keys/targets.hpp"

namespace leasehold::keys {
namespace {

constexpr std::size_t octets_before_ipv4 = 12;

address map_ipv4(const in_addr& from) {
  address out;
  out.bytes[10] = out.bytes[11] = 0xff;
  const auto* octets = reinterpret_cast<const std::uint8_t*>(&from);
  std::copy_n(octets, 4, out.bytes.begin() + octets_before_ipv4);
  return out;
}

struct run {
  std::size_t at = 0;
  std::size_t length = 0;
};

/// The run that "::" stands for: the longest of two zeros or more, the first of those.
run longest_zeros(const std::array<unsigned, 8>& groups) {
  run best;
  run now;
  for (std::size_t at = 0; at < groups.size(); ++at) {
    now = groups[at] != 0 ? run{} : run{now.length == 0 ? at : now.at, now.length + 1};
    if (now.length > best.length) best = now;
  }
  return best.length < 2 ? run{} : best;
}

void append_hex(std::string& out, unsigned group) {
  std::array<char, 4> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), group, 16).ptr;
  out.append(digits.data(), end);
}

/// inet_ntop would write ::2:3 as ::0.2.0.3, which RFC 5952 does not ask for.
std::string to_ipv6_text(const address& what) {
  std::array<unsigned, 8> groups{};
  for (std::size_t at = 0; at < groups.size(); ++at) {
    groups[at] = static_cast<unsigned>(what.bytes[2 * at]) << 8U | what.bytes[2 * at + 1];
  }
  const run zeros = longest_zeros(groups);
  std::string out;
  for (std::size_t at = 0; at < groups.size();) {
    if (zeros.length != 0 && at == zeros.at) {
      out += "::";
      at += zeros.length;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    append_hex(out, groups[at++]);
  }
  return out;
}

void mask(address& what, int prefix) {
  for (std::size_t at = 0; at < what.bytes.size(); ++at) {
    const int kept = std::clamp(prefix - static_cast<int>(8 * at), 0, 8);
    what.bytes[at] &= static_cast<std::uint8_t>(0xff00U >> static_cast<unsigned>(kept));
  }
}

/// 0 to 128, decimal without leading zeros; nothing else.
std::optional<int> parse_prefix(std::string_view text) {
  const bool is_plain = !text.empty() && text.size() <= 3 && (text == "0" || text.front() != '0') &&
                        std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_plain) return std::nullopt;
  int out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out <= 128 ? std::optional(out) : std::nullopt;
}

refusal refuse_address(std::string_view text) {
  if (text.find('%') != std::string_view::npos) {
    return {"The address has a zone, which means something on one machine only; leave it out."};
  }
  return {
      "The address is none; IPv4 is four decimal octets without leading zeros, IPv6 is written as "
      "in RFC 4291 without brackets."};
}

}  // namespace

bool address::is_ipv4() const noexcept {
  static constexpr std::array<std::uint8_t, octets_before_ipv4> mapped{0, 0, 0, 0, 0,    0,
                                                                       0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), bytes.begin());
}

std::optional<address> parse_address(std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string terminated(text);
  in_addr four{};
  if (inet_pton(AF_INET, terminated.c_str(), &four) == 1) return map_ipv4(four);
  address out;
  if (inet_pton(AF_INET6, terminated.c_str(), out.bytes.data()) == 1) return out;
  return std::nullopt;
}

std::string to_text(const address& what) {
  if (!what.is_ipv4()) return to_ipv6_text(what);
  std::string out;
  for (std::size_t at = octets_before_ipv4; at < what.bytes.size(); ++at) {
    out += (out.empty() ? "" : ".") + std::to_string(what.bytes[at]);
  }
  return out;
}

normalised normalise_ip(std::string_view typed) {
  if (typed.find('/') != std::string_view::npos) {
    return refusal{"The address has a prefix; a network is of kind cidr."};
  }
  const auto found = parse_address(typed);
  if (!found) return refuse_address(typed);
  return to_text(*found);
}

normalised normalise_cidr(std::string_view typed) {
  const std::size_t slash = typed.find('/');
  if (slash == std::string_view::npos) {
    return refusal{"The network has no prefix; write ADDRESS/PREFIX, or lock the address by ip."};
  }
  const std::string_view before = typed.substr(0, slash);
  auto network = parse_address(before);
  if (!network) return refuse_address(before);
  const bool is_four = before.find(':') == std::string_view::npos;
  const auto prefix = parse_prefix(typed.substr(slash + 1));
  if (!prefix || (is_four && *prefix > 32)) {
    return refusal{std::string("The prefix of the network must be a whole number from 0 to ") +
                   (is_four ? "32." : "128.")};
  }
  const int whole = is_four ? *prefix + 96 : *prefix;
  mask(*network, whole);
  // What is still mapped has kept its 96 bits before the IPv4 address.
  return to_text(*network) + "/" + std::to_string(network->is_ipv4() ? whole - 96 : whole);
}

}  // namespace leasehold::keys
