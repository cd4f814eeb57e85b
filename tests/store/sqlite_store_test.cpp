#include "src/store/sqlite_store.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/store/schema.hpp"
#include "support/running_copy.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/faulty_vfs.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

using kind = actors::store_error::kind;
namespace fs = std::filesystem;

std::unique_ptr<actors::store> open_store(const fs::path& directory) {
  return expect(storage::open_sqlite_store({directory, 64}));
}

actors::store_error refusal(const fs::path& directory) {
  auto opened = storage::open_sqlite_store({directory, 64});
  if (auto* fault = std::get_if<actors::store_error>(&opened)) return *fault;
  auto& store = *std::get<std::unique_ptr<actors::store>>(opened);
  auto recovered =
      store.recover([](const auto&) {}, [](auto&&) {}, [](auto, const auto&) {}, [](auto&&) {});
  if (auto* fault = std::get_if<actors::store_error>(&recovered)) return *fault;
  ADD_FAILURE() << "the store was not refused";
  return {};
}

/// Runs SQL on the database of a store that is not open.
void tamper(const fs::path& directory, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory / storage::database_name).c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
      << (message != nullptr ? message : "");
  sqlite3_free(message);
  sqlite3_close(db);
}

class sqlite_subject final : public store_subject {
 public:
  sqlite_subject() { store_ = open_store(directory_.path()); }
  actors::store& opened() override { return *store_; }
  void reopen() override {
    store_.reset();
    store_ = open_store(directory_.path());
  }
  bool fail_next_commit() override {
    faults_.fail({file_calls::write, SQLITE_IOERR_WRITE});
    return true;
  }

 private:
  faulty_vfs faults_;
  temporary_directory directory_;
  std::unique_ptr<actors::store> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance, ::testing::Values(make_subject([] {
                           return std::make_unique<sqlite_subject>();
                         })));

/// A store with three rows, a policy and a checkpoint of its first row, closed.
struct SqliteStore : ::testing::Test {
  SqliteStore() {
    auto store = open_store(directory.path());
    auto what = batch_of({renew_row("a", 1)});
    what.groups.push_back(protocol::encode_policy_row({}, {1'700'000'000'000}));
    what.rows = 2;
    what.policies.emplace_back(protocol::id_of(protocol::policy{}), protocol::policy{});
    expect(commit(*store, what));
    expect(checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {1}, true}));
    expect(commit(*store, batch_of({renew_row("a", 3, 1)})));
  }
  [[nodiscard]] fs::path file() const { return directory.path() / storage::database_name; }

  temporary_directory directory;
};

/// Whether another process sees that the database is in use: it must not take its log away then.
bool is_in_use(const fs::path& directory) {
  const auto file = directory / storage::database_name;
  const pid_t child = ::fork();
  if (child == 0) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    constexpr off_t shared_range = 0x40000002;  // where SQLite's connections have their locks
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    wanted.l_start = shared_range;
    wanted.l_len = 510;
    const bool asked = ::fcntl(descriptor, F_GETLK, &wanted) == 0;
    ::_exit(asked && wanted.l_type != F_UNLCK ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(SqliteStore, IsInUseForOtherProcessesAfterItsReadersHaveOpenedIt) {
  const auto store = open_store(directory.path());
  EXPECT_TRUE(is_in_use(directory.path()));
  EXPECT_EQ(expect(store->rows_from({1}, 10)).size(), 3U);
  EXPECT_TRUE(is_in_use(directory.path()));
}

TEST_F(SqliteStore, ASecondCoordinatorIsToldThatTheStoreIsTaken) {
  const auto first = open_store(directory.path());
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::taken);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr(std::to_string(::getpid())));
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr(directory.path().string()));
}

TEST_F(SqliteStore, TheStoreStaysTakenWhenTheLockFileIsRemoved) {
  const auto first = open_store(directory.path());
  fs::remove(directory.path() / "lock");
  EXPECT_EQ(refusal(directory.path()).what, kind::taken);
}

TEST_F(SqliteStore, TheLockGoesWithItsOwner) {
  open_store(directory.path()).reset();
  EXPECT_EQ(recover(*open_store(directory.path())).rows.size(), 3U);
}

TEST_F(SqliteStore, AClosedStoreIsOneFileThatNeedsNoOther) {
  const fs::path wal = file().string() + "-wal";
  EXPECT_TRUE(!fs::exists(wal) || fs::file_size(wal) == 0);
  fs::remove(file().string() + "-wal");
  EXPECT_EQ(recover(*open_store(directory.path())).rows.size(), 3U);
}

/// The files as a killed process leaves them: what is not yet in the main file is in its log.
struct KilledStore : SqliteStore {
  KilledStore() {
    const auto store = open_store(directory.path());
    recover(*store);
    for (std::int64_t i = 0; i < 20; ++i) {
      expect(commit(*store, batch_of({renew_row("b", i + 1)})));
    }
    expect(checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {2}, true, {}}));
    tests::copy_of_running(directory.path(), killed.path());
  }
  temporary_directory killed;
};

TEST_F(KilledStore, IsOpenedAsItWas) {
  EXPECT_EQ(recover(*open_store(killed.path())).head.head.last_row.value, 23);
}

TEST_F(KilledStore, WithoutItsWriteAheadLogIsRefused) {
  fs::remove((killed.path() / storage::database_name).string() + "-wal");
  const auto fault = refusal(killed.path());
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("does not extend"));
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("--restored-backup"));
  EXPECT_TRUE(std::holds_alternative<std::unique_ptr<actors::store>>(
      storage::open_sqlite_store({.directory = killed.path(), .restored_backup = true})));
}

TEST(YoungStore, WhosePagesAreInItsWriteAheadLogAloneIsOpenedAsItWas) {
  const temporary_directory young;
  {
    const temporary_directory running;
    const auto store = open_store(running.path());
    recover(*store);
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((running.path() / storage::database_name).c_str(), &other), SQLITE_OK);
    // A row in every page, so that the log has each of them.
    ASSERT_EQ(sqlite3_exec(other, "PRAGMA page_size; VACUUM", nullptr, nullptr, nullptr),
              SQLITE_OK);
    tests::copy_of_running(running.path(), young.path());
    sqlite3_close(other);
  }
  // The file itself has its size, and nothing of what was written.
  const auto file = young.path() / storage::database_name;
  const auto size = fs::file_size(file);
  fs::resize_file(file, 0);
  fs::resize_file(file, size);
  EXPECT_EQ(recover(*open_store(young.path())).head.head.last_row.value, 0);
}

TEST_F(SqliteStore, AFileOfZerosIsRefused) {
  const auto size = fs::file_size(file());
  fs::resize_file(file(), 0);
  fs::resize_file(file(), size);
  EXPECT_EQ(refusal(directory.path()).what, kind::foreign);
}

TEST_F(KilledStore, WithAnEmptyDatabaseIsRefused) {
  fs::remove((killed.path() / storage::database_name).string() + "-wal");
  fs::resize_file(killed.path() / storage::database_name, 0);
  EXPECT_EQ(refusal(killed.path()).what, kind::corrupt);
}

TEST_F(KilledStore, WithoutItsDatabaseIsRefused) {
  for (const char* end : {"", "-wal", "-shm"}) {
    fs::remove((killed.path() / storage::database_name).string() + end);
  }
  EXPECT_EQ(refusal(killed.path()).what, kind::corrupt);
}

TEST_F(KilledStore, WithADatabaseOfAnotherTimeIsRefused) {
  temporary_directory other;
  { const auto store = open_store(other.path()); }
  fs::copy_file(other.path() / storage::database_name, killed.path() / storage::database_name,
                fs::copy_options::overwrite_existing);
  fs::remove((killed.path() / storage::database_name).string() + "-wal");
  EXPECT_EQ(refusal(killed.path()).what, kind::corrupt);
}

TEST_F(SqliteStore, TheNewestBatchIsCheckedAlsoWhenTheCheckpointHasIt) {
  {
    const auto store = open_store(directory.path());
    recover(*store);
    expect(checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {3}, true, {}}));
  }
  tamper(directory.path(),
         "UPDATE batch SET coordinator_ms = coordinator_ms + 100000000000 WHERE last_row = 3");
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("row 3"));
}

TEST_F(SqliteStore, DamageBehindTheCheckpointIsNamedAfterTheStart) {
  {
    const auto store = open_store(directory.path());
    recover(*store);
    for (std::int64_t i = 0; i < 50; ++i) {
      expect(commit(*store, batch_of({renew_row("b", i + 1)})));
    }
    expect(checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {53}, true, {}}));
  }
  tamper(directory.path(), "UPDATE batch SET body = zeroblob(length(body)) WHERE last_row = 20");
  std::promise<std::string> said;
  const auto store = expect(storage::open_sqlite_store(
      {.directory = directory.path(),
       .on_damage = [&said](const std::string& sentence) { said.set_value(sentence); }}));
  recover(*store);
  auto sentence = said.get_future();
  ASSERT_EQ(sentence.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_THAT(sentence.get(), ::testing::HasSubstr("row 20"));
}

TEST_F(SqliteStore, NobodyElseMayReadTheDatabase) {
  EXPECT_EQ(fs::status(file()).permissions() & fs::perms::all,
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SqliteStore, AFileThatIsNoDatabaseIsRefusedAndLeftAlone) {
  std::ofstream(file(), std::ios::trunc) << "a shopping list, and quite a long one";
  const auto before = fs::file_size(file());
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::foreign);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr(file().string()));
  EXPECT_EQ(fs::file_size(file()), before);
}

TEST_F(SqliteStore, TheDatabaseOfAnotherProgramIsRefused) {
  fs::remove(file());
  tamper(directory.path(), "CREATE TABLE songs (title TEXT)");
  EXPECT_EQ(refusal(directory.path()).what, kind::foreign);
}

TEST_F(SqliteStore, ANewerSchemaIsRefusedByItsNumber) {
  tamper(directory.path(), "PRAGMA user_version = 3");
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::foreign);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("schema 3"));
}

TEST_F(SqliteStore, ATruncatedFileIsRefused) {
  fs::resize_file(file(), fs::file_size(file()) / 2);
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("backup"));
}

TEST_F(SqliteStore, AFlippedBitInARowIsRefusedByTheRowsNumber) {
  tamper(directory.path(),
         "UPDATE batch SET body = CAST(substr(body, 1, 40) || x'00' || substr(body, 42) AS BLOB) "
         "WHERE first_row = 3");
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("row 3"));
}

TEST_F(SqliteStore, AMissingBatchIsRefusedByItsFirstRow) {
  {
    const auto store = open_store(directory.path());
    expect(commit(*store, batch_of({renew_row("a", 4, 3)})));
  }
  tamper(directory.path(), "DELETE FROM batch WHERE first_row = 3");
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("row 3"));
}

TEST_F(SqliteStore, ALogThatEndsBeforeItsCheckpointIsRefused) {
  tamper(directory.path(), "DELETE FROM batch");
  EXPECT_EQ(refusal(directory.path()).what, kind::corrupt);
}

TEST_F(SqliteStore, AChangedRecordIsRefusedByItsLease) {
  tamper(directory.path(), "UPDATE record SET image = CAST(image || x'00' AS BLOB)");
  const auto fault = refusal(directory.path());
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("lease 'a'"));
}

TEST_F(SqliteStore, AMissingRecordIsRefused) {
  tamper(directory.path(), "DELETE FROM record");
  EXPECT_EQ(refusal(directory.path()).what, kind::corrupt);
}

TEST_F(SqliteStore, AChangedPolicyIsRefused) {
  tamper(directory.path(), "UPDATE policy SET text = replace(text, '30000', '30001')");
  EXPECT_EQ(refusal(directory.path()).what, kind::corrupt);
}

TEST_F(SqliteStore, DamagedFactsAreRefused) {
  tamper(directory.path(), "DELETE FROM meta WHERE key = 'anchor_chain'");
  EXPECT_EQ(refusal(directory.path()).what, kind::corrupt);
}

TEST_F(SqliteStore, ADirectoryThatCannotBeMadeIsNamed) {
  const auto fault = refusal(file() / "below");
  EXPECT_EQ(fault.what, kind::io);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("below"));
}

TEST_F(SqliteStore, WhatWasAcknowledgedSurvivesAKill) {
  int answers[2];
  ASSERT_EQ(::pipe(answers), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = open_store(directory.path());
    for (std::int64_t i = 4;; ++i) {
      const auto done = commit(*store, batch_of({renew_row("a", i, i - 1)}));
      const auto row = std::get<actors::committed>(done).first_row.value;
      if (::write(answers[1], &row, sizeof row) != sizeof row) ::_exit(1);
    }
  }
  std::int64_t row = 0;
  while (row < 50) ASSERT_EQ(::read(answers[0], &row, sizeof row), ssize_t{sizeof row});
  ::kill(child, SIGKILL);
  ::close(answers[1]);
  for (std::int64_t later = 0; ::read(answers[0], &later, sizeof later) > 0;) row = later;
  ::close(answers[0]);
  ::waitpid(child, nullptr, 0);
  const auto found = recover(*open_store(directory.path()));
  EXPECT_GE(found.head.head.last_row.value, row);
  EXPECT_LE(found.head.head.last_row.value, row + 1);
}

/// Faults of the file system under an open store.
struct SqliteFaults : ::testing::Test {
  faulty_vfs faults;
  temporary_directory directory;
  std::unique_ptr<actors::store> store = open_store(directory.path());

  kind failure() {
    const auto result = commit(*store, batch_of({renew_row("a", 9)}));
    if (const auto* fault = std::get_if<actors::store_error>(&result)) return fault->what;
    ADD_FAILURE() << "the commit did not fail";
    return {};
  }
};

TEST_F(SqliteFaults, AFullDiskIsToldApartAndPasses) {
  expect(commit(*store, batch_of({renew_row("a", 1)})));
  faults.fail({file_calls::write, SQLITE_FULL});
  EXPECT_EQ(failure(), kind::full);
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 2)}))).first_row.value, 2);
}

TEST_F(SqliteFaults, AWriteErrorIsToldApartAndPasses) {
  expect(commit(*store, batch_of({renew_row("a", 1)})));
  faults.fail({file_calls::write, SQLITE_IOERR_WRITE});
  EXPECT_EQ(failure(), kind::io);
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 2)}))).first_row.value, 2);
}

TEST_F(SqliteFaults, AfterAFailedFsyncNothingIsWrittenAnyMore) {
  expect(commit(*store, batch_of({renew_row("a", 1)})));
  faults.fail({file_calls::sync, SQLITE_IOERR_FSYNC});
  EXPECT_EQ(failure(), kind::fatal);
  EXPECT_EQ(failure(), kind::fatal) << "the disk works again, but what it holds is not known";
  const auto slice = checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {1}, true});
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(slice));
}

TEST_F(SqliteFaults, AnotherWriterIsWaitedForAndThenBusy) {
  store.reset();
  store = expect(storage::open_sqlite_store(
      {.directory = directory.path(), .lock_wait = std::chrono::milliseconds(50)}));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((directory.path() / storage::database_name).c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(failure(), kind::busy);
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  expect(commit(*store, batch_of({renew_row("a", 1)})));
}

TEST_F(SqliteFaults, TheWriteAheadLogIsKeptShortUnderSteadyCommits) {
  auto big = renew_row("a", 1);
  big.attachment.assign(std::size_t{900} * 1024, 'x');
  for (int i = 0; i < 200; ++i) expect(commit(*store, batch_of({big})));
  const auto wal = fs::file_size((directory.path() / storage::database_name).string() + "-wal");
  EXPECT_LT(wal, std::uintmax_t{80} * 1024 * 1024) << "180 MiB were written";
}

TEST_F(SqliteFaults, CommitsAndReadersRunBesideEachOther) {
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    while (!ended) {
      const auto head = expect(store->head());
      const auto rows = expect(store->rows_from({1}, 10'000));
      EXPECT_GE(static_cast<std::int64_t>(rows.size()), head.last_row.value);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].row.value, static_cast<std::int64_t>(i) + 1);
      }
    }
  });
  for (std::int64_t i = 1; i <= 300; ++i) expect(commit(*store, batch_of({renew_row("a", i)})));
  ended = true;
  reader.join();
}

}  // namespace
}  // namespace leasehold::tests
