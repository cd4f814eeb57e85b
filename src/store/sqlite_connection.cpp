#include "src/store/sqlite_connection.hpp"

#include <thread>

namespace leasehold::storage {

namespace {

using actors::store_error;

constexpr std::chrono::milliseconds default_lock_wait{5000};
constexpr std::chrono::microseconds lock_poll{300};

store_error::kind kind_of(int code) noexcept {
  switch (code) {
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
      return store_error::kind::fatal;
    default:
      break;
  }
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:  // too many others for too long
      return store_error::kind::busy;
    case SQLITE_FULL:
      return store_error::kind::full;
    case SQLITE_CORRUPT:
      return store_error::kind::corrupt;
    case SQLITE_NOTADB:
      return store_error::kind::foreign;
    default:
      return store_error::kind::io;
  }
}

std::string_view way_out(store_error::kind what) noexcept {
  switch (what) {
    case store_error::kind::busy:
      return "another process holds the write lock; try again";
    case store_error::kind::full:
      return "free space and try again";
    case store_error::kind::io:
      return "check the disk and the permissions of the directory";
    case store_error::kind::corrupt:
      return "the file is damaged and was not touched; restore the directory from a backup";
    case store_error::kind::foreign:
      return "the file is not a Leasehold store; name another directory";
    case store_error::kind::taken:
      return "stop the other coordinator first";
    case store_error::kind::deposed:
      return "another coordinator has the store now";
    case store_error::kind::fatal:
      return "what reached the disk is not known; the process must stop and recover";
  }
  return {};
}

}  // namespace

store_error error_from(int code, std::string_view doing, std::string_view detail) {
  const store_error::kind what = kind_of(code);
  std::string sentence(doing);
  sentence += ": ";
  sentence += detail;
  sentence += "; ";
  sentence += way_out(what);
  return {what, std::move(sentence)};
}

statement::statement(sqlite3* db, std::string_view sql) {
  sqlite3_stmt* made = nullptr;
  sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &made,
                     nullptr);
  statement_.reset(made);
}

statement& statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

statement& statement::bind_text(int index, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), index, value.data() != nullptr ? value.data() : "",
                      value.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

statement& statement::bind_blob(int index, std::string_view value) {
  sqlite3_bind_blob64(statement_.get(), index, value.data() != nullptr ? value.data() : "",
                      value.size(), SQLITE_STATIC);
  return *this;
}

int statement::step() { return statement_ ? sqlite3_step(statement_.get()) : SQLITE_ERROR; }

int statement::run() {
  const int code = step();
  reset();
  return code;
}

void statement::reset() {
  if (statement_) sqlite3_reset(statement_.get());
}

std::int64_t statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view statement::bytes(int column) const {
  const void* begin = sqlite3_column_blob(statement_.get(), column);
  if (begin == nullptr) return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {static_cast<const char*>(begin), size};
}

actors::store_result<connection> connection::open(const std::filesystem::path& file, access how) {
  connection made;
  made.file_ = file.string();
  const int flags = how == access::read_only       ? SQLITE_OPEN_READONLY
                    : how == access::write_present ? SQLITE_OPEN_READWRITE
                                                   : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(made.file_.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  made.db_.reset(db);
  if (code != SQLITE_OK) return made.error(code, "opening");
  sqlite3_extended_result_codes(db, 1);
  // Whoever closes last would copy the write-ahead log into a file that was just found damaged.
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  made.wait_for_lock(default_lock_wait);
  return made;
}

void connection::wait_for_lock(std::chrono::milliseconds most) {
  sqlite3_busy_timeout(db_.get(), static_cast<int>(most.count()));
}

void connection::poll_for_lock(std::chrono::milliseconds most) {
  polling_ = std::make_unique<polling>(polling{most, {}});
  sqlite3_busy_handler(
      db_.get(),
      [](void* state, int asked_before) {
        auto& poll = *static_cast<polling*>(state);
        const auto now = std::chrono::steady_clock::now();
        if (asked_before == 0) poll.until = now + poll.most;
        if (now >= poll.until) return 0;
        std::this_thread::sleep_for(lock_poll);
        return 1;
      },
      polling_.get());
}

std::optional<store_error> connection::execute(const char* sql, std::string_view doing) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return std::nullopt;
  return error(code, doing);
}

store_error connection::error(int code, std::string_view doing) const {
  std::string where(doing);
  where += ' ';
  where += file_;
  // The steps of a backup leave their error to the backup alone.
  const bool told = db_ && sqlite3_extended_errcode(db_.get()) == code;
  return error_from(code, where, told ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code));
}

store_error connection::last_error(std::string_view doing) const {
  return error(sqlite3_extended_errcode(db_.get()), doing);
}

transaction::~transaction() {
  if (open_) sqlite3_exec(on_.raw(), "ROLLBACK", nullptr, nullptr, nullptr);
}

std::optional<store_error> transaction::begin_writing() {
  auto fault = on_.execute("BEGIN IMMEDIATE", "beginning to write");
  open_ = !fault;
  return fault;
}

std::optional<store_error> transaction::begin_reading() {
  auto fault = on_.execute("BEGIN", "beginning to read");
  open_ = !fault;
  return fault;
}

std::optional<store_error> transaction::commit() {
  auto fault = on_.execute("COMMIT", "committing to");
  // After some errors SQLite has rolled back by itself, after others the transaction is still open.
  open_ = fault && sqlite3_get_autocommit(on_.raw()) == 0;
  return fault;
}

}  // namespace leasehold::storage
