#include "src/store/hidden_passwords.hpp"

#include <algorithm>
#include <array>

namespace leasehold::storage {
namespace {

/// The scheme of a PostgreSQL URL with its "://" that stands at `at`.
std::string_view scheme_at(std::string_view text, std::size_t at) {
  static constexpr std::array<std::string_view, 2> schemes{"postgres://", "postgresql://"};
  for (const std::string_view each : schemes) {
    if (text.substr(at).starts_with(each)) return each;
  }
  return {};
}

/// A key of a query with its %XX read, as libpq reads it: none is hidden behind its spelling.
std::string decoded(std::string_view key) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool escaped =
        key[i] == '%' && i + 2 < key.size() && digit(key[i + 1]) >= 0 && digit(key[i + 2]) >= 0;
    out += escaped ? static_cast<char>(digit(key[i + 1]) * 16 + digit(key[i + 2])) : key[i];
    if (escaped) i += 2;
  }
  return out;
}

bool is_secret(std::string_view key) {
  const std::string plain = decoded(key);
  return plain.find("password") != std::string::npos;
}

/// The parameters of a URL but those that are secret.
std::string shown_query(std::string_view query) {
  std::string out;
  while (!query.empty()) {
    const auto part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (is_secret(part.substr(0, part.find('=')))) continue;
    out += (out.empty() ? '?' : '&') + std::string(part);
  }
  return out;
}

/// Whether the '@' at `sign` can only belong to a parameter: it stands behind the '?', after a
/// '=' of its own, and the authority has nothing but ports behind its first ':'.
bool is_of_a_parameter(std::string_view rest, std::size_t sign) {
  const auto question = rest.find('?');
  if (question == std::string_view::npos || rest.find('@') < question) return false;
  const auto part = std::max(question, rest.rfind('&', sign) + 1);
  if (rest.substr(part, sign - part).find('=') == std::string_view::npos) return false;
  const auto authority = rest.substr(0, std::min(rest.find('/'), question));
  const auto colon = authority.find(':');
  return colon == std::string_view::npos ||
         authority.find_first_not_of("0123456789:,", colon) == std::string_view::npos;
}

/// A URL of PostgreSQL without its password. What stands between the first ':' of the authority and
/// the last '@' of all goes, so that a password with a stray '@', '/' or '?' does not come through.
std::string shown_url(std::string_view url) {
  const std::string_view scheme = scheme_at(url, 0);
  std::string_view rest = url.substr(scheme.size());
  std::string user;
  const auto sign = rest.rfind('@');
  if (sign != std::string_view::npos && !is_of_a_parameter(rest, sign)) {
    user = std::string(rest.substr(0, std::min(rest.find(':'), sign))) + '@';
    rest.remove_prefix(sign + 1);
  }
  const auto question = rest.find('?');
  std::string out = std::string(scheme) + user + std::string(rest.substr(0, question));
  if (question != std::string_view::npos) out += shown_query(rest.substr(question + 1));
  return out;
}

}  // namespace

std::string hide_passwords(std::string_view text) {
  std::string out;
  while (true) {
    std::size_t at = std::min(text.find("postgres://"), text.find("postgresql://"));
    if (at == std::string_view::npos) return out + std::string(text);
    out += text.substr(0, at);
    text.remove_prefix(at);
    // A password may have blanks: the URL reaches to the first blank behind its last '@'.
    const auto next = std::min(text.find("postgres://", 1), text.find("postgresql://", 1));
    const auto own = text.substr(0, next);
    const auto sign = own.rfind('@');
    const auto end = own.find_first_of(" \t\r\n'\"`", sign == std::string_view::npos ? 0 : sign);
    const auto url = own.substr(0, end);
    out += shown_url(url);
    text.remove_prefix(url.size());
  }
}

}  // namespace leasehold::storage
