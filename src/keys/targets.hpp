// One normaliser a kind of target, and what they share. Private to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "src/keys/normalise.hpp"

namespace leasehold::keys {

using normalised = std::variant<std::string, refusal>;

normalised normalise_host(std::string_view typed);
normalised normalise_ip(std::string_view typed);
normalised normalise_cidr(std::string_view typed);
normalised normalise_url(std::string_view typed);
normalised normalise_opaque(std::string_view typed);

/// NFC of a text of `least` to `most` bytes without control characters; `what` begins the sentence
/// of a refusal ("The program").
normalised normalise_text(std::string_view typed, std::string_view what, std::size_t least,
                          std::size_t most);
bool is_utf8(std::string_view text);
/// U+0000 to U+001F, U+007F to U+009F.
bool has_control_character(std::string_view utf8);

/// A-labels in lower case, without the dot at the end. Numbers are let through: whether they are an
/// address is the caller's question.
normalised to_a_labels(std::string_view typed);
/// A code point that IDNA 2008 does not allow where it stands in the label, UTF-8 in NFC, of those
/// that libidn2 lets pass: CONTEXTO of RFC 5892, and what no U-label has.
std::optional<refusal> find_code_point_fault(std::string_view u_label);
/// Whether the last label is a decimal or hexadecimal number: resolvers read such a name as an IPv4
/// address in one of its old spellings, and no name of DNS ends so.
bool ends_in_a_number(std::string_view a_labels);

/// An IPv6 address; an IPv4 one as it is mapped into IPv6.
struct address {
  std::array<std::uint8_t, 16> bytes{};

  [[nodiscard]] bool is_ipv4() const noexcept;
};

/// Four decimal octets without leading zeros, or IPv6 without a zone; nothing else.
std::optional<address> parse_address(std::string_view text);
/// RFC 5952; IPv4 as four octets.
std::string to_text(const address& what);

}  // namespace leasehold::keys
