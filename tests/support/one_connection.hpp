// A connection of libpq that a test speaks over by hand.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>

namespace leasehold::tests {

class one_connection {
 public:
  explicit one_connection(const std::string& url) : made_(PQconnectdb(url.c_str()), &PQfinish) {
    PQsetNoticeProcessor(
        made_.get(), [](void*, const char*) {}, nullptr);
  }
  [[nodiscard]] bool is_open() const { return PQstatus(made_.get()) == CONNECTION_OK; }
  /// The one value, or the command's tag; "!" and the SQLSTATE, or "!" alone, of what failed.
  std::string ask(const std::string& statement) {
    const answer said(PQexec(made_.get(), statement.c_str()), &PQclear);
    return text_of(said.get());
  }
  /// The same in the extended protocol.
  std::string ask_extended(const std::string& statement) {
    const answer said(
        PQexecParams(made_.get(), statement.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0),
        &PQclear);
    return text_of(said.get());
  }
  /// Connects again, when the server has ended the session.
  void reopen() { PQreset(made_.get()); }
  PGconn* get() { return made_.get(); }

 private:
  using answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

  static std::string text_of(PGresult* said) {
    switch (PQresultStatus(said)) {
      case PGRES_TUPLES_OK:
        return PQntuples(said) == 1 ? PQgetvalue(said, 0, 0) : "";
      case PGRES_COMMAND_OK:
        return PQcmdStatus(said);
      default: {
        const char* state = PQresultErrorField(said, PG_DIAG_SQLSTATE);
        return std::string("!") + (state == nullptr ? "" : state);
      }
    }
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> made_;
};

}  // namespace leasehold::tests
