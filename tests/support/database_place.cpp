#include "support/database_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <sstream>
#include <string_view>

#include "src/store/postgres_epoch.hpp"
#include "support/eventually.hpp"

namespace leasehold::tests {

namespace {

using session = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

std::int64_t number(const PGresult* from, int row, int column) {
  return std::stoll(PQgetvalue(from, row, column));
}

std::string bytes(const PGresult* from, int row, int column) {
  std::size_t size = 0;
  auto* made =
      PQunescapeBytea(reinterpret_cast<const unsigned char*>(PQgetvalue(from, row, column)), &size);
  std::string out(reinterpret_cast<const char*>(made), size);
  PQfreemem(made);
  return out;
}

/// Runs a query; what went wrong becomes a fault.
answer ask(PGconn* of, const char* query, stored_log& into) {
  answer said(PQexec(of, query), &PQclear);
  const auto status = PQresultStatus(said.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    into.faults.emplace_back(PQerrorMessage(of));
    said.reset(PQmakeEmptyPGresult(of, PGRES_TUPLES_OK));
  }
  return said;
}

}  // namespace

stored_log read_postgres_log(const std::string& url) {
  stored_log out;
  const session db(PQconnectdb(url.c_str()), &PQfinish);
  if (PQstatus(db.get()) != CONNECTION_OK) {
    out.faults.emplace_back(PQerrorMessage(db.get()));
    return out;
  }
  // One view of all: the log may be cut meanwhile.
  ask(db.get(), "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", out);
  const auto facts = ask(db.get(), "SELECT anchor_row FROM leasehold.store", out);
  if (PQntuples(facts.get()) == 1) out.cut = number(facts.get(), 0, 0);
  const auto batches = ask(
      db.get(), "SELECT first_row, last_row, body FROM leasehold.batch ORDER BY first_row", out);
  for (int i = 0; i < PQntuples(batches.get()); ++i) {
    add_batch(out, number(batches.get(), i, 0), number(batches.get(), i, 1),
              bytes(batches.get(), i, 2));
  }
  const auto floors = ask(db.get(), "SELECT shard, generation FROM leasehold.floor", out);
  for (int i = 0; i < PQntuples(floors.get()); ++i) {
    out.floors[static_cast<std::size_t>(number(floors.get(), i, 0))] = number(floors.get(), i, 1);
  }
  const auto policies = ask(db.get(), "SELECT id FROM leasehold.policy", out);
  for (int i = 0; i < PQntuples(policies.get()); ++i) {
    out.policies.insert(static_cast<std::uint64_t>(number(policies.get(), i, 0)));
  }
  return out;
}

actors::store_result<storage::verify_report> database_place::verify() const {
  return storage::verify_store(storage::postgres_place{read_by_}, {});
}

actors::store_result<std::unique_ptr<actors::store>> database_place::open(const opening& how) {
  auto chosen = options;
  chosen.access.url = reached_by_;
  chosen.access.owner = owner_ + "-" + std::to_string(++opened_);
  chosen.restored_backup = how.restored_backup;
  chosen.now = how.now;
  auto epoch = storage::postgres_epoch::open(chosen.access);
  if (auto* fault = std::get_if<actors::store_error>(&epoch)) return std::move(*fault);
  auto& held = std::get<storage::postgres_epoch>(epoch);
  auto seen = held.read();
  if (auto* fault = std::get_if<actors::store_error>(&seen)) return std::move(*fault);
  auto taken = held.take(std::get<storage::epoch_state>(seen), chosen.access.owner, "");
  if (auto* fault = std::get_if<actors::store_error>(&taken)) return std::move(*fault);
  const auto& state = std::get<std::optional<storage::epoch_state>>(taken);
  if (!state) {
    return actors::store_error{actors::store_error::kind::taken, "somebody else took the epoch"};
  }
  chosen.epoch = state->epoch;
  return storage::open_postgres_store(chosen);
}

kept_tables::kept_tables(const std::string& url) : database_(url) {
  std::istringstream tables(database_.ask(
      "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'leasehold'"));
  database_.ask("CREATE SCHEMA kept");
  std::string removed;
  std::string filled;
  for (std::string table; tables >> table;) {
    database_.ask("CREATE TABLE kept." + table + " AS TABLE leasehold." + table);
    // Of a few rows: a new file for each table would take longer.
    removed += "DELETE FROM leasehold." + table + ";";
    filled += "INSERT INTO leasehold." + table + " SELECT * FROM kept." + table + ";";
  }
  EXPECT_FALSE(removed.empty());
  put_back_ = removed + filled;
}

void kept_tables::put_back() {
  // What a session that was cut had begun may go on in the server for a moment.
  EXPECT_TRUE(eventually([this] {
    if (!database_.is_open()) database_.reopen();
    return database_.ask(put_back_).starts_with("INSERT");
  }));
}

}  // namespace leasehold::tests
