// Where the log ended not long ago: it is kept while the store runs, compared at a start and by
// verify, and whoever misses it is told.
#include "src/store/kept_head.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "src/store/schema.hpp"
#include "src/store/sqlite_backup.hpp"
#include "src/store/sqlite_store.hpp"
#include "src/store/verify.hpp"
#include "support/eventually.hpp"
#include "support/running_copy.hpp"
#include "tests/store/history.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using kind = actors::store_error::kind;
using ::testing::HasSubstr;

void run_sql(const fs::path& directory, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory / storage::database_name).c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

/// A store with rows that follow from each other, closed.
struct KeptHead : ::testing::Test {
  KeptHead() {
    memory_store draft;
    history past(draft, 5);
    past.submit("a");
    past.work("steady");
    auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
    for (const auto& r : draft.all_rows()) {
      actors::batch what = batch_of({});
      what.groups.push_back(protocol::encode_row(r));
      what.rows = 1;
      if (r.input.kind == protocol::event_kind::policy) {
        what.policies.emplace_back(r.policy, *protocol::policy_from_text(r.attachment));
      }
      expect(commit(*store, what));
    }
    head = expect(store->head());
  }

  [[nodiscard]] fs::path file() const { return directory.path() / storage::kept_head_name; }
  storage::verify_report verify() {
    return expect(storage::verify_directory(directory.path(), {}));
  }
  /// What a start says about the guard; empty: nothing.
  std::string said_at_a_start() {
    std::string said;
    expect(storage::open_sqlite_store(
        {.directory = directory.path(),
         .on_unguarded = [&said](const std::string& why) { said += why; }}));
    return said;
  }

  temporary_directory directory;
  actors::log_head head;
};

TEST_F(KeptHead, FollowsTheLogWhileTheStoreRunsAndIsTakenByRecords) {
  fs::remove(file());
  const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
  recover(*store);
  const auto reaches = [&](const actors::log_head& wanted) {
    return eventually([&] { return storage::read_kept_head(directory.path()).head == wanted; });
  };
  expect(commit(*store, batch_of({renew_row("x", 1)})));
  EXPECT_TRUE(reaches(expect(store->head()))) << "of the first commit";
  for (int i = 2; i < 5; ++i) {
    expect(commit(*store, batch_of({renew_row("x", i)})));
    expect(checkpoint(*store, {{}, {}, head.last_row, true, {}}));
    EXPECT_TRUE(reaches(expect(store->head())));
  }
}

TEST_F(KeptHead, AWriteAheadLogThatWasCutIsRefused) {
  const temporary_directory killed;
  {
    const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
    recover(*store);
    for (int i = 1; i < 20; ++i) expect(commit(*store, batch_of({renew_row("x", i)})));
    expect(checkpoint(*store, {{}, {}, head.last_row, true, {}}));
    const auto end = expect(store->head());
    EXPECT_TRUE(eventually([&] { return storage::read_kept_head(directory.path()).head == end; }));
    tests::copy_of_running(directory.path(), killed.path());
  }
  const fs::path wal = (killed.path() / storage::database_name).string() + "-wal";
  fs::resize_file(wal, fs::file_size(wal) / 2);
  const auto opened = storage::open_sqlite_store({.directory = killed.path()});
  const auto* fault = std::get_if<actors::store_error>(&opened);
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->what, kind::corrupt);
  EXPECT_THAT(fault->sentence, HasSubstr("does not extend what it was"));
  const auto report = expect(storage::verify_directory(killed.path(), {}));
  ASSERT_FALSE(report.proven());
}

TEST_F(KeptHead, ThatTheLogDoesNotReachIsAProblem) {
  ASSERT_TRUE(verify().proven());
  run_sql(directory.path(), "DELETE FROM batch WHERE last_row = (SELECT max(last_row) FROM batch)");
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_EQ(report.problems.front().row, head.last_row);
  EXPECT_THAT(report.problems.front().sentence, HasSubstr("the directory's file head"));
}

TEST_F(KeptHead, WithAnotherHashIsAProblem) {
  auto other = head;
  other.chain[7] ^= std::byte{1};
  ASSERT_TRUE(storage::keep_head(directory.path(), other));
  const auto report = verify();
  ASSERT_FALSE(report.proven());
  EXPECT_THAT(report.problems.front().sentence, HasSubstr("hash up to this row"));
}

TEST_F(KeptHead, OfAnEarlierTimeIsExtended) {
  run_sql(directory.path(), "SELECT 1");
  const auto early = storage::read_kept_head(directory.path()).head;
  {
    const auto store = expect(storage::open_sqlite_store({.directory = directory.path()}));
    recover(*store);
    expect(commit(*store, batch_of({renew_row("x", 1)})));
  }
  ASSERT_TRUE(storage::keep_head(directory.path(), *early));
  EXPECT_EQ(said_at_a_start(), "");
}

TEST_F(KeptHead, ThatCannotBeUsedIsToldAtAStartAndByVerifyAndRefusesNothing) {
  EXPECT_EQ(said_at_a_start(), "");
  EXPECT_TRUE(verify().remarks.empty());
  const auto told = [this](const std::string& what) {
    EXPECT_THAT(said_at_a_start(), HasSubstr(what));
    const auto report = verify();
    EXPECT_TRUE(report.proven());
    ASSERT_EQ(report.remarks.size(), 1U);
    EXPECT_THAT(report.remarks.front(), HasSubstr(what));
    EXPECT_THAT(report.remarks.front(), HasSubstr(file().string()));
  };
  std::ofstream(file(), std::ios::trunc) << "a shopping list\n";
  told("does not say where the log ended");
  std::ofstream(file(), std::ios::trunc).flush();
  told("does not say where the log ended");
  fs::remove(file());
  told("is missing");
  fs::create_directory(file());
  told("is no file that can be read");
  fs::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  told("is no file that can be read");
}

TEST_F(KeptHead, IsNotMissedWhereThereIsNoneYet) {
  const temporary_directory young;
  std::string said;
  expect(storage::open_sqlite_store(
      {.directory = young.path(),
       .on_unguarded = [&said](const std::string& why) { said += why; }}));
  EXPECT_EQ(said, "");
  const temporary_directory parent;
  const auto copy = parent.path() / "copy";
  expect(storage::backup_store({.from = directory.path(), .to = copy}));
  EXPECT_TRUE(expect(storage::verify_directory(copy, {})).remarks.empty());
}

struct Backup : KeptHead {
  actors::store_error damage_of_copy() {
    const auto done = storage::backup_store({.from = directory.path(), .to = to()});
    const auto* fault = std::get_if<actors::store_error>(&done);
    if (fault == nullptr) {
      ADD_FAILURE() << "the backup was not refused";
      return {};
    }
    EXPECT_EQ(fault->what, kind::corrupt);
    EXPECT_THAT(fault->sentence, HasSubstr("leasehold.db.damaged"));
    EXPECT_TRUE(fs::exists(to() / storage::damaged_copy_name));
    EXPECT_FALSE(fs::exists(to() / storage::database_name));
    return *fault;
  }
  [[nodiscard]] fs::path to() const { return parent_.path() / "copy"; }

 private:
  temporary_directory parent_;
};

TEST_F(Backup, OfASoundStoreIsCheckedAndSaysHowFarItIs) {
  std::int64_t checked = 0;
  expect(storage::backup_store(
      {.from = directory.path(), .to = to(), .checking = [&](std::int64_t done, std::int64_t all) {
         checked = done;
         EXPECT_EQ(all, head.last_row.value);
       }}));
  EXPECT_EQ(checked, head.last_row.value);
  EXPECT_TRUE(fs::exists(to() / storage::database_name));
}

TEST_F(Backup, OfAStoreWithADamagedRowSaysWhichAndKeepsTheCopyUnderAnotherName) {
  run_sql(directory.path(), "UPDATE batch SET body = zeroblob(length(body)) WHERE first_row = 3");
  EXPECT_THAT(damage_of_copy().sentence, HasSubstr("row 3"));
}

TEST_F(Backup, OfAStoreWithAMissingRowSaysWhich) {
  run_sql(directory.path(), "DELETE FROM batch WHERE first_row = 3");
  EXPECT_THAT(damage_of_copy().sentence, HasSubstr("row 3: the row is not in the log"));
}

TEST_F(Backup, OfAStoreWithADamagedPageSaysSo) {
  // Records on more than one page; one of them is lost.
  run_sql(directory.path(),
          "INSERT INTO record SELECT 't', value, 1, 0, zeroblob(3000) FROM "
          "(WITH RECURSIVE n(value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM n "
          "WHERE value < 1100) SELECT value FROM n)");
  const auto file = directory.path() / storage::database_name;
  const auto size = static_cast<std::int64_t>(fs::file_size(file));
  std::fstream in(file, std::ios::binary | std::ios::in | std::ios::out);
  in.seekp(size - storage::database_page_bytes);
  in << std::string(64, '\xff');
  in.close();
  damage_of_copy();
}

}  // namespace
}  // namespace leasehold::tests
