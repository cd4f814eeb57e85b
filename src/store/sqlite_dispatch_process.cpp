// The dispatch tables for a process that is not the coordinator's.
#include <mutex>
#include <system_error>
#include <utility>

#include "src/store/read_pool.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_dispatch.hpp"
#include "src/store/sqlite_dispatch_rows.hpp"

namespace leasehold::storage {

namespace {

using actors::clock_anchor;
using actors::store_error;
using actors::store_result;

/// Everything runs on one thread, in the order of the calls.
class process_dispatches final : public sqlite_dispatch_store {
 public:
  process_dispatches(const sqlite_dispatch_options& how, connection db, const clock_anchor& anchor)
      : how_(how),
        wal_(db.file() + "-wal"),
        db_(std::move(db)),
        rows_(db_),
        anchor_(anchor),
        calls_(1, most_dispatch_calls) {}

  store_result<protocol::instant> now() override {
    const std::lock_guard lock(mutex_);
    return how_.now(anchor_);
  }

 protected:
  bool read(reading what) override {
    return calls_.submit([this, what = std::move(what)] {
      if (auto fault = look_at_clock()) {
        what(*fault);
      } else {
        what(&db_);
      }
    });
  }

  bool write(dispatch_turn what) override {
    return calls_.submit([this, what = std::move(what)] { what.answer(run(what)); });
  }

 private:
  std::optional<store_error> run(const dispatch_turn& what) {
    if (fatal_) return fatal_;
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(wal_, missing);
    if (!missing && bytes > static_cast<std::uintmax_t>(how_.most_wal_bytes)) {
      return store_error{store_error::kind::full,
                         wal_.string() + " is longer than " +
                             std::to_string(how_.most_wal_bytes >> 20) +
                             " MiB; start leaseholdd on the store, which shortens it"};
    }
    transaction whole(db_);
    if (auto fault = whole.begin_writing()) return fault;
    if (auto fault = look_at_clock()) return fault;
    if (auto fault = what.act(rows_)) return fault;
    auto fault = whole.commit();
    // What reached the disk is not known any more: this connection writes no more on top of it.
    if (fault && fault->what == store_error::kind::fatal) fatal_ = fault;
    return fault;
  }

  std::optional<store_error> look_at_clock() {
    auto read = read_newest_anchor(db_);
    if (auto* fault = std::get_if<store_error>(&read)) return *fault;
    const std::lock_guard lock(mutex_);
    anchor_ = std::get<clock_anchor>(read);
    return std::nullopt;
  }

  sqlite_dispatch_options how_;
  std::filesystem::path wal_;
  connection db_;
  sqlite_dispatch_rows rows_;
  std::optional<store_error> fatal_;
  std::mutex mutex_;
  clock_anchor anchor_;
  read_pool calls_;  ///< ends before what it uses
};

}  // namespace

store_result<std::unique_ptr<actors::dispatch_store>> open_sqlite_dispatches(
    const sqlite_dispatch_options& how) {
  auto opened = open_beside(how.directory / database_name);
  if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
  auto& db = std::get<connection>(opened);
  db.poll_for_lock(how.lock_wait);
  auto facts = read_facts(db);
  if (auto* fault = std::get_if<store_error>(&facts)) return *fault;
  if (std::get<store_facts>(facts).is_backup) {
    return store_error{store_error::kind::foreign,
                       how.directory.string() +
                           " holds a backup that was not served yet; start leaseholdd "
                           "--restored-backup on it first, or name another data directory"};
  }
  auto anchor = read_newest_anchor(db);
  if (auto* fault = std::get_if<store_error>(&anchor)) return *fault;
  return std::make_unique<process_dispatches>(how, std::move(db), std::get<clock_anchor>(anchor));
}

}  // namespace leasehold::storage
