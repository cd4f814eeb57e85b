// What a store does about a write-ahead log or a database that is not what it was: it refuses it by
// name and touches nothing, and it never refuses what a crash may leave.
#include "src/store/wal_check.hpp"

#include <sqlite3.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "src/store/kept_head.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_backup.hpp"
#include "src/store/sqlite_store.hpp"
#include "src/store/verify.hpp"
#include "support/running_copy.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using kind = actors::store_error::kind;
using ::testing::HasSubstr;

constexpr std::int64_t log_header = 32;
constexpr std::int64_t frame_bytes = 24 + storage::database_page_bytes;

/// What is in a directory, besides the lock and the index of the log, which is made anew.
std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> all;
  for (const auto& each : fs::directory_iterator(directory)) {
    const auto name = each.path().filename().string();
    if (name == "lock" || name.ends_with("-shm") || !each.is_regular_file()) continue;
    std::ostringstream content;
    content << std::ifstream(each.path(), std::ios::binary).rdbuf();
    all[name] = content.str();
  }
  return all;
}

void turn_bit(const fs::path& file, std::int64_t at, int bit = 3) {
  std::fstream in(file, std::ios::binary | std::ios::in | std::ios::out);
  in.seekg(at);
  const auto byte = static_cast<char>(in.get() ^ (1 << bit));
  in.seekp(at);
  in.put(byte);
}

void put_zeros(const fs::path& file, std::int64_t at, std::int64_t bytes) {
  std::fstream in(file, std::ios::binary | std::ios::in | std::ios::out);
  in.seekp(at);
  in << std::string(static_cast<std::size_t>(bytes), '\0');
}

/// Opens it and reads it, as a start does.
actors::store_result<actors::recovered_head> start(const fs::path& directory,
                                                   bool restored = false) {
  auto opened = storage::open_sqlite_store({.directory = directory, .restored_backup = restored});
  if (auto* fault = std::get_if<actors::store_error>(&opened)) return *fault;
  auto& store = *std::get<std::unique_ptr<actors::store>>(opened);
  auto done =
      store.recover([](const auto&) {}, [](auto&&) {}, [](auto, const auto&) {}, [](auto&&) {});
  if (auto* fault = std::get_if<actors::store_error>(&done)) return *fault;
  return std::get<actors::recovered_head>(done);
}

/// The files as a killed process leaves them, with a log of many commits.
struct LeftWal : ::testing::Test {
  LeftWal() {
    running_ = std::make_unique<temporary_directory>();
    store_ = expect(storage::open_sqlite_store({.directory = running_->path()}));
    recover(*store_);
  }

  void commit_some(int count) {
    for (int i = 0; i < count; ++i) {
      auto row = renew_row("a", ++sequence_);
      // Some of them take several frames.
      if (i % 3 == 1) row.attachment.assign(std::size_t{40} * 1024, 'x');
      expect(commit(*store_, batch_of({row})));
    }
  }
  /// Transactions that are not synced: a slice of the checkpoint that another one follows.
  void write_slice(int records) {
    actors::checkpoint_slice slice;
    for (int i = 0; i < records; ++i) {
      const auto name = std::to_string(10'000 + i);
      slice.changed.push_back({key_of(name), image_of(name, 1)});
    }
    slice.upto = {1};
    expect(checkpoint(*store_, std::move(slice)));
  }
  /// The process ends here.
  void kill() {
    tests::copy_of_running(running_->path(), left.path());
    store_.reset();
    running_.reset();
  }

  /// Another directory with the same files.
  void copy_to(const temporary_directory& other) const {
    fs::copy(left.path(), other.path(), fs::copy_options::recursive);
  }
  static fs::path database(const fs::path& directory) { return directory / storage::database_name; }
  static fs::path wal(const fs::path& directory) { return database(directory).string() + "-wal"; }
  [[nodiscard]] std::int64_t frames() const {
    return (static_cast<std::int64_t>(fs::file_size(wal(left.path()))) - log_header) / frame_bytes;
  }

  /// Everybody who reads the directory refuses it, and leaves it as it is.
  static void expect_refused(const fs::path& directory, kind what, const std::string& name) {
    const auto before = files_of(directory);
    const auto refused = [&](const auto& result) {
      const auto* fault = std::get_if<actors::store_error>(&result);
      ASSERT_NE(fault, nullptr) << name << " was not refused";
      EXPECT_EQ(fault->what, what) << fault->sentence;
      EXPECT_THAT(fault->sentence, HasSubstr(name));
      EXPECT_EQ(files_of(directory), before) << fault->sentence;
    };
    refused(start(directory));
    refused(storage::verify_directory(directory, {}));
    refused(storage::head_of_directory(directory));
    const temporary_directory parent;
    refused(storage::backup_store({.from = directory, .to = parent.path() / "copy"}));
    EXPECT_FALSE(fs::exists(parent.path() / "copy" / storage::database_name));
  }

  temporary_directory left;

 private:
  std::unique_ptr<temporary_directory> running_;
  std::unique_ptr<actors::store> store_;
  std::int64_t sequence_ = 0;
};

TEST_F(LeftWal, WithAnyBitTurnedIsRefusedUnlessOnlyItsLastCommitsAreBehindIt) {
  commit_some(24);
  kill();
  const auto all = frames();
  ASSERT_GT(all, 30);
  const auto rows = std::get<actors::recovered_head>(start(left.path())).head.last_row.value;
  ASSERT_EQ(rows, 24);
  for (std::int64_t frame = 0; frame < all; ++frame) {
    for (const std::int64_t at : {0, 9, 17, 8000}) {
      const temporary_directory one;
      copy_to(one);
      turn_bit(wal(one.path()), log_header + frame * frame_bytes + at);
      const auto before = files_of(one.path());
      const auto began = start(one.path());
      if (const auto* fault = std::get_if<actors::store_error>(&began)) {
        EXPECT_EQ(fault->what, kind::corrupt);
        EXPECT_THAT(fault->sentence, HasSubstr("leasehold.db-wal is damaged at frame " +
                                               std::to_string(frame + 1) + " "));
        EXPECT_EQ(files_of(one.path()), before);
        continue;
      }
      // The newest commits cannot be told from one that a crash cut off: the kept head can.
      EXPECT_GE(std::get<actors::recovered_head>(began).head.last_row.value, rows - 3) << frame;
    }
  }
}

TEST_F(LeftWal, WithAnyBitOfItsHeaderTurnedIsRefused) {
  commit_some(6);
  kill();
  for (std::int64_t at = 0; at < log_header; ++at) {
    const temporary_directory one;
    copy_to(one);
    turn_bit(wal(one.path()), at, static_cast<int>(at % 8));
    expect_refused(one.path(), kind::corrupt, "leasehold.db-wal is damaged at its header");
  }
}

TEST_F(LeftWal, ThatIsDamagedIsRefusedByEverybodyAndNothingIsChanged) {
  commit_some(12);
  write_slice(2000);
  commit_some(4);
  kill();
  turn_bit(wal(left.path()), log_header + 3 * frame_bytes + 4000);
  expect_refused(left.path(), kind::corrupt, "leasehold.db-wal is damaged at frame 4 of");
}

TEST_F(LeftWal, ThatIsDamagedIsServedOnceTheLossIsAcceptedAndIsThenWhole) {
  commit_some(12);
  kill();
  turn_bit(wal(left.path()), log_header + 3 * frame_bytes + 4000);
  const auto accepted = start(left.path(), true);
  ASSERT_TRUE(std::holds_alternative<actors::recovered_head>(accepted));
  const auto rows = std::get<actors::recovered_head>(accepted).head.last_row;
  EXPECT_LT(rows.value, 12);
  EXPECT_EQ(expect(start(left.path())).head.last_row, rows);
}

TEST_F(LeftWal, OfSlicesThatWereNotSyncedIsNoDamageInAnyPieces) {
  commit_some(5);
  const auto rows = 5;
  // Several transactions one behind the other, of which a crash may keep any frame.
  write_slice(3000);
  kill();
  const temporary_directory without;
  std::int64_t synced = 0;
  {
    // Where the slices begin: the first frame of `meta` behind the commits.
    std::ifstream in(wal(left.path()), std::ios::binary);
    for (std::int64_t frame = 0; frame < frames(); ++frame) {
      std::array<unsigned char, 4> page{};
      in.seekg(log_header + frame * frame_bytes);
      in.read(reinterpret_cast<char*>(page.data()), page.size());
      if (page[2] == 0 && page[3] == 2) break;
      synced = frame + 1;
    }
  }
  ASSERT_GT(frames() - synced, 10);
  for (std::int64_t frame = synced; frame < frames(); ++frame) {
    const temporary_directory one;
    copy_to(one);
    put_zeros(wal(one.path()), log_header + frame * frame_bytes, frame_bytes);
    const auto began = start(one.path());
    ASSERT_TRUE(std::holds_alternative<actors::recovered_head>(began))
        << "frame " << frame << ": " << std::get<actors::store_error>(began).sentence;
    EXPECT_EQ(std::get<actors::recovered_head>(began).head.last_row.value, rows);
  }
}

TEST_F(LeftWal, WithFramesOfAnEarlierGenerationBehindItIsNoDamage) {
  commit_some(24);
  kill();
  // Copied into the database, and begun anew by the next commit.
  {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(database(left.path()).c_str(), &db), SQLITE_OK);
    sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_RESTART, nullptr, nullptr);
    sqlite3_exec(db, "UPDATE meta SET value = value", nullptr, nullptr, nullptr);
    const temporary_directory again;
    copy_to(again);
    sqlite3_close(db);
    EXPECT_GT(static_cast<std::int64_t>(fs::file_size(wal(again.path()))), 30 * frame_bytes);
    EXPECT_EQ(expect(start(again.path())).head.last_row.value, 24);
  }
}

TEST_F(LeftWal, IsRefusedWithoutItsDatabaseAndNothingIsMadeOrRemoved) {
  commit_some(6);
  kill();
  fs::remove(database(left.path()));
  expect_refused(left.path(), kind::corrupt, "leasehold.db is missing or empty");
  EXPECT_FALSE(fs::exists(database(left.path())));
}

TEST_F(LeftWal, IsRefusedWithADatabaseThatIsEmptyOrShorterThanItsHeader) {
  commit_some(6);
  kill();
  for (const std::uintmax_t size : {std::uintmax_t{99}, std::uintmax_t{16}, std::uintmax_t{0}}) {
    fs::resize_file(database(left.path()), size);
    expect_refused(left.path(), kind::corrupt, "leasehold.db");
  }
}

TEST_F(LeftWal, IsNotCopiedIntoADatabaseThatIsRefused) {
  commit_some(6);
  write_slice(3000);
  kill();
  {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(database(left.path()).c_str(), &db), SQLITE_OK);
    sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_close(db);
  }
  // The index of the log says which pages need not be read from it.
  put_zeros(database(left.path()), 3 * storage::database_page_bytes,
            2 * storage::database_page_bytes);
  fs::resize_file(wal(left.path()), log_header + 3 * frame_bytes);
  fs::remove(database(left.path()).string() + "-shm");
  const auto before = files_of(left.path());
  const auto began = start(left.path());
  ASSERT_TRUE(std::holds_alternative<actors::store_error>(began));
  EXPECT_EQ(files_of(left.path()), before);
}

TEST(MetaPage, IsTheOneThatTellsSlicesFromCommits) {
  const temporary_directory made;
  { expect(storage::open_sqlite_store({.directory = made.path()})); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((made.path() / storage::database_name).c_str(), &db), SQLITE_OK);
  std::string page;
  sqlite3_exec(
      db, "SELECT rootpage FROM sqlite_master WHERE name = 'meta'",
      [](void* into, int, char** text, char**) {
        *static_cast<std::string*>(into) = text[0];
        return 0;
      },
      &page, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(page, "2");
}

}  // namespace
}  // namespace leasehold::tests
