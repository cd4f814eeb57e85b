#include "sqlite_machine.hpp"

#include <random>
#include <string>

#include "src/store/kept_head.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {

namespace {

using namespace std::chrono_literals;

/// The connection that was opened first since it was forgotten: a store opens its writer's first.
sqlite3* first_opened = nullptr;

int note_opened(sqlite3* db, char**, const sqlite3_api_routines*) {
  if (first_opened == nullptr) first_opened = db;
  return SQLITE_OK;
}

auto entry_point() { return reinterpret_cast<void (*)()>(&note_opened); }

class sqlite_place final : public log_place {
 public:
  explicit sqlite_place(bool never_sync) : never_sync_(never_sync) {}

  actors::store_result<std::unique_ptr<actors::store>> open(const opening& how) override {
    first_opened = nullptr;
    // The search is to find what is lost, and not the start, which would refuse it.
    if (never_sync_) std::filesystem::remove(directory() / storage::kept_head_name);
    auto opened = directory_place(directory()).open(how);
    if (never_sync_ && first_opened != nullptr) {
      sqlite3_exec(first_opened, "PRAGMA synchronous = OFF", nullptr, nullptr, nullptr);
    }
    return opened;
  }
  [[nodiscard]] stored_log read() const override { return directory_place(directory()).read(); }
  [[nodiscard]] actors::store_result<storage::verify_report> verify() const override {
    return directory_place(directory()).verify();
  }
  [[nodiscard]] std::filesystem::path directory() const override { return parent_.path() / "data"; }

 private:
  bool never_sync_;
  temporary_directory parent_;
};

}  // namespace

sqlite_machine::sqlite_machine(bool never_sync) : never_sync_(never_sync) {
  sqlite3_initialize();
  sqlite3_auto_extension(entry_point());
}

sqlite_machine::~sqlite_machine() { sqlite3_cancel_auto_extension(entry_point()); }

std::unique_ptr<log_place> sqlite_machine::new_place() {
  return std::make_unique<sqlite_place>(never_sync_);
}

void sqlite_machine::restart(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto what = static_cast<survival>(random() % 5);
  disk_.restart(what, random());
}

std::jthread sqlite_machine::beside(const log_place& where) {
  return std::jthread([this, file = where.directory() / "leasehold.db"] {
    while (!disk_.wait_for_crash(10ms)) {
      sqlite3* db = nullptr;
      sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
      sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
      sqlite3_close(db);
    }
  });
}

}  // namespace leasehold::tests
