#include "tests/store/faulty_vfs.hpp"

#include <string_view>

namespace leasehold::tests {

std::atomic<int> faulty_vfs::next_write{0};
std::atomic<int> faulty_vfs::next_sync{0};

namespace {

sqlite3_vfs* real = nullptr;

/// SQLite gives room for this and the real file behind it.
struct faulty_file {
  sqlite3_file base;
  bool is_log;
  [[nodiscard]] sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

faulty_file* own(sqlite3_file* f) { return reinterpret_cast<faulty_file*>(f); }
sqlite3_file* inner(sqlite3_file* f) { return own(f)->inner(); }

const sqlite3_io_methods methods = {
    3,
    [](sqlite3_file* f) { return inner(f)->pMethods->xClose(inner(f)); },
    [](sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
      return inner(f)->pMethods->xRead(inner(f), to, size, at);
    },
    [](sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
      if (own(f)->is_log) {
        if (const int code = faulty_vfs::next_write.exchange(0)) return code;
      }
      return inner(f)->pMethods->xWrite(inner(f), from, size, at);
    },
    [](sqlite3_file* f, sqlite3_int64 size) {
      return inner(f)->pMethods->xTruncate(inner(f), size);
    },
    [](sqlite3_file* f, int flags) {
      if (own(f)->is_log) {
        if (const int code = faulty_vfs::next_sync.exchange(0)) return code;
      }
      return inner(f)->pMethods->xSync(inner(f), flags);
    },
    [](sqlite3_file* f, sqlite3_int64* size) {
      return inner(f)->pMethods->xFileSize(inner(f), size);
    },
    [](sqlite3_file* f, int how) { return inner(f)->pMethods->xLock(inner(f), how); },
    [](sqlite3_file* f, int how) { return inner(f)->pMethods->xUnlock(inner(f), how); },
    [](sqlite3_file* f, int* out) { return inner(f)->pMethods->xCheckReservedLock(inner(f), out); },
    [](sqlite3_file* f, int what, void* with) {
      return inner(f)->pMethods->xFileControl(inner(f), what, with);
    },
    [](sqlite3_file* f) { return inner(f)->pMethods->xSectorSize(inner(f)); },
    [](sqlite3_file* f) { return inner(f)->pMethods->xDeviceCharacteristics(inner(f)); },
    [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
      return inner(f)->pMethods->xShmMap(inner(f), page, size, extend, out);
    },
    [](sqlite3_file* f, int at, int count, int flags) {
      return inner(f)->pMethods->xShmLock(inner(f), at, count, flags);
    },
    [](sqlite3_file* f) { inner(f)->pMethods->xShmBarrier(inner(f)); },
    [](sqlite3_file* f, int drop) { return inner(f)->pMethods->xShmUnmap(inner(f), drop); },
    [](sqlite3_file* f, sqlite3_int64 at, int size, void** out) {
      return inner(f)->pMethods->xFetch(inner(f), at, size, out);
    },
    [](sqlite3_file* f, sqlite3_int64 at, void* page) {
      return inner(f)->pMethods->xUnfetch(inner(f), at, page);
    },
};

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* f, int flags, int* out_flags) {
  own(f)->is_log = (flags & SQLITE_OPEN_WAL) != 0;
  const int code = real->xOpen(real, name, inner(f), flags, out_flags);
  f->pMethods = inner(f)->pMethods != nullptr ? &methods : nullptr;
  return code;
}

}  // namespace

faulty_vfs::faulty_vfs() {
  real = sqlite3_vfs_find(nullptr);
  vfs_ = *real;
  vfs_.zName = "faulty";
  vfs_.szOsFile = static_cast<int>(sizeof(faulty_file)) + real->szOsFile;
  vfs_.xOpen = &open_file;
  sqlite3_vfs_register(&vfs_, 1);
}

faulty_vfs::~faulty_vfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(real, 1);
}

}  // namespace leasehold::tests
