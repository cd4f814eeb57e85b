#include "support/faulty_vfs.hpp"

#include <cstring>

namespace leasehold::tests {

/// SQLite gives room for this and the real file behind it.
struct faulty_vfs::open_file {
  sqlite3_file base;
  faulty_vfs* owner;  ///< null: nobody's but SQLite's own, as a sorter's
  bool is_log;

  static sqlite3_file* real(sqlite3_file* f) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<open_file*>(f) + 1);
  }
  static file_fault strike(sqlite3_file* f, file_calls which) {
    auto* const owner = reinterpret_cast<open_file*>(f)->owner;
    const bool is_log = reinterpret_cast<open_file*>(f)->is_log;
    return owner == nullptr ? file_fault{} : owner->strike(which, is_log);
  }
};

struct faulty_vfs::calls_of_sqlite {
  static sqlite3_file* real(sqlite3_file* f) { return open_file::real(f); }
  static faulty_vfs& self(sqlite3_vfs* v) { return *static_cast<faulty_vfs*>(v->pAppData); }

  static int open(sqlite3_vfs* v, const char* name, sqlite3_file* f, int flags, int* out_flags) {
    auto& me = self(v);
    auto& mine = *reinterpret_cast<open_file*>(f);
    mine.base.pMethods = nullptr;
    constexpr int counted = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
    mine.owner = (flags & counted) != 0 ? &me : nullptr;
    mine.is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (const auto fault = open_file::strike(f, file_calls::open); fault.code != 0) {
      return fault.code;
    }
    const int code = me.real_->xOpen(me.real_, name, real(f), flags, out_flags);
    if (real(f)->pMethods != nullptr) mine.base.pMethods = &methods;
    return code;
  }
  static int remove(sqlite3_vfs* v, const char* name, int sync_directory) {
    if (const auto fault = self(v).strike(file_calls::remove, false); fault.code != 0)
      return fault.code;
    return self(v).real_->xDelete(self(v).real_, name, sync_directory);
  }
  static int access(sqlite3_vfs* v, const char* name, int flags, int* out) {
    if (const auto fault = self(v).strike(file_calls::look, false); fault.code != 0)
      return fault.code;
    return self(v).real_->xAccess(self(v).real_, name, flags, out);
  }
  static int sleep(sqlite3_vfs* v, int us) {
    return self(v).fails() ? us : self(v).real_->xSleep(self(v).real_, us);
  }

  static int close(sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); }
  static int read(sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
    const auto fault = open_file::strike(f, file_calls::read);
    const int bytes = fault.code == 0 ? size : fault.half ? size / 2 : 0;
    const int code = bytes == 0 ? SQLITE_OK : real(f)->pMethods->xRead(real(f), to, bytes, at);
    if (fault.half) std::memset(static_cast<char*>(to) + bytes, 0, std::size_t(size - bytes));
    return fault.code != 0 ? fault.code : code;
  }
  static int write(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
    const auto fault = open_file::strike(f, file_calls::write);
    const int bytes = fault.code == 0 ? size : fault.half ? size / 2 : 0;
    const int code = bytes == 0 ? SQLITE_OK : real(f)->pMethods->xWrite(real(f), from, bytes, at);
    return fault.code != 0 ? fault.code : code;
  }
  static int truncate(sqlite3_file* f, sqlite3_int64 size) {
    if (const auto fault = open_file::strike(f, file_calls::truncate); fault.code != 0) {
      return fault.code;
    }
    return real(f)->pMethods->xTruncate(real(f), size);
  }
  static int sync(sqlite3_file* f, int) { return open_file::strike(f, file_calls::sync).code; }
  static int file_size(sqlite3_file* f, sqlite3_int64* size) {
    if (const auto fault = open_file::strike(f, file_calls::look); fault.code != 0) {
      return fault.code;
    }
    return real(f)->pMethods->xFileSize(real(f), size);
  }
  static int lock(sqlite3_file* f, int how) {
    if (const auto fault = open_file::strike(f, file_calls::lock); fault.code != 0) {
      return fault.code;
    }
    return real(f)->pMethods->xLock(real(f), how);
  }
  static int unlock(sqlite3_file* f, int how) { return real(f)->pMethods->xUnlock(real(f), how); }
  static int check_reserved_lock(sqlite3_file* f, int* out) {
    return real(f)->pMethods->xCheckReservedLock(real(f), out);
  }
  static int control(sqlite3_file* f, int what, void* with) {
    return real(f)->pMethods->xFileControl(real(f), what, with);
  }
  static int sector_size(sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); }
  static int characteristics(sqlite3_file* f) {
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
  }
  static int shared_map(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    if (const auto fault = open_file::strike(f, file_calls::shared_map); fault.code != 0) {
      return fault.code;
    }
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
  }
  static int shared_lock(sqlite3_file* f, int at, int count, int flags) {
    if ((flags & SQLITE_SHM_LOCK) != 0) {
      if (const auto fault = open_file::strike(f, file_calls::shared_lock); fault.code != 0) {
        return fault.code;
      }
    }
    return real(f)->pMethods->xShmLock(real(f), at, count, flags);
  }
  static void shared_barrier(sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); }
  static int shared_unmap(sqlite3_file* f, int drop) {
    return real(f)->pMethods->xShmUnmap(real(f), drop);
  }
  static int fetch(sqlite3_file*, sqlite3_int64, int, void** out) {
    // No page is mapped: each is read.
    *out = nullptr;
    return SQLITE_OK;
  }
  static int unfetch(sqlite3_file*, sqlite3_int64, void*) { return SQLITE_OK; }

  static constexpr sqlite3_io_methods methods = {3,
                                                 close,
                                                 read,
                                                 write,
                                                 truncate,
                                                 sync,
                                                 file_size,
                                                 lock,
                                                 unlock,
                                                 check_reserved_lock,
                                                 control,
                                                 sector_size,
                                                 characteristics,
                                                 shared_map,
                                                 shared_lock,
                                                 shared_barrier,
                                                 shared_unmap,
                                                 fetch,
                                                 unfetch};
};

faulty_vfs::faulty_vfs() {
  real_ = sqlite3_vfs_find(nullptr);
  vfs_ = *real_;
  vfs_.zName = "faulty";
  vfs_.pAppData = this;
  vfs_.szOsFile = static_cast<int>(sizeof(open_file)) + real_->szOsFile;
  vfs_.xOpen = &calls_of_sqlite::open;
  vfs_.xDelete = &calls_of_sqlite::remove;
  vfs_.xAccess = &calls_of_sqlite::access;
  vfs_.xSleep = &calls_of_sqlite::sleep;
  sqlite3_vfs_register(&vfs_, 1);
}

faulty_vfs::~faulty_vfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(real_, 1);
}

void faulty_vfs::fail(const file_fault& what, std::int64_t nth, bool lasts) {
  const std::lock_guard lock(mutex_);
  fault_ = what;
  left_ = nth;
  lasts_ = lasts;
  hits_ = 0;
}

bool faulty_vfs::fails() const {
  const std::lock_guard lock(mutex_);
  return left_ == 1 && lasts_;
}

void faulty_vfs::mend() {
  const std::lock_guard lock(mutex_);
  left_ = 0;
}

std::int64_t faulty_vfs::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

file_fault faulty_vfs::strike(file_calls which, bool is_log) {
  const std::lock_guard lock(mutex_);
  if (left_ == 0 || !has(fault_.calls, which) || (fault_.of_log && !is_log)) return {};
  if (left_ > 1) {
    --left_;
    return {};
  }
  if (!lasts_) left_ = 0;
  ++hits_;
  return fault_;
}

}  // namespace leasehold::tests
