// libpq with owners: a connection, statements sent together, binary parameters and rows, and
// SQLSTATEs as store errors.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/actors/store_error.hpp"

namespace leasehold::storage {

/// How long a database may take.
struct postgres_limits {
  std::chrono::milliseconds connect{5'000};     ///< of each host of the URL; at least 2 s
  std::chrono::milliseconds statement{10'000};  ///< the server ends a statement after this
  std::chrono::milliseconds lock{3'000};        ///< and one that waits for a lock after this
  /// The server ends a session that leaves a transaction open for so long.
  std::chrono::milliseconds idle_in_transaction{10'000};
  /// Without one byte of an answer for so long the connection counts as lost.
  std::chrono::milliseconds answer{15'000};
};

/// How long a pooler may let a session wait for a connection while it is found out what it does.
inline constexpr std::chrono::milliseconds pooler_wait{3'000};

/// Which database, and who asks.
struct postgres_access {
  std::string url;    ///< any URI of libpq; may hold a password, which no sentence ever has
  std::string owner;  ///< application_name is 'leasehold/' and this; at most 53 bytes
  postgres_limits limits;
};

/// What the server, or libpq, said.
struct postgres_error : actors::store_error {
  std::string state;  ///< SQLSTATE; empty when libpq said it
  /// The session has ended: whether what was asked is done, a COMMIT for one, is not known.
  bool is_lost = false;
};

template <class T>
using postgres_result = std::variant<T, postgres_error>;

/// What an SQLSTATE means for a store.
actors::store_error::kind kind_of_sqlstate(std::string_view state) noexcept;
/// What whoever runs the server can do about it; empty: nothing that is known.
std::string_view way_out(std::string_view state) noexcept;
/// It may pass when the whole transaction is tried again: a serialization failure, a deadlock, a
/// lock or statement that took too long.
bool may_pass(std::string_view state) noexcept;

/// The values $1, $2, ... of one statement, in binary form and copied.
class postgres_values {
 public:
  postgres_values& integer(std::int64_t value);                           ///< int8
  postgres_values& boolean(bool value);                                   ///< bool
  postgres_values& text(std::string_view value);                          ///< text
  postgres_values& bytes(std::string_view value);                         ///< bytea
  postgres_values& null();                                                ///< of any type
  postgres_values& integers(std::span<const std::int64_t> values);        ///< int8[]
  postgres_values& texts(std::span<const std::string_view> values);       ///< text[]
  postgres_values& byte_texts(std::span<const std::string_view> values);  ///< bytea[]

 private:
  friend class postgres_pipeline;
  postgres_values& add(Oid type, std::string value);
  postgres_values& array(Oid of, Oid element, std::span<const std::string_view> values);

  std::vector<Oid> types_;
  std::vector<std::optional<std::string>> values_;
};

/// The rows of one answer, in binary form. Columns are of the types that are read: an int2, int4 or
/// int8 as integer, a text or bytea as bytes.
class postgres_rows {
 public:
  postgres_rows() = default;
  explicit postgres_rows(PGresult* owned) : result_(owned) {}

  [[nodiscard]] int count() const;
  [[nodiscard]] bool is_null(int row, int column) const;
  [[nodiscard]] std::int64_t integer(int row, int column) const;
  [[nodiscard]] bool boolean(int row, int column) const;
  /// Lives as long as these rows.
  [[nodiscard]] std::string_view bytes(int row, int column) const;
  /// How many rows an INSERT, UPDATE or DELETE changed.
  [[nodiscard]] std::int64_t changed() const;
  /// "COMMIT", "UPDATE 3": what was done.
  [[nodiscard]] std::string_view command() const;
  [[nodiscard]] const PGresult* raw() const noexcept { return result_.get(); }

 private:
  struct clearer {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
  };
  std::unique_ptr<PGresult, clearer> result_;
};

/// One session. One thread at a time. After an error inside a transaction, or a lost connection, it
/// is not usable any more: its owner closes it and opens another.
class postgres_connection {
 public:
  /// Connects, refuses a pooler that shares sessions, and sets what every session of ours has.
  static actors::store_result<postgres_connection> open(const postgres_access& how);

  /// One statement on its own, in a transaction of its own unless one was begun.
  postgres_result<postgres_rows> run(std::string_view sql, const postgres_values& with = {});
  /// Statements without values and rows of interest, separated by semicolons.
  std::optional<postgres_error> execute(std::string_view sql);

  /// False: it is lost, in a transaction, or of unknown state. Looks at the socket, does not wait.
  [[nodiscard]] bool usable();
  /// False: the server has closed it, or said something that nobody asked. May be in a transaction.
  [[nodiscard]] bool is_open();
  /// Database, host and user, without a password: names the place in sentences.
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  [[nodiscard]] const std::string& owner() const noexcept { return owner_; }
  [[nodiscard]] int backend_pid() const { return PQbackendPID(db_.get()); }
  [[nodiscard]] PGconn* raw() const noexcept { return db_.get(); }
  /// A server of 14 or later; 150003 is 15.3.
  [[nodiscard]] int server_version() const { return PQserverVersion(db_.get()); }
  /// That a commit was not confirmed by a synchronous standby is said as a warning only.
  bool take_warned() noexcept { return std::exchange(*warned_, false); }

 private:
  friend class postgres_pipeline;
  postgres_connection() = default;
  /// Connects, and changes nothing of the session.
  static actors::store_result<postgres_connection> connected(const postgres_access& how);
  /// A pooler that does not give a session to us alone.
  std::optional<actors::store_error> refuse_pooler(const postgres_access& how);
  std::optional<actors::store_error> set_up(const postgres_access& how);
  [[nodiscard]] postgres_error lost(std::string_view why);
  [[nodiscard]] postgres_error error_of(const PGresult* from);
  std::optional<postgres_error> flush();
  /// The next result, waited for; without one: the end of one statement's results.
  postgres_result<PGresult*> next_result();
  /// Until the socket can be written (when asked) or has something to read, which is taken.
  std::optional<postgres_error> wait_for_socket(bool writing);

  struct closer {
    void operator()(PGconn* db) const noexcept { PQfinish(db); }
  };
  std::unique_ptr<PGconn, closer> db_;
  std::string url_;  ///< only to keep its passwords out of sentences
  std::string place_;
  std::string owner_;
  std::chrono::milliseconds answer_wait_{};
  bool broken_ = false;
  std::unique_ptr<bool> warned_ = std::make_unique<bool>(false);
  std::map<std::string, std::string, std::less<>> prepared_;  ///< SQL to its name
  std::int64_t names_given_ = 0;
};

/// Statements that are sent together and answered in order. Without a BEGIN among them they are one
/// transaction, committed at the end. The first error ends it: nothing behind it is done.
class postgres_pipeline {
 public:
  using on_rows = std::function<void(postgres_rows&&)>;

  explicit postgres_pipeline(postgres_connection& on) : on_(on) {}
  postgres_pipeline(const postgres_pipeline&) = delete;
  postgres_pipeline& operator=(const postgres_pipeline&) = delete;

  /// `sql` is prepared once in the life of the connection, so it is one of a bounded number.
  /// `then` gets its rows, while `finish` runs. Nothing is on its way before `finish`.
  void add(std::string_view sql, postgres_values with = {}, on_rows then = {});
  /// A statement that is not worth preparing: the text may be any.
  void add_once(std::string_view sql, postgres_values with = {}, on_rows then = {});
  /// Sends everything and waits for every answer. After an error the connection is not usable.
  std::optional<postgres_error> finish();
  /// How many statements were answered when `finish` failed: the index of the one that did.
  [[nodiscard]] std::size_t answered() const noexcept { return answered_; }
  [[nodiscard]] std::size_t size() const noexcept { return statements_.size(); }

 private:
  struct waiting {
    std::string sql;
    postgres_values with;
    on_rows then;
    bool is_prepared = true;
    std::string prepares;  ///< the name under which it is to be prepared
  };
  bool send(waiting& what);
  bool send_prepare(waiting& what);
  std::optional<postgres_error> read_answers();
  std::optional<postgres_error> read_answer(const waiting& what, bool is_prepare);
  std::optional<postgres_error> read_sync();

  postgres_connection& on_;
  std::vector<waiting> statements_;
  std::size_t answered_ = 0;
};

}  // namespace leasehold::storage
