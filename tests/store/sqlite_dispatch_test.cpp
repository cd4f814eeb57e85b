#include "src/store/sqlite_dispatch.hpp"

#include <sqlite3.h>

#include <filesystem>

#include "src/store/schema.hpp"
#include "src/store/sqlite_backup.hpp"
#include "src/store/sqlite_store.hpp"
#include "tests/store/dispatch_conformance.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using kind = actors::store_error::kind;

/// A connection of the test's own to the database of a store.
class own_connection {
 public:
  explicit own_connection(const fs::path& directory) {
    EXPECT_EQ(sqlite3_open((directory / storage::database_name).c_str(), &db_), SQLITE_OK);
    sqlite3_busy_timeout(db_, 5'000);
    // The last to close would copy the write-ahead log otherwise.
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  ~own_connection() { sqlite3_close(db_); }
  own_connection(const own_connection&) = delete;
  own_connection& operator=(const own_connection&) = delete;

  void run(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
  }
  std::int64_t number(const std::string& sql) {
    sqlite3_stmt* query = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &query, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
    EXPECT_EQ(sqlite3_step(query), SQLITE_ROW);
    const std::int64_t found = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return found;
  }

 private:
  sqlite3* db_ = nullptr;
};

std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// The store of a coordinator, asked by itself.
class coordinator_subject : public dispatch_subject {
 public:
  coordinator_subject() { open(); }
  actors::dispatch_store& opened() override { return store_->dispatches(); }
  std::shared_ptr<actors::dispatch_store> another() override {
    return expect(storage::open_sqlite_dispatches(
        {.directory = directory_.path(), .now = [time = time_](const actors::clock_anchor&) {
           return protocol::instant{time->load()};
         }}));
  }
  void reopen() override {
    store_.reset();
    open();
  }
  void apply(std::vector<protocol::dispatch_change> changes) override {
    actors::batch what;
    what.dispatches = std::move(changes);
    expect(commit(*store_, std::move(what)));
  }
  void put_event(const protocol::dispatch_event& event) override {
    own_connection(directory_.path())
        .run("INSERT INTO dispatch_event VALUES (" + quoted(event.key.tenant.value) + ", " +
             quoted(event.key.lease.value) + ", " + std::to_string(event.version) + ", " +
             std::to_string(event.at.ms) + ", " + quoted(std::string(protocol::word(event.kind))) +
             ", " + std::to_string(event.gen.value) + ", " + std::to_string(event.dispatch_count) +
             ", " + quoted(std::string(protocol::word(event.result))) + ")");
  }
  void remove_event(const protocol::dispatch_event& event) override {
    own_connection(directory_.path())
        .run("DELETE FROM dispatch_event WHERE lease = " + quoted(event.key.lease.value) +
             " AND version = " + std::to_string(event.version));
  }
  bool has_handle(const protocol::lease_key& key, protocol::generation gen) override {
    return own_connection(directory_.path())
               .number(
                   "SELECT count(*) FROM process_handle WHERE lease = " + quoted(key.lease.value) +
                   " AND generation = " + std::to_string(gen.value)) == 1;
  }

 protected:
  void open() {
    store_ =
        expect(storage::open_sqlite_store({.directory = directory_.path(), .now = [time = time_] {
                                             return protocol::instant{time->load()};
                                           }}));
  }

  temporary_directory directory_;
  std::unique_ptr<actors::store> store_;
};

/// A process beside it.
class process_subject final : public coordinator_subject {
 public:
  process_subject() { beside_ = another(); }
  actors::dispatch_store& opened() override { return *beside_; }
  void reopen() override {
    beside_.reset();
    coordinator_subject::reopen();
    beside_ = another();
  }

 private:
  std::shared_ptr<actors::dispatch_store> beside_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, DispatchConformance, ::testing::Values(make_dispatch_subject([] {
                           return std::make_unique<coordinator_subject>();
                         })));
INSTANTIATE_TEST_SUITE_P(SqliteProcess, DispatchConformance,
                         ::testing::Values(make_dispatch_subject([] {
                           return std::make_unique<process_subject>();
                         })));

// ---- What SQLite's alone must do

/// A store with one dispatch that is due, closed.
struct SqliteDispatch : ::testing::Test {
  SqliteDispatch() {
    const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
    auto what = batch_of({renew_row("a", 1)});
    protocol::dispatch_change change;
    change.key = job_key("a");
    change.gen.value = 1;
    change.at = what.anchor.coordinator_time;
    change.cancel_requested_at = change.at;
    change.cancel_deadline = change.at;
    what.dispatches.push_back(change);
    expect(commit(*store, std::move(what)));
  }
  [[nodiscard]] auto open_beside() const { return storage::open_sqlite_dispatches(options()); }
  [[nodiscard]] storage::sqlite_dispatch_options options() const {
    return {.directory = directory.path(),
            .now = [](const actors::clock_anchor& newest) { return newest.coordinator_time; },
            .lock_wait = std::chrono::milliseconds{50}};
  }
  static std::vector<actors::dispatch_claimed> claim_a(actors::dispatch_store& from) {
    using answers = std::vector<actors::dispatch_claimed>;
    const protocol::instant at{1'700'000'000'000};
    return value_of(said_of<answers>([&](auto hear) {
      from.claim({{job_key("a"),
                   {1},
                   at,
                   protocol::dispatch_stage::stream,
                   "",
                   "one",
                   std::string(32, '1')}},
                 {}, hear);
    }));
  }
  kind refusal() const {
    auto opened = open_beside();
    if (const auto* fault = std::get_if<actors::store_error>(&opened)) return fault->what;
    ADD_FAILURE() << "it was opened";
    return kind::busy;
  }

  temporary_directory directory;
};

TEST_F(SqliteDispatch, AProcessWorksWhileNoCoordinatorRunsAndLeavesTheLogToIt) {
  const fs::path wal = directory.path() / (std::string(storage::database_name) + "-wal");
  {
    const auto beside = expect(open_beside());
    EXPECT_EQ(claim_a(*beside).front().why, protocol::reason::none);
  }
  EXPECT_GT(fs::file_size(wal), 0U);
  const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
  EXPECT_EQ(claim_a(store->dispatches()).front().why, protocol::reason::claim_held);
}

TEST_F(SqliteDispatch, ADirectoryWithoutAStoreIsRefusedAndNothingIsMade) {
  const fs::path file = directory.path() / storage::database_name;
  fs::remove(file);
  EXPECT_EQ(refusal(), kind::foreign);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(SqliteDispatch, TheDatabaseOfAnotherProgramIsRefused) {
  own_connection(directory.path()).run("PRAGMA application_id = 7");
  EXPECT_EQ(refusal(), kind::foreign);
}

TEST_F(SqliteDispatch, AStoreOfAnotherVersionIsRefused) {
  for (const auto* version : {"1", "3"}) {
    own_connection(directory.path()).run(std::string("PRAGMA user_version = ") + version);
    EXPECT_EQ(refusal(), kind::foreign) << version;
  }
}

TEST_F(SqliteDispatch, ABackupThatWasNotServedIsRefused) {
  own_connection(directory.path())
      .run("INSERT OR REPLACE INTO meta (key, value) VALUES ('is_backup', 1)");
  EXPECT_EQ(refusal(), kind::foreign);
}

TEST_F(SqliteDispatch, InABackupAClaimIsWhatItWasAndExpires) {
  const auto kept = directory.path() / "kept";
  {
    const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
    EXPECT_EQ(claim_a(store->dispatches()).front().why, protocol::reason::none);
    EXPECT_TRUE(std::holds_alternative<storage::backup_report>(
        storage::backup_store({.from = directory.path(), .to = kept})));
  }
  std::atomic<std::int64_t> time{1'700'000'000'000};
  const auto store = expect(
      storage::open_sqlite_store({.directory = kept, .restored_backup = true, .now = [&time] {
                                    return protocol::instant{time.load()};
                                  }}));
  EXPECT_EQ(claim_a(store->dispatches()).front().why, protocol::reason::claim_held);
  time += protocol::dispatch_pace{}.claim.ms;
  EXPECT_EQ(claim_a(store->dispatches()).front().why, protocol::reason::none);
}

TEST_F(SqliteDispatch, ACallIsBusyWhileAnotherHasTheLockForTooLong) {
  const auto beside = expect(open_beside());
  own_connection other(directory.path());
  other.run("BEGIN IMMEDIATE");
  using answers = std::vector<actors::dispatch_reported>;
  const auto said = said_of<answers>([&](auto hear) { beside->report({{}}, {}, hear); });
  ASSERT_TRUE(std::holds_alternative<actors::store_error>(said));
  EXPECT_EQ(std::get<actors::store_error>(said).what, kind::busy);
  other.run("ROLLBACK");
  EXPECT_EQ(claim_a(*beside).front().why, protocol::reason::none);
}

TEST_F(SqliteDispatch, NothingIsWrittenPastTheBoundOfTheWriteAheadLog) {
  auto how = options();
  how.most_wal_bytes = 1;
  const auto beside = expect(storage::open_sqlite_dispatches(how));
  EXPECT_EQ(claim_a(*beside).front().why, protocol::reason::none);
  using answers = std::vector<actors::dispatch_reported>;
  const auto said = said_of<answers>([&](auto hear) { beside->report({{}}, {}, hear); });
  ASSERT_TRUE(std::holds_alternative<actors::store_error>(said));
  EXPECT_EQ(std::get<actors::store_error>(said).what, kind::full);
}

TEST_F(SqliteDispatch, ADamagedRecordDoesNotHideOthersAndIsStillClosed) {
  const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
  actors::batch what;
  protocol::dispatch_change change;
  for (const auto* job : {"b", "c"}) {
    change.key = job_key(job);
    change.gen.value = 1;
    what.dispatches.push_back(change);
  }
  expect(commit(*store, what));
  own_connection(directory.path())
      .run("UPDATE cancel_dispatch SET stage = 'sideways' WHERE lease = 'b'");
  EXPECT_EQ(claim_a(store->dispatches()).front().why, protocol::reason::none);
  const auto first = value_of(said_of<actors::dispatch_page>(
      [&](auto hear) { store->dispatches().page({.limit = 2}, hear); }));
  EXPECT_EQ(first.records.size(), 1U);
  ASSERT_TRUE(first.next);
  what.dispatches.clear();
  change.what = protocol::dispatch_change::kind::close;
  change.key = job_key("b");
  what.dispatches.push_back(change);
  expect(commit(*store, what));
  EXPECT_EQ(own_connection(directory.path())
                .number("SELECT count(*) FROM cancel_dispatch WHERE lease = 'b' AND "
                        "status = 'closed'"),
            1);
}

TEST_F(SqliteDispatch, AStoreOfTheFirstVersionGetsTheTablesAndKeepsItsRows) {
  {
    own_connection db(directory.path());
    db.run(
        "DROP TABLE cancel_dispatch; DROP TABLE dispatch_event; DROP TABLE process_handle;"
        "PRAGMA user_version = 1");
  }
  const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
  EXPECT_EQ(recover(*store).rows.size(), 1U);
  EXPECT_FALSE(value_of(said_of<std::optional<protocol::dispatch_record>>(
      [&](auto hear) { store->dispatches().find(job_key("a"), hear); })));
  EXPECT_EQ(own_connection(directory.path()).number("PRAGMA user_version"), 2);
  EXPECT_EQ(claim_a(*expect(open_beside())).front().why, protocol::reason::unknown_dispatch);
}

}  // namespace
}  // namespace leasehold::tests
