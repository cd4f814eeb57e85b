#include "src/store/store_url.hpp"

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

#include "src/store/schema.hpp"

namespace leasehold::storage {

namespace {

constexpr std::string_view forms =
    "write sqlite:/path/of/a/directory or postgresql://user@host:port/database";

struct option_freer {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using parsed_options = std::unique_ptr<PQconninfoOption, option_freer>;

/// What libpq says about a URI that it cannot read may hold a piece of it, a password too, so it is
/// not passed on.
parsed_options parse_options(const std::string& url) {
  char* message = nullptr;
  parsed_options options(PQconninfoParse(url.c_str(), &message));
  PQfreemem(message);
  return options;
}

std::string value_of(const parsed_options& options, std::string_view keyword) {
  for (const PQconninfoOption* each = options.get(); each->keyword != nullptr; ++each) {
    if (each->keyword == keyword && each->val != nullptr) return each->val;
  }
  return {};
}

bool starts_with_scheme(std::string_view text) {
  return text.starts_with("postgres://") || text.starts_with("postgresql://");
}

std::vector<std::string> passwords_in(const std::string& url) {
  std::vector<std::string> found;
  const auto options = parse_options(url);
  if (!options) return found;
  for (const std::string_view each : {"password", "sslpassword"}) {
    if (auto value = value_of(options, each); !value.empty()) found.push_back(std::move(value));
  }
  return found;
}

/// Control characters of a name would change the line that it is shown in.
std::string printable(std::string text) {
  for (char& each : text) {
    if (static_cast<unsigned char>(each) < 0x20 || each == 0x7f) each = '?';
  }
  return text;
}

std::string shown_options(const parsed_options& options) {
  const std::string user = value_of(options, "user");
  const std::string host = value_of(options, "host");
  const std::string address = value_of(options, "hostaddr");
  const std::string port = value_of(options, "port");
  const std::string service = value_of(options, "service");
  std::string text = "postgresql://";
  if (!user.empty()) text += user + "@";
  const std::string& named = host.empty() ? address : host;
  const bool is_socket = named.starts_with('/') || named.starts_with('@');
  if (!is_socket) text += named;
  if (!is_socket && !port.empty()) text += ":" + port;
  text += "/" + value_of(options, "dbname");
  std::string more;
  const auto add = [&more](std::string_view name, const std::string& value) {
    more += (more.empty() ? "?" : "&") + std::string(name) + "=" + value;
  };
  if (is_socket) add("host", named);
  if (is_socket && !port.empty()) add("port", port);
  if (!service.empty()) add("service", service);
  return printable(text + more);
}

std::variant<store_place, bad_store_url> parse_sqlite(std::string_view path) {
  if (path.starts_with("//")) {
    return bad_store_url{
        "the store URL 'sqlite://...' names a host, which a SQLite store does not have; write "
        "sqlite:/path/of/a/directory"};
  }
  if (path.empty()) {
    return bad_store_url{
        "the store URL 'sqlite:' names no directory; write sqlite:/path/of/a/directory"};
  }
  if (path.find('\0') != std::string_view::npos) {
    return bad_store_url{"the path of the store URL has a zero byte; name a directory"};
  }
  std::filesystem::path directory(path);
  std::error_code ignored;
  if (directory.filename() == database_name && !std::filesystem::is_directory(directory, ignored)) {
    directory = directory.has_parent_path() ? directory.parent_path() : ".";
  }
  return sqlite_place{std::move(directory)};
}

/// Whether the text reads in two ways: a password with a plain '@' or '/' would be taken for a host
/// or a port, and be shown as one.
bool is_ambiguous(std::string_view text) {
  std::string_view rest = text.substr(text.find("://") + 3);
  rest = rest.substr(0, rest.find('?'));
  const auto first = rest.find('@');
  if (first == std::string_view::npos) return false;
  return rest.rfind('@') != first || rest.find('/') < first;
}

std::variant<store_place, bad_store_url> parse_postgres(std::string_view text) {
  std::string url(text);
  if (is_ambiguous(text)) {
    return bad_store_url{
        "the store URL has an '@' or '/' that may belong to a password; write them as %40 and %2F "
        "there, or better: put the password into a file (PGPASSFILE)"};
  }
  if (text.find('\0') != std::string_view::npos || !parse_options(url)) {
    return bad_store_url{
        "the store URL is not one that PostgreSQL's client can read (a setting it does not know, "
        "or a character that must be written as %XX); write "
        "postgresql://user@host:port/database?setting=value"};
  }
  return postgres_place{std::move(url)};
}

}  // namespace

std::variant<store_place, bad_store_url> parse_store_url(std::string_view text) {
  if (text.starts_with("sqlite:")) return parse_sqlite(text.substr(7));
  if (starts_with_scheme(text)) return parse_postgres(text);
  return bad_store_url{"the store URL begins with neither sqlite: nor postgresql://; " +
                       std::string(forms)};
}

bool is_database_url(std::string_view text) { return starts_with_scheme(text); }

std::string shown(const store_place& place) {
  if (const auto* sqlite = std::get_if<sqlite_place>(&place)) {
    return printable("sqlite:" + sqlite->directory.string());
  }
  return shown_postgres(std::get<postgres_place>(place).url);
}

std::string shown_postgres(const std::string& url) {
  const auto options = parse_options(url);
  return options ? shown_options(options) : "a PostgreSQL database";
}

std::string without_passwords(std::string sentence, const std::string& url) {
  for (const std::string& password : passwords_in(url)) {
    for (auto at = sentence.find(password); at != std::string::npos;
         at = sentence.find(password, at + 3)) {
      sentence.replace(at, password.size(), "***");
    }
  }
  return sentence;
}

}  // namespace leasehold::storage
