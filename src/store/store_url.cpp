#include "src/store/store_url.hpp"

#include "src/store/hidden_passwords.hpp"
#include "src/store/schema.hpp"

namespace leasehold::storage {

std::variant<store_place, bad_store_url> parse_store_url(std::string_view text) {
  constexpr std::string_view sqlite = "sqlite:";
  if (text.starts_with("postgres://") || text.starts_with("postgresql://")) {
    return postgres_place{std::string(text)};
  }
  if (!text.starts_with(sqlite) || text.size() == sqlite.size()) {
    return bad_store_url{
        "A store is at sqlite:/path/of/a/data/directory or postgres://USER@HOST/DATABASE."};
  }
  std::filesystem::path path(text.substr(sqlite.size()));
  if (path.filename() == database_name) path = path.parent_path();
  return sqlite_place{path.empty() ? "." : path};
}

std::string shown(const store_place& place) {
  if (const auto* file = std::get_if<sqlite_place>(&place)) return file->directory.string();
  return shown_postgres(std::get<postgres_place>(place).url);
}

std::string shown_postgres(const std::string& url) { return hide_passwords(url); }

std::string without_passwords(std::string sentence, const std::string&) {
  return hide_passwords(sentence);
}

}  // namespace leasehold::storage
