#include "src/store/sqlite_store.hpp"

#include <cstring>
#include <system_error>
#include <utility>

#include "src/store/directory_lock.hpp"
#include "src/store/kept_head.hpp"
#include "src/store/log_store.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_dispatch.hpp"
#include "src/store/sqlite_reader.hpp"
#include "src/store/sqlite_writer.hpp"
#include "src/store/wal_check.hpp"

namespace leasehold::storage {

namespace {

using actors::log_head;
using actors::store_error;
using protocol::row_number;

/// The writer's file was looked at when it was opened. To look again, past SQLite, would let go of
/// every lock that this process has on it, and whoever opens the file next could take its
/// write-ahead log away: so this is not open_database.
open_reader opens_readers_of(const std::filesystem::path& directory) {
  return [file = directory / database_name]() -> actors::store_result<std::unique_ptr<log_reader>> {
    auto opened = connection::open(file, connection::access::read_only);
    if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
    return std::make_unique<sqlite_reader>(std::move(std::get<connection>(opened)));
  };
}

/// Every reader of the pool was made by the function above.
connection& database_of(log_reader& from) { return static_cast<sqlite_reader&>(from).database(); }

/// The dispatch tables beside the log of the coordinator.
class coordinator_dispatches final : public sqlite_dispatch_store {
 public:
  coordinator_dispatches(std::function<protocol::instant()> now, reader_pool& readers,
                         sqlite_writer& writer)
      : now_(std::move(now)), readers_(readers), writer_(writer) {}

  /// No read runs or begins any more.
  void stop() { reads_.stop(); }

  actors::store_result<protocol::instant> now() override {
    using result = actors::store_result<protocol::instant>;
    if (now_) return now_();
    return readers_.with<result>([](log_reader& from) -> result {
      auto newest = read_newest_anchor(database_of(from));
      if (auto* fault = std::get_if<store_error>(&newest)) return *fault;
      return std::get<actors::clock_anchor>(newest).coordinator_time;
    });
  }

 protected:
  bool read(reading what) override {
    return reads_.submit([this, what = std::move(what)] {
      // A reader that cannot be opened is a fault, which is told once.
      const auto taken = readers_.with<actors::store_result<bool>>(
          [&what](log_reader& from) -> actors::store_result<bool> {
            what(&database_of(from));
            return true;
          });
      if (const auto* fault = std::get_if<store_error>(&taken)) what(*fault);
    });
  }
  bool write(dispatch_turn what) override { return writer_.dispatch(std::move(what)); }

 private:
  std::function<protocol::instant()> now_;
  reader_pool& readers_;
  sqlite_writer& writer_;
  read_pool reads_{1, most_dispatch_calls};  ///< ends before the readers, which it uses
};

/// Keeps the directory until everything that has its database open is gone.
class locked_directory {
 protected:
  explicit locked_directory(directory_lock lock) : lock_(std::move(lock)) {}

 private:
  directory_lock lock_;
};

class sqlite_store final : locked_directory, public log_store {
 public:
  sqlite_store(const sqlite_options& how, directory_lock lock, connection db, store_facts facts,
               log_head head)
      : locked_directory(std::move(lock)),
        log_store(opens_readers_of(how.directory), 4, facts, head, how.on_damage),
        dispatches_(how.now, readers(), writer_),
        writer_(std::move(db), std::move(facts), head, how.directory,
                static_cast<int>(how.wal_bytes / database_page_bytes)) {}
  ~sqlite_store() override {
    dispatches_.stop();  // a read's answer may ask for a write
    end_reads();
  }

  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    writer_.commit(std::move(what), std::move(done));
  }

  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    writer_.checkpoint(std::move(slice), std::move(done));
  }

  void cut(row_number upto, std::function<void(actors::store_result<row_number>)> done) override {
    writer_.cut(upto, std::move(done));
  }

  actors::store_result<log_head> head() override { return writer_.head(); }
  actors::dispatch_store& dispatches() override { return dispatches_; }

 private:
  coordinator_dispatches dispatches_;  ///< the writer's turns ask it for the time
  sqlite_writer writer_;
};

store_error lost_end(const std::filesystem::path& directory, const log_head& head,
                     const log_head& kept) {
  return {store_error::kind::corrupt,
          directory.string() + ": the log ends at row " + std::to_string(head.last_row.value) +
              " and does not extend what it was at row " + std::to_string(kept.last_row.value) +
              " (file " + std::string(kept_head_name) +
              "): a file of the store is missing or was put back. Put all files back as they were; "
              "or accept the loss with --restored-backup, which keeps every fencing token rising"};
}

/// The log must reach where it reached when its head was kept, and say the same there.
std::optional<store_error> find_lost_end(const std::filesystem::path& directory, connection& db,
                                         const store_facts& facts, const log_head& head) {
  const auto kept = read_kept_head(directory).head;
  if (!kept || kept->last_row < facts.anchor.last_row) return std::nullopt;
  bool extends = *kept == facts.anchor;
  statement query = db.prepare(
      "SELECT chain, last_row FROM batch WHERE first_row <= ? ORDER BY first_row DESC LIMIT 1");
  if (query.bind(1, kept->last_row.value).step() == SQLITE_ROW) {
    const std::string_view chain = query.bytes(0);
    extends = query.integer(1) == kept->last_row.value && chain.size() == kept->chain.size() &&
              std::memcmp(chain.data(), kept->chain.data(), chain.size()) == 0;
  }
  if (extends) return std::nullopt;
  return lost_end(directory, head, *kept);
}

/// What can be said before SQLite opens a file, which may change what is there.
std::optional<store_error> find_lost_files(const sqlite_options& how) {
  const auto file = how.directory / database_name;
  if (auto fault = find_lost_database(file)) return fault;
  if (how.restored_backup) return std::nullopt;
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(file, missing);
  const auto kept = read_kept_head(how.directory).head;
  if ((missing || bytes == 0) && kept && kept->last_row.value > 0) {
    return lost_end(how.directory, {}, *kept);
  }
  return find_lost_log(file);
}

/// The frames behind the damage would stay in the file, and be found again at the next start.
std::optional<store_error> accept_lost_log(connection& db) {
  const int code =
      sqlite3_wal_checkpoint_v2(db.raw(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code == SQLITE_OK) return std::nullopt;
  return db.error(code, "copying the write-ahead log of");
}

/// A backup has no kept head, and a new store none yet.
void say_what_is_unguarded(const sqlite_options& how, const store_facts& facts,
                           const log_head& head) {
  if (!how.on_unguarded || head.last_row.value == 0) return;
  const auto kept = read_kept_head(how.directory);
  if (kept.head || (kept.is_missing && (facts.is_backup || how.restored_backup))) return;
  how.on_unguarded(kept.why_none);
}

std::optional<store_error> refuse_backup(const sqlite_options& how, connection& db) {
  if (how.restored_backup) return std::nullopt;
  const auto facts = read_facts(db);
  if (const auto* fault = std::get_if<store_error>(&facts)) return *fault;
  if (!std::get<store_facts>(facts).is_backup) return std::nullopt;
  return store_error{store_error::kind::foreign,
                     how.directory.string() +
                         " holds a backup: what was granted after it is unknown. Start with "
                         "--restored-backup to serve it"};
}

std::optional<store_error> make_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  const bool made = std::filesystem::create_directories(directory, failed);
  if (!failed && made) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, failed);
  }
  if (!failed) return std::nullopt;
  return store_error{store_error::kind::io, "making " + directory.string() + ": " +
                                                failed.message() +
                                                "; name a data directory that can be written"};
}

}  // namespace

actors::store_result<std::unique_ptr<actors::store>> open_sqlite_store(const sqlite_options& how) {
  if (auto fault = make_directory(how.directory)) return *fault;
  auto locked = directory_lock::take(how.directory);
  if (auto* fault = std::get_if<store_error>(&locked)) return *fault;
  if (auto fault = find_lost_files(how)) return *fault;
  const auto file = how.directory / database_name;
  const bool lost_log = how.restored_backup && find_lost_log(file);
  auto opened = open_database(file, connection::access::read_write, how.shards,
                              [&how](connection& db) { return refuse_backup(how, db); });
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  auto& db = std::get<connection>(opened);
  if (lost_log) {
    if (auto fault = accept_lost_log(db)) return *fault;
  }
  db.wait_for_lock(how.lock_wait);
  auto facts = read_facts(db);
  if (auto* fault = std::get_if<store_error>(&facts)) return *fault;
  auto head = read_head(db, std::get<store_facts>(facts));
  if (auto* fault = std::get_if<store_error>(&head)) return *fault;
  if (!how.restored_backup) {
    if (auto fault = find_lost_end(how.directory, db, std::get<store_facts>(facts),
                                   std::get<log_head>(head))) {
      return *fault;
    }
  }
  if (auto fault = upgrade_tables(db)) return *fault;
  say_what_is_unguarded(how, std::get<store_facts>(facts), std::get<log_head>(head));
  return std::make_unique<sqlite_store>(how, std::move(std::get<directory_lock>(locked)),
                                        std::move(db), std::move(std::get<store_facts>(facts)),
                                        std::get<log_head>(head));
}

}  // namespace leasehold::storage
