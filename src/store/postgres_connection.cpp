#include "src/store/postgres_connection.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "src/store/store_url.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using std::chrono::milliseconds;

std::string_view text_or_empty(const char* text) { return text != nullptr ? text : ""; }

/// The first line: libpq adds hints and the statement below it.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// A warning is looked at by whoever commits; all else that a server remarks is of no interest.
void note_warning(void* warned, const PGresult* said) {
  const auto severity = text_or_empty(PQresultErrorField(said, PG_DIAG_SEVERITY_NONLOCALIZED));
  if (severity == "WARNING") *static_cast<bool*>(warned) = true;
}

/// libpq takes whole seconds, and 2 at least.
std::string connect_seconds(milliseconds most) {
  return std::to_string(std::max<std::int64_t>(2, (most.count() + 999) / 1000));
}

PGconn* connect(const postgres_access& how) {
  const std::string name = "leasehold/" + how.owner;
  const std::string seconds = connect_seconds(how.limits.connect);
  const std::string unheard = std::to_string(how.limits.answer.count());
  // What stands behind the URL takes the place of what the URL says.
  const std::array<std::pair<const char*, const char*>, 9> settings{{
      {"dbname", how.url.c_str()},
      {"application_name", name.c_str()},
      {"connect_timeout", seconds.c_str()},
      {"client_encoding", "UTF8"},
      {"keepalives", "1"},
      {"keepalives_idle", "5"},
      {"keepalives_interval", "2"},
      {"keepalives_count", "3"},
      {"tcp_user_timeout", unheard.c_str()},
  }};
  std::array<const char*, settings.size() + 1> keywords{};
  std::array<const char*, settings.size() + 1> values{};
  for (std::size_t i = 0; i < settings.size(); ++i) {
    keywords[i] = settings[i].first;
    values[i] = settings[i].second;
  }
  return PQconnectdbParams(keywords.data(), values.data(), 1);
}

}  // namespace

actors::store_result<postgres_connection> postgres_connection::open(const postgres_access& how) {
  auto opened = connected(how);
  if (std::holds_alternative<store_error>(opened)) return opened;
  auto& made = std::get<postgres_connection>(opened);
  if (auto fault = made.refuse_pooler(how)) return *fault;
  if (auto fault = made.set_up(how)) return *fault;
  return opened;
}

actors::store_result<postgres_connection> postgres_connection::connected(
    const postgres_access& how) {
  postgres_connection made;
  made.url_ = how.url;
  made.owner_ = how.owner;
  made.place_ = shown_postgres(how.url);
  made.answer_wait_ = how.limits.answer;
  made.db_.reset(connect(how));
  if (!made.db_) return store_error{store_error::kind::io, "there is no memory for a connection"};
  if (PQstatus(made.db_.get()) != CONNECTION_OK) {
    return store_error{made.lost("connecting: " + first_line(PQerrorMessage(made.db_.get())))};
  }
  PQsetNoticeReceiver(made.db_.get(), note_warning, made.warned_.get());
  if (PQserverVersion(made.db_.get()) < 140'000) {
    return store_error{store_error::kind::foreign,
                       made.place_ + ": the server is older than PostgreSQL 14; upgrade it"};
  }
  if (PQsetnonblocking(made.db_.get(), 1) != 0 || PQenterPipelineMode(made.db_.get()) != 1) {
    return store_error{made.lost("connecting: the connection cannot be used")};
  }
  return made;
}

std::optional<store_error> postgres_connection::set_up(const postgres_access& how) {
  const auto ms = [](milliseconds time) { return std::to_string(time.count()); };
  postgres_pipeline settings(*this);
  // A commit is confirmed when it is durable, whatever the server's default is; with a synchronous
  // standby, when it is durable there, too.
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"synchronous_commit", "on"},
           {"statement_timeout", ms(how.limits.statement)},
           {"lock_timeout", ms(how.limits.lock)},
           {"idle_in_transaction_session_timeout", ms(how.limits.idle_in_transaction)},
           {"tcp_user_timeout", ms(how.limits.answer)},
           {"default_transaction_isolation", "read committed"},
           {"client_min_messages", "warning"},
           {"search_path", "leasehold"}}) {
    settings.add_once("SELECT pg_catalog.set_config($1, $2, false)",
                      postgres_values().text(name).text(value));
  }
  if (auto fault = settings.finish()) return *fault;
  return std::nullopt;
}

postgres_error postgres_connection::lost(std::string_view why) {
  broken_ = true;
  return {{store_error::kind::io,
           without_passwords(
               place_ + ": " + std::string(why) + "; check that the server runs and can be reached",
               url_)},
          "",
          true};
}

postgres_error postgres_connection::error_of(const PGresult* from) {
  const std::string state(text_or_empty(PQresultErrorField(from, PG_DIAG_SQLSTATE)));
  const auto severity = text_or_empty(PQresultErrorField(from, PG_DIAG_SEVERITY_NONLOCALIZED));
  const bool ends = severity == "FATAL" || severity == "PANIC";
  if (state.empty()) return lost(first_line(PQresultErrorMessage(from)));
  std::string said(text_or_empty(PQresultErrorField(from, PG_DIAG_MESSAGE_PRIMARY)));
  std::string sentence = place_ + ": " + said + " (SQLSTATE " + state + ")";
  if (const auto more = way_out(state); !more.empty()) sentence.append("; ").append(more);
  if (ends) broken_ = true;
  return {{kind_of_sqlstate(state), without_passwords(std::move(sentence), url_)}, state, ends};
}

std::optional<postgres_error> postgres_connection::wait_for_socket(bool writing) {
  pollfd socket{PQsocket(db_.get()), static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN), 0};
  const auto until = std::chrono::steady_clock::now() + answer_wait_;
  while (true) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    const int ready =
        ::poll(&socket, 1, static_cast<int>(std::max<std::int64_t>(0, left.count() + 1)));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return lost("waiting for the server failed");
    if (ready == 0) {
      return lost("the server has not answered for " + std::to_string(answer_wait_.count()) +
                  " ms");
    }
  }
  if ((socket.revents & ~POLLOUT) != 0 && PQconsumeInput(db_.get()) == 0) {
    return lost(first_line(PQerrorMessage(db_.get())));
  }
  return std::nullopt;
}

std::optional<postgres_error> postgres_connection::flush() {
  while (true) {
    const int left = PQflush(db_.get());
    if (left == 0) return std::nullopt;
    // What the server said before it closed the connection is read with the results.
    if (left < 0) return lost(first_line(PQerrorMessage(db_.get())));
    if (auto fault = wait_for_socket(true)) return fault;
  }
}

postgres_result<PGresult*> postgres_connection::next_result() {
  while (PQisBusy(db_.get()) != 0) {
    if (PQstatus(db_.get()) != CONNECTION_OK) break;
    if (auto fault = wait_for_socket(false)) return *fault;
  }
  return PQgetResult(db_.get());
}

bool postgres_connection::is_open() {
  if (broken_ || !db_ || PQstatus(db_.get()) != CONNECTION_OK) return false;
  // A server that ended, or ended this session, has said so by now.
  pollfd socket{PQsocket(db_.get()), POLLIN, 0};
  if (::poll(&socket, 1, 0) == 0) return true;
  if (PQconsumeInput(db_.get()) == 0 || PQstatus(db_.get()) != CONNECTION_OK) broken_ = true;
  if (::poll(&socket, 1, 0) != 0) broken_ = true;
  return !broken_;
}

bool postgres_connection::usable() {
  return is_open() && PQtransactionStatus(db_.get()) == PQTRANS_IDLE;
}

postgres_result<postgres_rows> postgres_connection::run(std::string_view sql,
                                                        const postgres_values& with) {
  postgres_rows rows;
  postgres_pipeline one(*this);
  one.add(sql, with, [&rows](postgres_rows&& found) { rows = std::move(found); });
  if (auto fault = one.finish()) return *fault;
  return rows;
}

std::optional<postgres_error> postgres_connection::execute(std::string_view sql) {
  postgres_pipeline all(*this);
  while (!sql.empty()) {
    const std::size_t end = std::min(sql.find(';'), sql.size());
    const std::string_view one = sql.substr(0, end);
    if (one.find_first_not_of(" \n\t") != std::string_view::npos) all.add_once(one);
    sql.remove_prefix(std::min(end + 1, sql.size()));
  }
  return all.finish();
}

}  // namespace leasehold::storage
