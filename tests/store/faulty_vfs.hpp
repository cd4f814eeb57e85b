// A file system for SQLite that fails on demand: writes that find the disk full, writes and fsyncs
// that fail.
#pragma once

#include <sqlite3.h>

#include <atomic>

namespace leasehold::tests {

/// While it lives it is SQLite's default file system. One at a time.
class faulty_vfs {
 public:
  faulty_vfs();
  ~faulty_vfs();
  faulty_vfs(const faulty_vfs&) = delete;
  faulty_vfs& operator=(const faulty_vfs&) = delete;

  /// What the next write, or fsync, of a write-ahead log answers instead of being done; 0: nothing.
  static std::atomic<int> next_write;
  static std::atomic<int> next_sync;

 private:
  sqlite3_vfs vfs_{};
};

}  // namespace leasehold::tests
