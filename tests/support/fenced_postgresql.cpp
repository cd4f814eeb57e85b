#include "support/fenced_postgresql.hpp"

#include <utility>

namespace leasehold::tests {
namespace {

constexpr auto work_table =
    "CREATE TABLE IF NOT EXISTS work (number bigserial PRIMARY KEY,"
    " key text NOT NULL, token bigint NOT NULL, text text NOT NULL);";
/// Two connections that make the same table at once get in each other's way.
constexpr auto one_at_a_time = "BEGIN; SELECT pg_advisory_xact_lock(1);";

}  // namespace

std::unique_ptr<fenced_postgresql> fenced_postgresql::open(const std::string& connection_string) {
  connection server(PQconnectdb(connection_string.c_str()), &PQfinish);
  if (PQstatus(server.get()) != CONNECTION_OK) return nullptr;
  PQsetNoticeProcessor(
      server.get(), [](void*, const char*) {}, nullptr);
  std::unique_ptr<fenced_postgresql> out(new fenced_postgresql(std::move(server)));
  const bool is_ready =
      out->execute(one_at_a_time + shipped_sql("postgresql-table.sql") + work_table + "COMMIT;");
  return is_ready ? std::move(out) : nullptr;
}

bool fenced_postgresql::execute(const std::string& statements) {
  const result said(PQexec(server_.get(), statements.c_str()), &PQclear);
  const auto status = PQresultStatus(said.get());
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

std::string fenced_postgresql::value(const std::string& query) {
  const auto said = run(query, {});
  return PQntuples(said.get()) == 1 ? PQgetvalue(said.get(), 0, 0) : "";
}

fenced_postgresql::result fenced_postgresql::run(const std::string& statement,
                                                 const std::vector<std::string>& values) {
  std::vector<const char*> pointers;
  pointers.reserve(values.size());
  for (const auto& each : values) pointers.push_back(each.c_str());
  return {PQexecParams(server_.get(), statement.c_str(), static_cast<int>(values.size()), nullptr,
                       pointers.data(), nullptr, nullptr, 0),
          &PQclear};
}

write_end fenced_postgresql::run_fence(const std::string& sql, const std::string& key,
                                       std::int64_t token) {
  const auto said = run(sql, {key, std::to_string(token)});
  sql_state_.clear();
  if (PQresultStatus(said.get()) != PGRES_TUPLES_OK) {
    const char* state = PQresultErrorField(said.get(), PG_DIAG_SQLSTATE);
    sql_state_ = state == nullptr ? "?" : state;
    return write_end::failed;
  }
  return PQntuples(said.get()) == 1 ? write_end::written : write_end::stale;
}

write_end fenced_postgresql::raise(const std::string& key, std::int64_t token) {
  return run_fence(shipped_sql("postgresql-fence.sql"), key, token);
}

write_end fenced_postgresql::raise_known(const std::string& key, std::int64_t token) {
  return run_fence(shipped_sql("postgresql-fence-known.sql"), key, token);
}

write_end fenced_postgresql::write(const std::string& key, std::int64_t token,
                                   const std::string& text) {
  if (!execute("BEGIN")) return write_end::failed;
  write_end end = raise(key, token);
  if (end == write_end::written) {
    const auto row = run("INSERT INTO work (key, token, text) VALUES ($1, $2, $3)",
                         {key, std::to_string(token), text});
    if (PQresultStatus(row.get()) != PGRES_COMMAND_OK) end = write_end::failed;
  }
  if (end == write_end::written && execute("COMMIT")) return end;
  execute("ROLLBACK");
  return end == write_end::written ? write_end::failed : end;
}

std::vector<written_row> fenced_postgresql::rows(const std::string& key) {
  const auto said = run("SELECT token, text FROM work WHERE key = $1 ORDER BY number", {key});
  std::vector<written_row> out;
  out.reserve(static_cast<std::size_t>(PQntuples(said.get())));
  for (int at = 0; at < PQntuples(said.get()); ++at) {
    out.push_back({std::stoll(PQgetvalue(said.get(), at, 0)), PQgetvalue(said.get(), at, 1)});
  }
  return out;
}

}  // namespace leasehold::tests
