// SQLite with owners: a connection, a statement, a transaction, and its result codes as store
// errors.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/actors/store.hpp"

namespace leasehold::storage {

/// The store error that an (extended) result code of SQLite means. `doing`: what was tried, where.
actors::store_error error_from(int code, std::string_view doing, std::string_view detail);

/// A prepared statement. Bound text and blobs must live until it is reset.
class statement {
 public:
  statement() = default;
  statement(sqlite3* db, std::string_view sql);

  [[nodiscard]] bool prepared() const noexcept { return statement_ != nullptr; }

  statement& bind(int index, std::int64_t value);
  statement& bind_text(int index, std::string_view value);
  statement& bind_blob(int index, std::string_view value);
  /// SQLITE_ROW, SQLITE_DONE or an error.
  int step();
  /// Steps a statement that yields no rows, and resets it: SQLITE_DONE or an error.
  int run();
  void reset();

  [[nodiscard]] std::int64_t integer(int column) const;
  /// Text or a blob; lives until the next step.
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  struct finalizer {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, finalizer> statement_;
};

class connection {
 public:
  enum class access : std::uint8_t {
    read_only,
    read_write,     ///< makes a file that is missing
    write_present,  ///< a file that is missing is an error
  };
  /// To be closed without a change to any file: what is in the write-ahead log stays there.
  static actors::store_result<connection> open(const std::filesystem::path& file, access how);
  /// How long a statement waits for another process that has the write lock; 5 s when not set.
  void wait_for_lock(std::chrono::milliseconds most);
  /// The same by a look every 0.3 ms: the one that has the lock leaves it free for a moment only.
  void poll_for_lock(std::chrono::milliseconds most);

  /// Runs statements that yield nothing of interest.
  std::optional<actors::store_error> execute(const char* sql, std::string_view doing);
  statement prepare(std::string_view sql) { return {db_.get(), sql}; }
  /// The error that `code`, a result of one of this connection's calls, means.
  [[nodiscard]] actors::store_error error(int code, std::string_view doing) const;
  /// The error of the last call.
  [[nodiscard]] actors::store_error last_error(std::string_view doing) const;
  [[nodiscard]] sqlite3* raw() const noexcept { return db_.get(); }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  struct closer {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
  };
  struct polling {
    std::chrono::milliseconds most{};
    std::chrono::steady_clock::time_point until;
  };
  std::unique_ptr<polling> polling_;  ///< outlives the database, which has its address
  std::unique_ptr<sqlite3, closer> db_;
  std::string file_;
};

/// Rolls back what was not committed.
class transaction {
 public:
  explicit transaction(connection& on) : on_(on) {}
  ~transaction();
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  /// With the write lock from the start, so that it cannot fail for it half way.
  std::optional<actors::store_error> begin_writing();
  std::optional<actors::store_error> begin_reading();
  std::optional<actors::store_error> commit();

 private:
  connection& on_;
  bool open_ = false;
};

}  // namespace leasehold::storage
