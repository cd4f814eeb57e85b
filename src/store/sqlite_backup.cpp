#include "src/store/sqlite_backup.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "src/store/batch_log.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_connection.hpp"
#include "src/store/sqlite_reader.hpp"
#include "src/store/wal_check.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
namespace fs = std::filesystem;

/// Between two looks at the write-ahead log: 16 MiB.
constexpr int pages_at_once = 1024;
constexpr std::size_t batches_at_once = 64;

store_error trouble(const fs::path& where, std::string_view what) {
  return {store_error::kind::io, where.string() + " " + std::string(what)};
}

std::optional<store_error> prepare_target(const fs::path& to) {
  std::error_code failed;
  if (fs::exists(to, failed) && (!fs::is_directory(to, failed) || !fs::is_empty(to, failed))) {
    return trouble(to, "is there and not empty: name a directory that is not there yet");
  }
  if (fs::create_directories(to, failed)) {
    fs::permissions(to, fs::perms::owner_all, failed);
  }
  if (failed) return trouble(to, "cannot be made: " + failed.message());
  return std::nullopt;
}

std::optional<store_error> make_durable(const fs::path& what) {
  const int descriptor = ::open(what.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const std::string why = std::generic_category().message(errno);
  if (descriptor >= 0) ::close(descriptor);
  if (synced) return std::nullopt;
  return trouble(what, "cannot be made durable: " + why);
}

std::int64_t size_of(const fs::path& file) {
  std::error_code missing;
  const auto bytes = fs::file_size(file, missing);
  return missing ? 0 : static_cast<std::int64_t>(bytes);
}

/// Copies page after page; `wal` grows meanwhile and is looked at.
class copying {
 public:
  copying(const backup_options& how, connection& from, connection& to)
      : how_(how),
        to_(to),
        wal_(from.file() + "-wal"),
        backup_(sqlite3_backup_init(to.raw(), "main", from.raw(), "main")) {}

  std::optional<store_error> run(backup_report& report) {
    if (!backup_) return to_.last_error("beginning the backup in");
    int code = SQLITE_OK;
    while (code == SQLITE_OK) {
      code = sqlite3_backup_step(backup_.get(), pages_at_once);
      const std::int64_t wal = size_of(wal_);
      report.wal_bytes = std::max(report.wal_bytes, wal);
      if (how_.progress) {
        const std::int64_t all = sqlite3_backup_pagecount(backup_.get());
        how_.progress(all - sqlite3_backup_remaining(backup_.get()), all, wal);
      }
      if (wal > how_.most_wal_bytes) {
        return store_error{store_error::kind::full,
                           "the write-ahead log grew to " + std::to_string(wal >> 20) +
                               " MiB while the backup ran; try again when less is written, onto "
                               "a faster disk, or with a higher --wal-limit"};
      }
    }
    if (code != SQLITE_DONE) return to_.error(code, "writing the backup to");
    return std::nullopt;
  }

 private:
  struct finisher {
    void operator()(sqlite3_backup* b) const noexcept { sqlite3_backup_finish(b); }
  };
  const backup_options& how_;
  connection& to_;
  fs::path wal_;
  std::unique_ptr<sqlite3_backup, finisher> backup_;
};

/// One file that needs no other: no write-ahead log beside it, and a mark in it.
std::optional<store_error> close_copy(connection& copy, backup_report& report) {
  if (auto fault =
          copy.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL", "preparing")) {
    return fault;
  }
  transaction marking(copy);
  if (auto fault = marking.begin_writing()) return fault;
  if (auto fault = write_backup_mark(copy, true)) return fault;
  if (auto fault = marking.commit()) return fault;
  auto facts = read_facts(copy);
  if (auto* fault = std::get_if<store_error>(&facts)) return *fault;
  auto head = read_head(copy, std::get<store_facts>(facts));
  if (auto* fault = std::get_if<store_error>(&head)) return *fault;
  report.head = std::get<actors::log_head>(head);
  return std::nullopt;
}

std::optional<store_error> copy_into(const backup_options& how, const fs::path& file,
                                     backup_report& report) {
  auto source = open_database(how.from / database_name, connection::access::read_only, {});
  if (auto* fault = std::get_if<store_error>(&source)) return *fault;
  auto& from = std::get<connection>(source);
  const int made = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) return trouble(file, "cannot be made: " + std::generic_category().message(errno));
  ::close(made);
  auto target = connection::open(file, connection::access::read_write);
  if (auto* fault = std::get_if<store_error>(&target)) return *fault;
  auto& to = std::get<connection>(target);
  {
    transaction view(from);
    if (auto fault = view.begin_reading()) return fault;
    if (auto fault = copying(how, from, to).run(report)) return fault;
  }
  return close_copy(to, report);
}

/// Reads a finished copy from its first page to its last, and says what is wrong first.
class copy_check {
 public:
  copy_check(const backup_options& how, const fs::path& file) : how_(how), file_(file) {}

  /// `corrupt`, with what is damaged for a sentence; or another error that kept it from reading.
  std::optional<store_error> run() {
    auto opened = connection::open(file_, connection::access::read_only);
    if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
    sqlite_reader copy(std::move(std::get<connection>(opened)));
    auto wrong = check_pages(copy.database());
    if (!wrong) wrong = check_log(copy);
    if (!wrong) wrong = check_records(copy);
    return wrong;
  }

 private:
  static std::optional<store_error> check_pages(connection& copy) {
    statement query = copy.prepare("PRAGMA quick_check(1)");
    if (query.step() != SQLITE_ROW) return copy.last_error("checking");
    if (query.bytes(0) == "ok") return std::nullopt;
    std::string first(query.bytes(0));
    std::ranges::replace(first, '\n', ' ');
    // A page that the disk did not give is told like one that is damaged.
    constexpr std::string_view said = "error code=";
    const auto at = first.find(said);
    int code = 0;
    if (at != std::string::npos) {
      std::from_chars(first.data() + at + said.size(), first.data() + first.size(), code);
    }
    if ((code & 0xff) == SQLITE_IOERR) return copy.error(code, "checking");
    return damaged(std::move(first));
  }

  std::optional<store_error> check_log(sqlite_reader& copy) {
    const auto read = read_facts(copy.database());
    if (const auto* fault = std::get_if<store_error>(&read)) return *fault;
    facts_ = std::get<store_facts>(read);
    const auto end = read_head(copy.database(), facts_);
    if (const auto* fault = std::get_if<store_error>(&end)) return *fault;
    const actors::log_head last = std::get<actors::log_head>(end);
    actors::log_head at = facts_.anchor;
    while (at.last_row < last.last_row) {
      const auto some = copy.batches_from({at.last_row.value + 1}, batches_at_once);
      if (const auto* fault = std::get_if<store_error>(&some)) return *fault;
      const auto& batches = std::get<std::vector<actors::stored_batch>>(some);
      if (batches.empty()) return missing(at.last_row.value + 1);
      for (const auto& each : batches) {
        if (const auto broken = find_broken(at, each)) {
          return damaged("row " + std::to_string(broken->row.value) + ": " + broken->sentence);
        }
        if (const auto row = protocol::decode_rows(each.rows, each.first_row).broken) {
          return damaged("row " + std::to_string(row->value) + " cannot be read");
        }
        at = {each.last_row, each.chain};
      }
      if (how_.checking) how_.checking(at.last_row.value, last.last_row.value);
    }
    if (facts_.checkpoint > last.last_row) return missing(last.last_row.value + 1);
    return std::nullopt;
  }

  std::optional<store_error> check_records(sqlite_reader& copy) {
    std::optional<std::string> wrong;
    std::int64_t count = 0;
    std::uint64_t sum = 0;
    const auto fault = copy.each_record([&](const stored_record& r) {
      ++count;
      sum += r.check;
      if (!wrong && record_check(r.key, r.image) != r.check) {
        wrong = "the record of lease '" + r.key.lease.value + "' is not what was stored";
      }
    });
    if (fault) return *fault;
    if (wrong) return damaged(std::move(*wrong));
    if (count == facts_.record_count && sum == facts_.record_sum) return std::nullopt;
    return damaged("records of the checkpoint are missing or of another time");
  }

  static store_error damaged(std::string what) {
    return {store_error::kind::corrupt, std::move(what)};
  }
  static store_error missing(std::int64_t row) {
    return damaged("row " + std::to_string(row) + " is missing");
  }

  const backup_options& how_;
  const fs::path& file_;
  store_facts facts_;
};

/// The copy gets its name: as a backup, or as what is no backup.
std::optional<store_error> name_copy(const backup_options& how, const fs::path& unfinished) {
  auto wrong = copy_check(how, unfinished).run();
  if (wrong && wrong->what != store_error::kind::corrupt) return wrong;
  const fs::path finished = how.to / (wrong ? damaged_copy_name : database_name);
  std::error_code failed;
  fs::rename(unfinished, finished, failed);
  if (failed) return trouble(finished, "cannot be made: " + failed.message());
  if (auto fault = make_durable(how.to)) return fault;
  if (!wrong) return std::nullopt;
  return store_error{store_error::kind::corrupt,
                     how.from.string() + " is damaged, and so is its copy, which is kept as " +
                         finished.string() + ": " + wrong->sentence +
                         "; keep the backups that you have, and see 'leasehold verify --data " +
                         how.from.string() + "'"};
}

}  // namespace

actors::store_result<backup_report> backup_store(const backup_options& how) {
  if (auto fault = find_lost_database(how.from / database_name)) return *fault;
  if (auto fault = find_lost_log(how.from / database_name)) return *fault;
  std::error_code ignored;
  if (!fs::exists(how.from / database_name, ignored)) {
    return store_error{
        store_error::kind::foreign,
        how.from.string() + " holds no store: there is no " + (how.from / database_name).string()};
  }
  if (auto fault = prepare_target(how.to)) return *fault;
  const fs::path unfinished = how.to / "leasehold.db.unfinished";
  const fs::path finished = how.to / database_name;
  backup_report report;
  auto fault = copy_into(how, unfinished, report);
  if (!fault) fault = make_durable(unfinished);
  if (!fault) fault = name_copy(how, unfinished);
  if (fault) {
    for (const char* end : {"", "-journal", "-wal", "-shm"}) {
      fs::remove(unfinished.string() + end, ignored);
    }
    return *fault;
  }
  report.bytes = size_of(finished);
  return report;
}

}  // namespace leasehold::storage
