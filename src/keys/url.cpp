// URLs. Boost.URL takes one apart; what is equal is decided here, because its own normalisers
// decode an encoded slash, which is another path.
#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <vector>

#include "src/keys/targets.hpp"

namespace leasehold::keys {
namespace {

struct known_scheme {
  std::string_view name;
  std::string_view default_port;
};
constexpr std::array<known_scheme, 4> schemes{
    {{"http", "80"}, {"https", "443"}, {"ws", "80"}, {"wss", "443"}}};

constexpr std::string_view hex_digits = "0123456789ABCDEF";

constexpr bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

constexpr bool is_unreserved(char c) {
  return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/// What stands in a path or query as itself, with or without meaning; `?` in the query only.
bool stands_for_itself(char c) {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@/?").find(c) != std::string_view::npos;
}

void append_escaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += hex_digits[byte >> 4U];
  out += hex_digits[byte & 15U];
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The byte that the three characters at `at` stand for; nothing when they are no escape.
std::optional<char> read_escape(std::string_view text, std::size_t at) {
  if (text.size() - at < 3) return std::nullopt;
  const int high = hex_value(text[at + 1]);
  const int low = hex_value(text[at + 2]);
  if (text[at] != '%' || high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(high * 16 + low));
}

/// A URL holds ASCII only; people type the rest as it looks.
std::string escape_non_ascii(std::string_view typed) {
  std::string out;
  out.reserve(typed.size());
  for (const char c : typed) {
    if (static_cast<unsigned char>(c) < 0x80) {
      out += c;
    } else {
      append_escaped(out, c);
    }
  }
  return out;
}

/// Escapes in upper case, and only where the byte could mean something else without.
std::optional<std::string> normalise_escapes(std::string_view part) {
  std::string out;
  out.reserve(part.size());
  for (std::size_t at = 0; at < part.size(); ++at) {
    if (part[at] != '%') {
      if (!stands_for_itself(part[at])) return std::nullopt;
      out += part[at];
      continue;
    }
    const auto byte = read_escape(part, at);
    if (!byte) return std::nullopt;
    if (is_unreserved(*byte)) {
      out += *byte;
    } else {
      append_escaped(out, *byte);
    }
    at += 2;
  }
  return out;
}

std::optional<std::string> decode(std::string_view part) {
  std::string out;
  for (std::size_t at = 0; at < part.size(); ++at) {
    if (part[at] != '%') {
      out += part[at];
      continue;
    }
    const auto byte = read_escape(part, at);
    if (!byte) return std::nullopt;
    out += *byte;
    at += 2;
  }
  return out;
}

/// RFC 3986 5.2.4, for a path that is empty or begins with a slash.
std::string remove_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    const bool is_dots = segment == "." || segment == "..";
    if (segment == ".." && !kept.empty()) kept.pop_back();
    if (!is_dots) kept.push_back(segment);
    if (is_dots && path.empty()) kept.emplace_back();
  }
  std::string out;
  for (const std::string_view segment : kept) (out += '/') += segment;
  return out.empty() ? "/" : out;
}

const known_scheme* find_scheme(std::string_view typed) {
  const std::string_view name = typed.substr(0, typed.find(':'));
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
  const auto* found = std::ranges::find_if(
      schemes, [&](const known_scheme& s) { return std::ranges::equal(s.name, name, same); });
  if (found == schemes.end() || !typed.substr(name.size()).starts_with("://")) return nullptr;
  return found;
}

/// With a colon before it; empty for the scheme's own. Nothing: it is no port.
std::optional<std::string> normalise_port(std::string_view digits, const known_scheme& scheme) {
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (digits.empty()) return "";
  digits.remove_prefix(std::min(zeros, digits.size() - 1));
  if (digits.size() > 5) return std::nullopt;
  int port = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (port > 65535) return std::nullopt;
  return digits == scheme.default_port ? "" : ":" + std::string(digits);
}

normalised normalise_url_host(std::string_view encoded) {
  if (encoded.empty()) return refusal{"The URL has no host."};
  if (encoded.starts_with('[')) {
    const auto inner = encoded.substr(1, encoded.size() - 2);
    const auto six =
        inner.find(':') == std::string_view::npos ? std::nullopt : parse_address(inner);
    if (!six) return refusal{"The URL's host in brackets is no IPv6 address without a zone."};
    return six->is_ipv4() ? to_text(*six) : "[" + to_text(*six) + "]";
  }
  const auto decoded = decode(encoded);
  if (!decoded) return refusal{"The URL's host has a broken percent-encoding."};
  auto name = to_a_labels(*decoded);
  const auto* text = std::get_if<std::string>(&name);
  if (text == nullptr || !ends_in_a_number(*text)) return name;
  const auto four = parse_address(*text);
  if (four) return to_text(*four);
  return refusal{
      "The URL's host ends in a number and is not four decimal octets without leading zeros; write "
      "an IPv4 address so."};
}

normalised assemble(const boost::urls::url_view& taken_apart, const known_scheme& scheme) {
  const auto view = [](auto part) { return std::string_view(part.data(), part.size()); };
  if (taken_apart.has_userinfo()) {
    return refusal{"The URL names a user; leave that out, for it may carry a secret."};
  }
  auto host = normalise_url_host(view(taken_apart.encoded_host()));
  if (std::holds_alternative<refusal>(host)) return host;
  const auto port = normalise_port(view(taken_apart.port()), scheme);
  if (!port) return refusal{"The URL's port is over 65535."};
  const std::string_view typed_path = view(taken_apart.encoded_path());
  const auto path = normalise_escapes(typed_path);
  const auto query = normalise_escapes(view(taken_apart.encoded_query()));
  if (!path || !query || !(path->empty() || path->starts_with('/'))) {
    return refusal{"The URL is none by RFC 3986 after its host."};
  }
  std::string out(scheme.name);
  out += "://" + std::get<std::string>(host) + *port + remove_dot_segments(*path);
  if (taken_apart.has_query()) out += "?" + *query;
  return out;
}

}  // namespace

normalised normalise_url(std::string_view typed) {
  if (!is_utf8(typed)) return refusal{"The URL is no UTF-8 text."};
  const known_scheme* scheme = find_scheme(typed);
  if (scheme == nullptr) {
    return refusal{"The URL must begin with http://, https://, ws:// or wss://."};
  }
  const std::string ascii = escape_non_ascii(typed);
  const auto taken_apart = boost::urls::parse_uri(ascii);
  if (!taken_apart) {
    return refusal{
        "The URL is none by RFC 3986; spaces and the characters \" < > \\ ^ ` { | } are written "
        "percent-encoded, and an IPv6 address has no zone."};
  }
  auto out = assemble(*taken_apart, *scheme);
  const auto* text = std::get_if<std::string>(&out);
  if (text != nullptr && text->size() > protocol::largest_lock_target) {
    return refusal{"The URL has more than " + std::to_string(protocol::largest_lock_target) +
                   " bytes."};
  }
  return out;
}

}  // namespace leasehold::keys
