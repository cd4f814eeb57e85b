// A file system for SQLite that fails on demand: its n-th call of some kinds, once or until it is
// mended.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <mutex>

namespace leasehold::tests {

/// What SQLite asks of a file system; several are one set.
enum class file_calls : std::uint16_t {
  open = 1,
  remove = 2,
  look = 4,  ///< whether a file is there, and how large it is
  read = 8,
  write = 16,
  truncate = 32,
  sync = 64,
  lock = 128,         ///< of the file
  shared_map = 256,   ///< memory that the connections of a file share
  shared_lock = 512,  ///< and its locks
};
constexpr file_calls operator|(file_calls a, file_calls b) {
  return static_cast<file_calls>(static_cast<std::uint16_t>(a) | static_cast<std::uint16_t>(b));
}
constexpr bool has(file_calls set, file_calls one) {
  return (static_cast<std::uint16_t>(set) & static_cast<std::uint16_t>(one)) != 0;
}

struct file_fault {
  file_calls calls{};  ///< which ones are counted, and fail
  int code = 0;        ///< what the call answers
  bool half = false;   ///< a write or read is done by half before
  /// Of a write-ahead log alone. A database's short read is no error to SQLite: it takes the rest
  /// for zeros, as behind the end of the file.
  bool of_log = false;
};

/// While it lives it is SQLite's default file system. One at a time; any thread calls it.
/// Databases, their journals and write-ahead logs count. No fsync reaches the disk, and a wait for
/// a fault that lasts takes no time.
class faulty_vfs {
 public:
  faulty_vfs();
  ~faulty_vfs();
  faulty_vfs(const faulty_vfs&) = delete;
  faulty_vfs& operator=(const faulty_vfs&) = delete;

  /// The n-th of these calls from now on fails (1: the next one), and every later one, too, when
  /// it lasts.
  void fail(const file_fault& what, std::int64_t nth = 1, bool lasts = false);
  /// Nothing fails any more.
  void mend();
  /// How many calls failed since fail().
  [[nodiscard]] std::int64_t hits() const;

 private:
  struct open_file;
  struct calls_of_sqlite;
  /// The fault that strikes this call; a code of 0: none.
  file_fault strike(file_calls which, bool is_log);
  [[nodiscard]] bool fails() const;

  sqlite3_vfs vfs_{};
  sqlite3_vfs* real_ = nullptr;
  mutable std::mutex mutex_;
  file_fault fault_;
  std::int64_t left_ = 0;  ///< calls until one fails; 0: none will
  bool lasts_ = false;
  std::int64_t hits_ = 0;
};

}  // namespace leasehold::tests
