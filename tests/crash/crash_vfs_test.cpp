// The file system that loses power: what it drops, what it keeps, and when.
#include "support/crash_vfs.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

constexpr std::size_t bytes = std::size_t{16} * 1024;

/// A file as SQLite has it.
class raw_file {
 public:
  raw_file(const std::filesystem::path& path, int kind)
      : path_(path), room_(new char[static_cast<std::size_t>(vfs()->szOsFile)]()) {
    opened = vfs()->xOpen(vfs(), path_.c_str(), file(),
                          kind | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  }
  ~raw_file() { close(); }
  raw_file(const raw_file&) = delete;
  raw_file& operator=(const raw_file&) = delete;

  void close() {
    if (opened == SQLITE_OK) file()->pMethods->xClose(file());
    opened = SQLITE_CANTOPEN;
  }
  int write(const std::string& text, std::int64_t at = 0) {
    return file()->pMethods->xWrite(file(), text.data(), static_cast<int>(text.size()), at);
  }
  int truncate(std::int64_t size) { return file()->pMethods->xTruncate(file(), size); }
  int sync() { return file()->pMethods->xSync(file(), SQLITE_SYNC_FULL); }
  std::string read(std::size_t size) {
    std::string text(size, '?');
    file()->pMethods->xRead(file(), text.data(), static_cast<int>(size), 0);
    return text;
  }
  static int remove(const std::filesystem::path& path, bool sync_directory) {
    return vfs()->xDelete(vfs(), path.c_str(), sync_directory ? 1 : 0);
  }

  int opened = SQLITE_CANTOPEN;

 private:
  static sqlite3_vfs* vfs() { return sqlite3_vfs_find(nullptr); }
  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(room_.get()); }

  std::string path_;
  std::unique_ptr<char[]> room_;
};

class CrashVfs : public testing::Test {
 protected:
  // SQLite gives a log the rights of its database, which must be there.
  CrashVfs() { std::ofstream(kept.path() / "log"); }

  /// A journal whose directory entry and whose `a`s are durable.
  void make_durable() {
    raw_file file(path, SQLITE_OPEN_WAL);
    EXPECT_EQ(file.write(std::string(bytes, 'a')), SQLITE_OK);
    EXPECT_EQ(file.sync(), SQLITE_OK);
  }
  void overwrite() {
    raw_file file(path, SQLITE_OPEN_WAL);
    EXPECT_EQ(file.write(std::string(bytes, 'b')), SQLITE_OK);
    EXPECT_EQ(file.read(bytes), std::string(bytes, 'b'));
  }
  std::string after_restart(survival how, std::uint64_t seed = 1) {
    disk.crash();
    disk.restart(how, seed);
    raw_file file(path, SQLITE_OPEN_WAL);
    return file.read(bytes);
  }

  temporary_directory kept;
  std::filesystem::path path = kept.path() / "log-wal";
  crash_vfs disk;
};

TEST_F(CrashVfs, WhatWasSyncedStays) {
  make_durable();
  EXPECT_EQ(disk.unsynced(), 0U);
  EXPECT_EQ(after_restart(survival::nothing), std::string(bytes, 'a'));
}

TEST_F(CrashVfs, WhatWasNotSyncedIsDropped) {
  make_durable();
  overwrite();
  EXPECT_EQ(disk.unsynced(), 1U);
  EXPECT_EQ(after_restart(survival::nothing), std::string(bytes, 'a'));
}

TEST_F(CrashVfs, ATruncationThatWasNotSyncedIsUndone) {
  make_durable();
  {
    raw_file file(path, SQLITE_OPEN_WAL);
    EXPECT_EQ(file.truncate(100), SQLITE_OK);
    EXPECT_EQ(file.write("c", 200), SQLITE_OK);
  }
  EXPECT_EQ(after_restart(survival::nothing), std::string(bytes, 'a'));
}

TEST_F(CrashVfs, AWriteIsTornAtSectors) {
  for (const auto& [how, sector] : {std::pair{survival::sectors_512, std::size_t{512}},
                                    std::pair{survival::sectors_4096, std::size_t{4096}}}) {
    int torn = 0;
    for (std::uint64_t seed = 1; seed <= 64; ++seed) {
      make_durable();
      overwrite();
      const auto left = after_restart(how, seed);
      for (std::size_t at = 0; at < bytes; at += sector) {
        EXPECT_EQ(left.substr(at, sector), std::string(sector, left[at])) << at;
      }
      torn += left.find('a') != left.npos && left.find('b') != left.npos ? 1 : 0;
      std::filesystem::remove(path);
      disk.restart(survival::nothing, 0);
    }
    EXPECT_GT(torn, 0) << "some seed keeps a part";
  }
}

TEST_F(CrashVfs, SomeOfManyWritesStayAndTheSeedSaysWhich) {
  std::string first;
  for (const std::uint64_t seed : {7U, 7U, 8U}) {
    make_durable();
    {
      raw_file file(path, SQLITE_OPEN_WAL);
      for (int i = 0; i < 64; ++i) EXPECT_EQ(file.write("b", i), SQLITE_OK);
    }
    const auto left = after_restart(survival::some_writes, seed).substr(0, 64);
    EXPECT_NE(left, std::string(64, 'a'));
    EXPECT_NE(left, std::string(64, 'b'));
    if (first.empty()) first = left;
    EXPECT_EQ(left == first, seed == 7U);
    std::filesystem::remove(path);
    disk.restart(survival::nothing, 0);
  }
}

TEST_F(CrashVfs, ANewFileIsGoneUntilItsDirectoryIsSynced) {
  {
    raw_file file(path, SQLITE_OPEN_MAIN_DB);
    EXPECT_EQ(file.write("database"), SQLITE_OK);
    EXPECT_EQ(file.sync(), SQLITE_OK);  // of a database: its directory is not synced with it
  }
  disk.crash();
  disk.restart(survival::nothing, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CrashVfs, ARemovedFileIsBackUnlessItsDirectoryWasSynced) {
  make_durable();
  EXPECT_EQ(raw_file::remove(path, false), SQLITE_OK);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(after_restart(survival::nothing), std::string(bytes, 'a'));
  EXPECT_EQ(raw_file::remove(path, true), SQLITE_OK);
  disk.crash();
  disk.restart(survival::nothing, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CrashVfs, TheNthCallFailsAndEveryOneAfterIt) {
  make_durable();
  disk.crash_in_call(3);
  raw_file file(path, SQLITE_OPEN_WAL);
  EXPECT_EQ(file.write("b"), SQLITE_OK);
  EXPECT_FALSE(disk.crashed());
  EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
  EXPECT_TRUE(disk.crashed());
  EXPECT_EQ(disk.calls(), 3);
  EXPECT_EQ(file.write("c"), SQLITE_IOERR_WRITE);
  EXPECT_EQ(raw_file::remove(path, true), SQLITE_IOERR_DELETE);
  const raw_file another(kept.path() / "other", SQLITE_OPEN_MAIN_DB);
  EXPECT_NE(another.opened, SQLITE_OK);
  file.close();
  EXPECT_EQ(after_restart(survival::nothing), std::string(bytes, 'a'));
}

TEST_F(CrashVfs, WhatWasOpenedBeforeTheCrashStaysDead) {
  make_durable();
  raw_file file(path, SQLITE_OPEN_WAL);
  disk.crash();
  disk.restart(survival::nothing, 1);
  EXPECT_EQ(file.write("b"), SQLITE_IOERR_WRITE);
  EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
}

}  // namespace
}  // namespace leasehold::tests
