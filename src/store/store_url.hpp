// Where a store is, as people name it: `sqlite:/path` or `postgres://user@host/database`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

namespace leasehold::storage {

/// A store's place. A password may be part of `connection` and of nothing else.
struct store_url {
  enum class kind : std::uint8_t { sqlite, postgres };
  kind what = kind::sqlite;
  std::filesystem::path directory;  ///< of SQLite: the one that leasehold.db is in
  std::string connection;           ///< of PostgreSQL: the URL as libpq takes it; a secret
  std::string shown;                ///< for people and logs: holds no password

  static store_url of_directory(const std::filesystem::path& directory);
  friend bool operator==(const store_url&, const store_url&) = default;
};

struct store_url_fault {
  std::string sentence;  ///< what is wrong and what is taken; holds nothing of a password
};

/// `sqlite:PATH` (a data directory, or the leasehold.db in it) or a URL of PostgreSQL, with the
/// scheme postgres or postgresql.
std::variant<store_url, store_url_fault> read_store_url(std::string_view text);

/// The text with the password of every PostgreSQL URL in it left out: for messages that repeat what
/// was typed.
std::string without_passwords(std::string_view text);

}  // namespace leasehold::storage
