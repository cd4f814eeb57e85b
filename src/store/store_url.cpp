#include "src/store/store_url.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "src/store/schema.hpp"

namespace leasehold::storage {
namespace {

constexpr std::string_view what_is_taken =
    "it takes sqlite:/path/of/a/data/directory or postgres://USER@HOST:PORT/DATABASE (a password "
    "is best kept in a file that PGPASSFILE names)";
constexpr std::size_t longest = 4096;

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

store_url_fault fault_of(std::string_view what) {
  return {"The store " + std::string(what) + "; " + std::string(what_is_taken) + "."};
}

bool is_plain(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

}  // namespace

store_url store_url::of_directory(const std::filesystem::path& directory) {
  return {kind::sqlite, directory, {}, "sqlite:" + directory.string()};
}

std::variant<store_url, store_url_fault> read_store_url(std::string_view text) {
  constexpr std::string_view sqlite = "sqlite:";
  if (text.size() > longest || !is_plain(text)) {
    return fault_of("is named by a text that is too long, or has control characters");
  }
  if (text.starts_with(sqlite)) {
    text.remove_prefix(sqlite.size());
    if (text.starts_with("//")) text.remove_prefix(2);
    if (text.empty()) return fault_of("has no path");
    std::filesystem::path path(text);
    std::error_code ignored;
    if (path.filename() == database_name && !std::filesystem::is_directory(path, ignored)) {
      path = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    }
    return store_url::of_directory(path);
  }
  if (scheme_at(text, 0).empty()) return fault_of("is neither of SQLite nor of PostgreSQL");
  return store_url{store_url::kind::postgres, {}, std::string(text), shown_url(text)};
}

std::string without_passwords(std::string_view text) {
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
