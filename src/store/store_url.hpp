// Where a store is, as a user writes it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

namespace leasehold::storage {

struct sqlite_place {
  std::filesystem::path directory;  ///< absolute or relative, not empty
  friend bool operator==(const sqlite_place&, const sqlite_place&) = default;
};

struct postgres_place {
  std::string url;  ///< as it was written: may hold a password
  friend bool operator==(const postgres_place&, const postgres_place&) = default;
};

using store_place = std::variant<sqlite_place, postgres_place>;

/// Why a URL cannot be used, in one sentence without anything that may be a password.
struct bad_store_url {
  std::string sentence;
};

/// sqlite:/path, postgres://... or postgresql://...; of the last two whatever libpq reads.
std::variant<store_place, bad_store_url> parse_store_url(std::string_view text);

/// Whether it names a PostgreSQL database, well or badly.
bool is_database_url(std::string_view text);

/// For logs and people: user, hosts, port and database, never a password or another setting.
std::string shown(const store_place& place);
/// The same of a URI of libpq, or of one that cannot be read: "a PostgreSQL database".
std::string shown_postgres(const std::string& url);
/// Takes every occurrence of the URL's passwords out of what a server or library said.
std::string without_passwords(std::string sentence, const std::string& url);

}  // namespace leasehold::storage
