// Copying from and into a SQLite store.
#include <system_error>
#include <utility>

#include "src/store/copied_tables.hpp"
#include "src/store/directory_lock.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_reader.hpp"
#include "src/store/wal_check.hpp"

namespace leasehold::storage {
namespace {

using actors::store_error;

/// The write-ahead log is copied into the database once so much was put into it.
constexpr std::size_t most_wal_bytes = std::size_t{64} << 20;

std::string column_names(const copied_table& of) {
  std::string names;
  for (const auto& column : of.columns) {
    names += (names.empty() ? "" : ", ") + std::string(column.name);
  }
  return names;
}

actors::store_result<std::int64_t> number_of(connection& from, const std::string& sql) {
  statement query = from.prepare(sql);
  if (!query.prepared() || query.step() != SQLITE_ROW) return from.last_error("reading");
  return query.integer(0);
}

actors::store_result<std::int64_t> count_rows(connection& from, const copied_table& of) {
  return number_of(from, "SELECT count(*) FROM " + std::string(of.name));
}

/// A store of an older version has fewer tables.
actors::store_result<bool> has_table(connection& from, const copied_table& of) {
  auto found =
      number_of(from, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" +
                          std::string(of.name) + "'");
  if (auto* failed = std::get_if<store_error>(&found)) return *failed;
  return std::get<std::int64_t>(found) > 0;
}

class sqlite_table_source final : public table_source {
 public:
  sqlite_table_source(std::filesystem::path directory, connection db,
                      std::optional<directory_lock> lock)
      : directory_(std::move(directory)), db_(std::move(db)), lock_(std::move(lock)) {}

  std::string name() const override { return directory_.string(); }

  fault begin() override {
    view_.emplace(db_);
    if (auto failed = view_->begin_reading()) return failed;
    auto known = read_facts(db_);
    if (auto* failed = std::get_if<store_error>(&known)) return *failed;
    facts_ = std::get<store_facts>(known);
    auto end = read_head(db_, facts_);
    if (auto* failed = std::get_if<store_error>(&end)) return *failed;
    head_ = std::get<actors::log_head>(end);
    return std::nullopt;
  }
  const store_facts& facts() const override { return facts_; }
  const actors::log_head& head() const override { return head_; }

  actors::store_result<std::int64_t> count(const copied_table& of) override {
    auto there = has_table(db_, of);
    if (auto* failed = std::get_if<store_error>(&there)) return *failed;
    return std::get<bool>(there) ? count_rows(db_, of) : std::int64_t{0};
  }

  fault each_row(const copied_table& of, const std::function<fault(copied_row&&)>& out) override {
    auto there = has_table(db_, of);
    if (auto* failed = std::get_if<store_error>(&there)) return *failed;
    if (!std::get<bool>(there)) return std::nullopt;
    statement query = db_.prepare("SELECT " + column_names(of) + " FROM " + std::string(of.name) +
                                  " ORDER BY 1, 2");
    if (!query.prepared()) return db_.last_error("reading");
    int code = query.step();
    for (; code == SQLITE_ROW; code = query.step()) {
      copied_row row;
      row.reserve(of.columns.size());
      for (std::size_t i = 0; i < of.columns.size(); ++i) {
        const int at = static_cast<int>(i);
        if (of.columns[i].kind == cell_kind::integer) {
          row.emplace_back(query.integer(at));
        } else {
          row.emplace_back(std::string(query.bytes(at)));
        }
      }
      if (auto failed = out(std::move(row))) return failed;
    }
    if (code != SQLITE_DONE) return db_.error(code, "reading");
    return std::nullopt;
  }

  actors::store_result<bool> end() override {
    view_.reset();
    return !lock_.has_value();
  }

 private:
  std::filesystem::path directory_;
  connection db_;
  std::optional<directory_lock> lock_;  ///< while it is ours no coordinator can start
  std::optional<transaction> view_;
  store_facts facts_;
  actors::log_head head_;
};

class sqlite_target final : public table_target {
 public:
  explicit sqlite_target(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::string name() const override { return directory_.string(); }

  fault begin(std::int64_t shards, bool restart) override {
    if (auto failed = take_directory()) return failed;
    if (auto failed = clear_place(restart)) return failed;
    auto opened = open_database(file(), connection::access::read_write, shards);
    if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
    db_.emplace(std::move(std::get<connection>(opened)));
    const auto sql = "PRAGMA user_version = " + std::to_string(unfinished_version);
    return db_->execute(sql.c_str(), "marking");
  }

  fault put(const copied_table& into, std::span<const copied_row> rows) override {
    transaction whole(*db_);
    if (auto failed = whole.begin_writing()) return failed;
    std::string marks;
    for (std::size_t i = 0; i < into.columns.size(); ++i) marks += i == 0 ? "?" : ", ?";
    statement insert = db_->prepare("INSERT INTO " + std::string(into.name) + " (" +
                                    column_names(into) + ") VALUES (" + marks + ")");
    if (!insert.prepared()) return db_->last_error("writing to");
    for (const copied_row& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i)
        bind(insert, into.columns[i].kind, row[i], i + 1);
      if (const int code = insert.run(); code != SQLITE_DONE) return db_->error(code, "writing to");
      in_log_ += size_of(row);
    }
    if (auto failed = whole.commit()) return failed;
    return in_log_ < most_wal_bytes ? std::nullopt : empty_log();
  }

  fault put_facts(const store_facts& facts, bool is_backup) override {
    transaction whole(*db_);
    if (auto failed = whole.begin_writing()) return failed;
    statement put = db_->prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)");
    int code = put.bind_text(1, "store_id").bind_text(2, facts.store_id).run();
    if (code != SQLITE_DONE) return db_->error(code, "writing to");
    code = put.bind_text(1, "shards").bind(2, facts.shards).run();
    if (code != SQLITE_DONE) return db_->error(code, "writing to");
    if (auto failed = write_anchor_facts(*db_, facts)) return failed;
    if (auto failed = write_checkpoint_facts(*db_, facts)) return failed;
    if (auto failed = write_backup_mark(*db_, is_backup)) return failed;
    return whole.commit();
  }

  actors::store_result<std::int64_t> count(const copied_table& of) override {
    return count_rows(*db_, of);
  }

  actors::store_result<std::unique_ptr<store_source>> read_back() override {
    if (auto failed = empty_log()) return *failed;
    auto opened = connection::open(file(), connection::access::read_only);
    if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
    auto reader = std::make_unique<sqlite_reader>(std::move(std::get<connection>(opened)));
    return make_source(directory_.string(), std::move(reader), std::nullopt);
  }

  fault finish(const actors::log_head& head) override {
    const auto sql = "PRAGMA user_version = " + std::to_string(schema_version);
    if (auto failed = db_->execute(sql.c_str(), "finishing")) return failed;
    if (auto failed = empty_log()) return failed;
    db_.reset();
    if (head.last_row.value > 0) keep_head(directory_, head);
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::filesystem::path file() const { return directory_ / database_name; }

  fault take_directory() {
    std::error_code failed;
    if (!std::filesystem::exists(directory_, failed)) {
      std::filesystem::create_directories(directory_, failed);
      if (!failed) {
        std::filesystem::permissions(directory_, std::filesystem::perms::owner_all, failed);
      }
      if (failed) {
        return store_error{store_error::kind::io, "making the directory " + directory_.string() +
                                                      ": " + failed.message() +
                                                      "; name one that can be made"};
      }
    }
    auto taken = directory_lock::take(directory_);
    if (auto* refused = std::get_if<store_error>(&taken)) return *refused;
    lock_.emplace(std::move(std::get<directory_lock>(taken)));
    return std::nullopt;
  }

  /// A store that is there may have no row, or be a copy that is made anew.
  fault clear_place(bool restart) {
    std::error_code ignored;
    if (!std::filesystem::exists(file(), ignored)) return find_lost_database(file());
    if (auto failed = find_foreign(file())) return failed;
    auto opened = connection::open(file(), connection::access::read_only);
    if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
    auto version = number_of(std::get<connection>(opened), "PRAGMA user_version");
    if (auto* failed = std::get_if<store_error>(&version)) return *failed;
    if (std::get<std::int64_t>(version) == unfinished_version) {
      if (!restart) {
        return store_error{store_error::kind::foreign,
                           directory_.string() + " " + std::string(unfinished_copy)};
      }
      opened = store_error{};  // closed before it goes
      for (const char* suffix : {"", "-wal", "-shm"}) {
        std::filesystem::remove(file().string() + suffix, ignored);
      }
      return std::nullopt;
    }
    for (const copied_table& table : copied_tables()) {
      auto& db = std::get<connection>(opened);
      auto there = has_table(db, table);
      if (auto* failed = std::get_if<store_error>(&there)) return *failed;
      if (!std::get<bool>(there)) continue;
      auto rows = count_rows(db, table);
      if (auto* failed = std::get_if<store_error>(&rows)) return *failed;
      if (std::get<std::int64_t>(rows) == 0) continue;
      return store_error{
          store_error::kind::foreign,
          directory_.string() + " holds a store that is not empty; name another directory"};
    }
    return std::nullopt;
  }

  static void bind(statement& to, cell_kind kind, const copied_cell& cell, std::size_t at) {
    const int index = static_cast<int>(at);
    if (const auto* number = std::get_if<std::int64_t>(&cell)) {
      to.bind(index, *number);
    } else if (kind == cell_kind::bytes) {
      to.bind_blob(index, std::get<std::string>(cell));
    } else {
      to.bind_text(index, std::get<std::string>(cell));
    }
  }

  fault empty_log() {
    in_log_ = 0;
    const int code = sqlite3_wal_checkpoint_v2(db_->raw(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                               nullptr, nullptr);
    if (code != SQLITE_OK) return db_->error(code, "copying the write-ahead log of");
    return std::nullopt;
  }

  std::filesystem::path directory_;
  std::optional<directory_lock> lock_;
  std::optional<connection> db_;
  std::size_t in_log_ = 0;
};

}  // namespace

actors::store_result<std::unique_ptr<table_source>> open_sqlite_tables(
    const std::filesystem::path& directory) {
  const auto file = directory / database_name;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    if (auto failed = find_lost_database(file)) return *failed;
    return store_error{store_error::kind::foreign,
                       directory.string() + " holds no store: there is no " + file.string()};
  }
  if (auto failed = find_lost_log(file)) return *failed;
  std::optional<directory_lock> lock;
  auto taken = directory_lock::take(directory);
  if (auto* ours = std::get_if<directory_lock>(&taken)) lock.emplace(std::move(*ours));
  auto opened = open_database(file, connection::access::read_only, std::nullopt);
  if (auto* failed = std::get_if<store_error>(&opened)) return *failed;
  return std::make_unique<sqlite_table_source>(directory, std::move(std::get<connection>(opened)),
                                               std::move(lock));
}

std::unique_ptr<table_target> make_sqlite_target(const std::filesystem::path& directory) {
  return std::make_unique<sqlite_target>(directory);
}

}  // namespace leasehold::storage
