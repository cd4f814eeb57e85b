#include "support/crash_vfs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace leasehold::tests {

namespace {

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// How long the call takes in which the power goes: long enough for an early answer to be heard
/// even from a build with a sanitizer.
constexpr std::chrono::milliseconds last_call{100};

bool is_journal(int flags) {
  return (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0;
}

void put(std::string& content, std::size_t at, std::string_view bytes) {
  if (content.size() < at + bytes.size()) content.resize(at + bytes.size(), '\0');
  content.replace(at, bytes.size(), bytes);
}

}  // namespace

/// SQLite gives room for this and the real file behind it.
struct crash_vfs::open_file {
  sqlite3_file base;
  crash_vfs* owner;
  inode* node;  ///< null: nothing of this file survives anyway
  int life;
  bool syncs_directory;

  static open_file& of(sqlite3_file* f) { return *reinterpret_cast<open_file*>(f); }
  static sqlite3_file* real(sqlite3_file* f) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<open_file*>(f) + 1);
  }
  [[nodiscard]] bool dead() const { return owner->crashed_ || life != owner->life_; }
};

struct crash_vfs::calls_of_sqlite {
  static sqlite3_file* real(sqlite3_file* f) { return open_file::real(f); }
  static crash_vfs& self(sqlite3_vfs* v) { return *static_cast<crash_vfs*>(v->pAppData); }

  static int open(sqlite3_vfs* v, const char* name, sqlite3_file* f, int flags, int* out_flags) {
    auto& me = self(v);
    auto& mine = open_file::of(f);
    mine.base.pMethods = nullptr;
    const std::lock_guard lock(me.mutex_);
    const bool tracked =
        name != nullptr && ((flags & SQLITE_OPEN_MAIN_DB) != 0 || is_journal(flags));
    if (me.crashed_ || (tracked && me.dies_in_this_call())) return SQLITE_CANTOPEN;
    const bool was_there = tracked && std::filesystem::exists(name);
    const int code = me.real_->xOpen(me.real_, name, real(f), flags, out_flags);
    if (real(f)->pMethods == nullptr) return code;
    mine.base.pMethods = &methods;
    mine.owner = &me;
    mine.life = me.life_;
    mine.syncs_directory = is_journal(flags) && (flags & SQLITE_OPEN_CREATE) != 0;
    mine.node = tracked ? me.inode_of(name) : nullptr;
    // What was there before anybody wrote through here was made durable by whoever made it; an
    // empty file may have been made a moment ago.
    if (was_there && !me.durably_named_.contains(name) && me.named_.at(name)->unsynced.empty() &&
        std::filesystem::file_size(name) > 0) {
      me.durably_named_[name] = mine.node;
    }
    return code;
  }

  static int remove(sqlite3_vfs* v, const char* name, int sync_directory) {
    auto& me = self(v);
    const std::lock_guard lock(me.mutex_);
    if (me.crashed_ || me.dies_in_this_call()) return SQLITE_IOERR_DELETE;
    if (const auto found = me.named_.find(name); found != me.named_.end()) {
      found->second->content = content_of(name);
      me.named_.erase(found);
    }
    const int code = me.real_->xDelete(me.real_, name, 0);
    if (sync_directory != 0) me.durably_named_ = me.named_;
    return code;
  }

  static int close(sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); }

  static int read(sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
    if (open_file::of(f).dead()) return SQLITE_IOERR_READ;
    return real(f)->pMethods->xRead(real(f), to, size, at);
  }

  static int write(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
    auto& mine = open_file::of(f);
    if (mine.node == nullptr) return real(f)->pMethods->xWrite(real(f), from, size, at);
    const std::lock_guard lock(mine.owner->mutex_);
    if (mine.dead()) return SQLITE_IOERR_WRITE;
    change made;
    made.at = at;
    made.after.assign(static_cast<const char*>(from), static_cast<std::size_t>(size));
    made.size_before = size_of(f);
    made.before = bytes(f, at, std::min<std::int64_t>(size, made.size_before - at));
    const int code = real(f)->pMethods->xWrite(real(f), from, size, at);
    mine.node->unsynced.push_back(std::move(made));
    // The write is on its way when the power goes: it is among those that may be lost or torn.
    return mine.owner->dies_in_this_call() ? SQLITE_IOERR_WRITE : code;
  }

  static int truncate(sqlite3_file* f, sqlite3_int64 size) {
    auto& mine = open_file::of(f);
    if (mine.node == nullptr) return real(f)->pMethods->xTruncate(real(f), size);
    const std::lock_guard lock(mine.owner->mutex_);
    if (mine.dead()) return SQLITE_IOERR_TRUNCATE;
    change made;
    made.truncates = true;
    made.at = size;
    made.size_before = size_of(f);
    made.before = bytes(f, size, made.size_before - size);
    const int code = real(f)->pMethods->xTruncate(real(f), size);
    mine.node->unsynced.push_back(std::move(made));
    return mine.owner->dies_in_this_call() ? SQLITE_IOERR_TRUNCATE : code;
  }

  static int sync(sqlite3_file* f, int) {
    auto& mine = open_file::of(f);
    if (mine.node == nullptr) return SQLITE_OK;
    const std::lock_guard lock(mine.owner->mutex_);
    if (mine.dead() || mine.owner->dies_in_this_call()) return SQLITE_IOERR_FSYNC;
    mine.node->unsynced.clear();
    if (std::exchange(mine.syncs_directory, false)) {
      mine.owner->durably_named_ = mine.owner->named_;
    }
    return SQLITE_OK;
  }

  static int shared_memory(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    if (open_file::of(f).dead()) return SQLITE_IOERR_SHMMAP;
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
  }

  static std::int64_t size_of(sqlite3_file* f) {
    sqlite3_int64 size = 0;
    real(f)->pMethods->xFileSize(real(f), &size);
    return size;
  }

  static std::string bytes(sqlite3_file* f, std::int64_t at, std::int64_t size) {
    if (size <= 0) return {};
    std::string read(static_cast<std::size_t>(size), '\0');
    real(f)->pMethods->xRead(real(f), read.data(), static_cast<int>(size), at);
    return read;
  }

  static const sqlite3_io_methods methods;
};

const sqlite3_io_methods crash_vfs::calls_of_sqlite::methods = {
    2,
    &close,
    &read,
    &write,
    &truncate,
    &sync,
    [](sqlite3_file* f, sqlite3_int64* size) {
      return real(f)->pMethods->xFileSize(real(f), size);
    },
    [](sqlite3_file* f, int how) { return real(f)->pMethods->xLock(real(f), how); },
    [](sqlite3_file* f, int how) { return real(f)->pMethods->xUnlock(real(f), how); },
    [](sqlite3_file* f, int* out) { return real(f)->pMethods->xCheckReservedLock(real(f), out); },
    [](sqlite3_file* f, int what, void* with) {
      return real(f)->pMethods->xFileControl(real(f), what, with);
    },
    [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); },
    [](sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); },
    &shared_memory,
    [](sqlite3_file* f, int at, int count, int flags) {
      return real(f)->pMethods->xShmLock(real(f), at, count, flags);
    },
    [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); },
    [](sqlite3_file* f, int drop) { return real(f)->pMethods->xShmUnmap(real(f), drop); },
    nullptr,
    nullptr,
};

crash_vfs::crash_vfs() : real_(sqlite3_vfs_find(nullptr)) {
  vfs_ = *real_;
  vfs_.zName = "crash";
  vfs_.pAppData = this;
  vfs_.szOsFile = static_cast<int>(sizeof(open_file)) + real_->szOsFile;
  vfs_.xOpen = &calls_of_sqlite::open;
  vfs_.xDelete = &calls_of_sqlite::remove;
  // The real ones look at their own file system's data.
  vfs_.xAccess = [](sqlite3_vfs* v, const char* name, int how, int* out) {
    auto* real = calls_of_sqlite::self(v).real_;
    return real->xAccess(real, name, how, out);
  };
  vfs_.xFullPathname = [](sqlite3_vfs* v, const char* name, int size, char* out) {
    auto* real = calls_of_sqlite::self(v).real_;
    return real->xFullPathname(real, name, size, out);
  };
  sqlite3_vfs_register(&vfs_, 1);
}

crash_vfs::~crash_vfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(real_, 1);
}

void crash_vfs::crash_in_call(std::int64_t n) {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  crash_in_ = n;
}

void crash_vfs::crash() {
  const std::lock_guard lock(mutex_);
  crashed_ = true;
  changed_.notify_all();
}

bool crash_vfs::wait_for_crash(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [this] { return crashed_.load(); });
}

std::int64_t crash_vfs::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::size_t crash_vfs::unsynced() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& each : inodes_) count += each.unsynced.size();
  return count;
}

bool crash_vfs::dies_in_this_call() {
  if (++calls_ != crash_in_) return false;
  // The disk is at work when the power goes: whoever does not wait for it has said so by then.
  std::this_thread::sleep_for(last_call);
  crashed_ = true;
  changed_.notify_all();
  return true;
}

crash_vfs::inode* crash_vfs::inode_of(const std::string& path) {
  auto& found = named_[path];
  if (found == nullptr) found = &inodes_.emplace_back();
  return found;
}

void crash_vfs::redo(std::string& content, const change& what, survival how,
                     std::mt19937_64& random) {
  const auto at = static_cast<std::size_t>(what.at);
  if (what.truncates) {
    if (content.size() > at) content.resize(at);
    return;
  }
  if (how != survival::sectors_512 && how != survival::sectors_4096) {
    put(content, at, what.after);
    return;
  }
  const std::size_t sector = how == survival::sectors_512 ? 512 : 4096;
  for (std::size_t begin = 0; begin < what.after.size();) {
    const std::size_t end = std::min(what.after.size(), begin + sector - (at + begin) % sector);
    if (random() % 2 == 0) {
      put(content, at + begin, std::string_view(what.after).substr(begin, end - begin));
    }
    begin = end;
  }
}

std::string crash_vfs::left_of(const inode& what, std::string content, survival how,
                               std::mt19937_64& random) {
  for (auto undone = what.unsynced.rbegin(); undone != what.unsynced.rend(); ++undone) {
    put(content, static_cast<std::size_t>(undone->at), undone->before);
    content.resize(static_cast<std::size_t>(undone->size_before));
  }
  if (how == survival::nothing) return content;
  const std::size_t first_ones = random() % (what.unsynced.size() + 1);
  for (std::size_t i = 0; i < what.unsynced.size(); ++i) {
    const bool whole = how != survival::some_writes && !what.unsynced[i].truncates;
    const bool kept = how == survival::first_ones ? i < first_ones : whole || random() % 2 == 0;
    if (kept) redo(content, what.unsynced[i], how, random);
  }
  return content;
}

void crash_vfs::restart(survival how, std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  std::mt19937_64 random(seed);
  names left;
  for (const auto* side : {&named_, &durably_named_}) {
    for (const auto& [path, node] : *side) left.try_emplace(path, nullptr);
  }
  std::map<std::string, std::string> contents;
  for (auto& each : left) {
    const auto& path = each.first;
    auto*& node = each.second;
    const auto find = [&](const names& in) {
      const auto found = in.find(path);
      return found == in.end() ? nullptr : found->second;
    };
    auto* seen = find(named_);
    auto* durable = find(durably_named_);
    node = seen == durable || how == survival::nothing || random() % 2 == 0 ? durable : seen;
    if (node == nullptr) continue;
    contents[path] = left_of(*node, node == seen ? content_of(path) : node->content, how, random);
  }
  for (const auto& [path, node] : left) {
    std::filesystem::remove(path);
    std::filesystem::remove(path + "-shm");
    if (node == nullptr) continue;
    std::ofstream(path, std::ios::binary) << contents[path];
  }
  inodes_.clear();
  named_.clear();
  for (const auto& [path, node] : left) {
    if (node != nullptr) named_[path] = &inodes_.emplace_back();
  }
  durably_named_ = named_;
  calls_ = 0;
  crash_in_ = 0;
  ++life_;
  crashed_ = false;
}

}  // namespace leasehold::tests
