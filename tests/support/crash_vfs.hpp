// A file system for SQLite that can lose power: what was written and not synced is known apart from
// what was, and a crash drops it, whole or in torn pieces.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace leasehold::tests {

/// What a crash leaves of the changes that were not synced.
enum class survival : std::uint8_t {
  nothing,
  first_ones,   ///< all up to one, in order
  some_writes,  ///< each by itself, or not
  sectors_512,  ///< each sector of each write by itself, or not
  sectors_4096,
};

/// While it lives it is SQLite's default file system. One at a time. Any thread.
///
/// Files live where SQLite puts them, with the locks and the shared memory of the real file system;
/// for each change since its file's last sync this one keeps what was there before. A new file and
/// a removed one count as synced with their directory: at the first sync of a journal that was
/// opened to be made, and at a removal that asks for it. No fsync reaches the disk.
class crash_vfs {
 public:
  crash_vfs();
  ~crash_vfs();
  crash_vfs(const crash_vfs&) = delete;
  crash_vfs& operator=(const crash_vfs&) = delete;

  /// Counts store calls (open, write, truncate, sync, remove) from 1 again, and crashes in the
  /// n-th, which fails; 0: in none.
  void crash_in_call(std::int64_t n);
  void crash();
  [[nodiscard]] bool crashed() const noexcept { return crashed_; }
  /// False when it does not crash in time.
  bool wait_for_crash(std::chrono::milliseconds within);
  [[nodiscard]] std::int64_t calls() const;
  /// Changes that the next crash may drop.
  [[nodiscard]] std::size_t unsynced() const;

  /// The machine comes back: files are what the crash left of them, chosen by the seed. Everything
  /// that was opened before must be closed.
  void restart(survival what, std::uint64_t seed);

 private:
  struct change {
    bool truncates = false;
    std::int64_t at = 0;
    std::string before;  ///< of a truncation: what was cut off
    std::string after;
    std::int64_t size_before = 0;
  };
  /// A file, whatever its name is.
  struct inode {
    std::vector<change> unsynced;
    std::string content;  ///< once it has no name
  };
  using names = std::map<std::string, inode*>;
  struct open_file;
  struct calls_of_sqlite;

  bool dies_in_this_call();
  inode* inode_of(const std::string& path);
  static std::string left_of(const inode& what, std::string content, survival how,
                             std::mt19937_64& random);
  static void redo(std::string& content, const change& what, survival how, std::mt19937_64& random);

  sqlite3_vfs vfs_{};
  sqlite3_vfs* real_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> crashed_{false};
  std::atomic<int> life_{1};
  std::int64_t calls_ = 0;
  std::int64_t crash_in_ = 0;
  std::list<inode> inodes_;
  names named_;          ///< as programs see the directories
  names durably_named_;  ///< as they are after a crash
};

}  // namespace leasehold::tests
