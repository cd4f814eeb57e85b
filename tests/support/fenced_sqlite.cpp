#include "support/fenced_sqlite.hpp"

#include <utility>

namespace leasehold::tests {
namespace {

constexpr int longest_wait_ms = 20'000;
constexpr auto work_table =
    "CREATE TABLE IF NOT EXISTS work (number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " key TEXT NOT NULL, token INTEGER NOT NULL, text TEXT NOT NULL);";

void bind(sqlite3_stmt* to, int at, const std::string& text) {
  sqlite3_bind_text(to, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

std::string text_at(sqlite3_stmt* row, int column) {
  return reinterpret_cast<const char*>(sqlite3_column_text(row, column));
}

}  // namespace

std::unique_ptr<fenced_sqlite> fenced_sqlite::open(const std::filesystem::path& file) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open(file.c_str(), &raw);
  connection database(raw, &sqlite3_close);
  if (code != SQLITE_OK) return nullptr;
  std::unique_ptr<fenced_sqlite> out(new fenced_sqlite(std::move(database)));
  out->wait_for_others(longest_wait_ms);
  const bool is_ready = out->execute("PRAGMA synchronous = OFF; BEGIN IMMEDIATE;" +
                                     shipped_sql("sqlite-table.sql") + work_table + "COMMIT;");
  return is_ready ? std::move(out) : nullptr;
}

bool fenced_sqlite::execute(const std::string& statements) {
  return sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

fenced_sqlite::statement fenced_sqlite::prepare(const std::string& text) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(database_.get(), text.c_str(), -1, &raw, nullptr);
  return {raw, &sqlite3_finalize};
}

write_end fenced_sqlite::run_fence(const std::string& sql, const std::string& key,
                                   std::int64_t token) {
  const auto fence = prepare(sql);
  bind(fence.get(), 1, key);
  sqlite3_bind_int64(fence.get(), 2, token);
  int rows = 0;
  int code = sqlite3_step(fence.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(fence.get())) ++rows;
  if (code != SQLITE_DONE) return write_end::failed;
  return rows == 1 ? write_end::written : write_end::stale;
}

write_end fenced_sqlite::raise(const std::string& key, std::int64_t token) {
  return run_fence(shipped_sql("sqlite-fence.sql"), key, token);
}

write_end fenced_sqlite::raise_known(const std::string& key, std::int64_t token) {
  return run_fence(shipped_sql("sqlite-fence-known.sql"), key, token);
}

write_end fenced_sqlite::write(const std::string& key, std::int64_t token,
                               const std::string& text) {
  if (!execute("BEGIN IMMEDIATE")) return write_end::failed;
  write_end end = raise(key, token);
  if (end == write_end::written) {
    const auto row = prepare("INSERT INTO work (key, token, text) VALUES (?1, ?2, ?3)");
    bind(row.get(), 1, key);
    sqlite3_bind_int64(row.get(), 2, token);
    bind(row.get(), 3, text);
    if (sqlite3_step(row.get()) != SQLITE_DONE) end = write_end::failed;
  }
  if (end == write_end::written && execute("COMMIT")) return end;
  execute("ROLLBACK");
  return end == write_end::written ? write_end::failed : end;
}

std::vector<written_row> fenced_sqlite::rows(const std::string& key) {
  const auto wanted = prepare("SELECT token, text FROM work WHERE key = ?1 ORDER BY number");
  bind(wanted.get(), 1, key);
  std::vector<written_row> out;
  while (sqlite3_step(wanted.get()) == SQLITE_ROW) {
    out.push_back({sqlite3_column_int64(wanted.get(), 0), text_at(wanted.get(), 1)});
  }
  return out;
}

std::vector<std::pair<std::string, std::int64_t>> fenced_sqlite::all() {
  const auto wanted = prepare("SELECT key, token FROM work ORDER BY number");
  std::vector<std::pair<std::string, std::int64_t>> out;
  while (sqlite3_step(wanted.get()) == SQLITE_ROW) {
    out.emplace_back(text_at(wanted.get(), 0), sqlite3_column_int64(wanted.get(), 1));
  }
  return out;
}

}  // namespace leasehold::tests
