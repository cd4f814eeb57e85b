#include "src/store/sqlite_dispatch_rows.hpp"

#include <utility>

namespace leasehold::storage {

namespace {

using actors::store_error;
using actors::store_result;
using protocol::dispatch_record;
using protocol::lease_key;

// A handle is in a table of its own, which nothing that is shown reads.
constexpr const char* tables = R"(
  CREATE TABLE cancel_dispatch (
    tenant TEXT NOT NULL, lease TEXT NOT NULL, generation INTEGER NOT NULL,
    cancel_requested_ms INTEGER NOT NULL, cancel_deadline_ms INTEGER NOT NULL, host TEXT NOT NULL,
    stage TEXT NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
    dispatch_count INTEGER NOT NULL, next_attempt_ms INTEGER NOT NULL, lease_owner TEXT NOT NULL,
    lease_token TEXT NOT NULL, lease_expires_ms INTEGER NOT NULL, last_result TEXT NOT NULL,
    last_dispatched_ms INTEGER NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, lease)) WITHOUT ROWID;
  CREATE INDEX cancel_dispatch_open ON cancel_dispatch (tenant, lease) WHERE status <> 'closed';
  CREATE TABLE dispatch_event (
    tenant TEXT NOT NULL, lease TEXT NOT NULL, version INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL, generation INTEGER NOT NULL, dispatch_count INTEGER NOT NULL,
    result TEXT NOT NULL, PRIMARY KEY (tenant, lease, version)) WITHOUT ROWID;
  CREATE TABLE process_handle (
    tenant TEXT NOT NULL, lease TEXT NOT NULL, generation INTEGER NOT NULL, platform TEXT NOT NULL,
    pid INTEGER NOT NULL, boot_id TEXT NOT NULL, start_ticks INTEGER NOT NULL,
    process_group INTEGER NOT NULL, PRIMARY KEY (tenant, lease, generation)) WITHOUT ROWID;
)";

/// The columns in the order in which `record_in` reads them.
std::string select_records(std::string_view token, std::string_view rest) {
  std::string sql =
      "SELECT tenant, lease, generation, cancel_requested_ms, cancel_deadline_ms, host, stage, "
      "status, version, dispatch_count, next_attempt_ms, lease_owner, ";
  sql += token;
  sql +=
      ", lease_expires_ms, last_result, last_dispatched_ms, created_ms, updated_ms "
      "FROM cancel_dispatch ";
  sql += rest;
  return sql;
}
constexpr std::string_view with_token = "lease_token";
constexpr std::string_view without_token = "''";

std::string text_in(const statement& row, int column) { return std::string(row.bytes(column)); }

lease_key key_in(const statement& row) {
  return {protocol::tenant_id(text_in(row, 0)), protocol::lease_id(text_in(row, 1))};
}

store_error damaged(const connection& in, const lease_key& key) {
  return {store_error::kind::corrupt, in.file() + ": the dispatch of job '" + key.lease.value +
                                          "' of tenant '" + key.tenant.value +
                                          "' is not what was stored"};
}

/// Nothing: a word in it is none of ours.
std::optional<dispatch_record> record_in(const statement& row) {
  dispatch_record r;
  r.key = key_in(row);
  r.gen.value = row.integer(2);
  r.cancel_requested_at.ms = row.integer(3);
  r.cancel_deadline.ms = row.integer(4);
  r.host = row.bytes(5);
  const auto stage = protocol::dispatch_stage_from(row.bytes(6));
  const auto status = protocol::dispatch_status_from(row.bytes(7));
  r.version = row.integer(8);
  r.dispatch_count = row.integer(9);
  r.next_attempt_at.ms = row.integer(10);
  r.lease_owner = row.bytes(11);
  r.lease_token = row.bytes(12);
  r.lease_expires_at.ms = row.integer(13);
  const auto result = protocol::dispatch_result_from(row.bytes(14));
  r.last_dispatched_at.ms = row.integer(15);
  r.created_at.ms = row.integer(16);
  r.updated_at.ms = row.integer(17);
  if (!stage || !status || (!result && !row.bytes(14).empty())) return std::nullopt;
  r.stage = *stage;
  r.status = *status;
  if (result) r.last_result = *result;
  return r;
}

std::optional<protocol::dispatch_event> event_in(const statement& row, const lease_key& key) {
  const auto kind = protocol::dispatch_event_kind_from(row.bytes(2));
  const auto result = protocol::dispatch_result_from(row.bytes(5));
  if (!kind || (!result && !row.bytes(5).empty())) return std::nullopt;
  return protocol::dispatch_event{key,
                                  row.integer(0),
                                  {row.integer(1)},
                                  *kind,
                                  {row.integer(3)},
                                  row.integer(4),
                                  result.value_or(protocol::dispatch_result::none)};
}

store_result<std::optional<dispatch_record>> record_of(connection& from, statement& query,
                                                       const lease_key& key) {
  if (!query.prepared()) return from.last_error("reading a dispatch of");
  const int code = query.bind_text(1, key.tenant.value).bind_text(2, key.lease.value).step();
  std::optional<dispatch_record> found;
  if (code == SQLITE_ROW) found = record_in(query);
  query.reset();
  if (code == SQLITE_ROW && !found) return damaged(from, key);
  if (code != SQLITE_ROW && code != SQLITE_DONE) return from.error(code, "reading a dispatch of");
  return found;
}

/// The statement of a page, and what is bound to it, in order.
struct page_sql {
  std::string text;
  std::vector<std::string> words;
};

page_sql page_sql_of(const actors::dispatch_query& what, const lease_key& after) {
  page_sql sql;
  std::string where = "WHERE (tenant, lease) > (?, ?)";
  sql.words = {after.tenant.value, after.lease.value};
  const auto add = [&](std::string_view condition, std::string word) {
    where += condition;
    sql.words.push_back(std::move(word));
  };
  if (what.tenant) add(" AND tenant = ?", what.tenant->value);
  if (what.stage) add(" AND stage = ?", std::string(protocol::word(*what.stage)));
  if (what.host) add(" AND host = ?", *what.host);
  bool has_closed = what.statuses.empty();
  for (std::size_t i = 0; i < what.statuses.size(); ++i) {
    add(i == 0 ? " AND status IN (?" : ", ?", std::string(protocol::word(what.statuses[i])));
    has_closed = has_closed || what.statuses[i] == protocol::dispatch_status::closed;
  }
  if (!what.statuses.empty()) where += ')';
  if (what.claimable) {
    where +=
        " AND CASE status WHEN 'pending' THEN next_attempt_ms WHEN 'retry_wait' THEN "
        "next_attempt_ms WHEN 'leased' THEN lease_expires_ms END <= ?";
  }
  // What is closed stays until its job is forgotten: those that are open have an index.
  if (what.claimable || !has_closed) {
    where = "INDEXED BY cancel_dispatch_open " + where + " AND status <> 'closed'";
  }
  sql.text = select_records(without_token, where + " ORDER BY tenant, lease LIMIT ?");
  return sql;
}

}  // namespace

std::optional<store_error> create_dispatch_tables(connection& in) {
  return in.execute(tables, "making the dispatch tables of");
}

sqlite_dispatch_rows::sqlite_dispatch_rows(connection& on)
    : on_(on),
      find_(on.prepare(select_records(with_token, "WHERE tenant = ? AND lease = ?"))),
      insert_(on.prepare(
          "INSERT INTO cancel_dispatch (tenant, lease, generation, cancel_requested_ms, "
          "cancel_deadline_ms, host, stage, status, version, dispatch_count, next_attempt_ms, "
          "lease_owner, lease_token, lease_expires_ms, last_result, last_dispatched_ms, "
          "created_ms, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")),
      update_(on.prepare(
          "UPDATE cancel_dispatch SET host = ?, stage = ?, status = ?, version = ?, "
          "dispatch_count = ?, next_attempt_ms = ?, lease_owner = ?, lease_token = ?, "
          "lease_expires_ms = ?, last_result = ?, last_dispatched_ms = ?, updated_ms = ? "
          "WHERE tenant = ? AND lease = ? AND version = ?")),
      close_(on.prepare("UPDATE cancel_dispatch SET status = 'closed', version = version + 1, "
                        "lease_owner = '', lease_token = '', lease_expires_ms = 0, "
                        "next_attempt_ms = 0, updated_ms = ? WHERE tenant = ? AND lease = ?")),
      append_(on.prepare("INSERT INTO dispatch_event (tenant, lease, version, at_ms, kind, "
                         "generation, dispatch_count, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
      find_handle_(on.prepare("SELECT platform, pid, boot_id, start_ticks, process_group FROM "
                              "process_handle WHERE tenant = ? AND lease = ? AND generation = ?")),
      put_handle_(on.prepare("INSERT OR REPLACE INTO process_handle (tenant, lease, generation, "
                             "platform, pid, boot_id, start_ticks, process_group) "
                             "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
      drop_handles_(on.prepare("DELETE FROM process_handle WHERE tenant = ?1 AND lease = ?2 AND "
                               "(?3 = 0 OR generation = ?3)")),
      forget_record_(on.prepare("DELETE FROM cancel_dispatch WHERE tenant = ? AND lease = ?")),
      forget_events_(on.prepare("DELETE FROM dispatch_event WHERE tenant = ? AND lease = ?")) {}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::run(statement& what, std::string_view doing) {
  const int code = what.run();
  if (code == SQLITE_DONE) return std::nullopt;
  return on_.error(code, doing);
}

store_result<std::optional<dispatch_record>> sqlite_dispatch_rows::find(const lease_key& key) {
  return record_of(on_, find_, key);
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::insert(const dispatch_record& r) {
  insert_.bind_text(1, r.key.tenant.value)
      .bind_text(2, r.key.lease.value)
      .bind(3, r.gen.value)
      .bind(4, r.cancel_requested_at.ms)
      .bind(5, r.cancel_deadline.ms)
      .bind_text(6, r.host)
      .bind_text(7, protocol::word(r.stage))
      .bind_text(8, protocol::word(r.status))
      .bind(9, r.version)
      .bind(10, r.dispatch_count)
      .bind(11, r.next_attempt_at.ms)
      .bind_text(12, r.lease_owner)
      .bind_text(13, r.lease_token)
      .bind(14, r.lease_expires_at.ms)
      .bind_text(15, protocol::word(r.last_result))
      .bind(16, r.last_dispatched_at.ms)
      .bind(17, r.created_at.ms)
      .bind(18, r.updated_at.ms);
  return run(insert_, "writing a dispatch to");
}

store_result<bool> sqlite_dispatch_rows::update(const dispatch_record& r, std::int64_t before) {
  update_.bind_text(1, r.host)
      .bind_text(2, protocol::word(r.stage))
      .bind_text(3, protocol::word(r.status))
      .bind(4, r.version)
      .bind(5, r.dispatch_count)
      .bind(6, r.next_attempt_at.ms)
      .bind_text(7, r.lease_owner)
      .bind_text(8, r.lease_token)
      .bind(9, r.lease_expires_at.ms)
      .bind_text(10, protocol::word(r.last_result))
      .bind(11, r.last_dispatched_at.ms)
      .bind(12, r.updated_at.ms)
      .bind_text(13, r.key.tenant.value)
      .bind_text(14, r.key.lease.value)
      .bind(15, before);
  if (auto failed = run(update_, "writing a dispatch to")) return *failed;
  return sqlite3_changes(on_.raw()) == 1;
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::close_unread(
    const protocol::dispatch_change& what) {
  close_.bind(1, what.at.ms).bind_text(2, what.key.tenant.value).bind_text(3, what.key.lease.value);
  return run(close_, "closing a dispatch in");
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::append(const protocol::dispatch_event& event) {
  append_.bind_text(1, event.key.tenant.value)
      .bind_text(2, event.key.lease.value)
      .bind(3, event.version)
      .bind(4, event.at.ms)
      .bind_text(5, protocol::word(event.kind))
      .bind(6, event.gen.value)
      .bind(7, event.dispatch_count)
      .bind_text(8, protocol::word(event.result));
  return run(append_, "appending a dispatch event to");
}

store_result<std::optional<protocol::process_handle>> sqlite_dispatch_rows::find_handle(
    const lease_key& key, protocol::generation gen) {
  const int code = find_handle_.bind_text(1, key.tenant.value)
                       .bind_text(2, key.lease.value)
                       .bind(3, gen.value)
                       .step();
  std::optional<protocol::process_handle> found;
  if (code == SQLITE_ROW) {
    found = protocol::process_handle{text_in(find_handle_, 0), find_handle_.integer(1),
                                     text_in(find_handle_, 2), find_handle_.integer(3),
                                     find_handle_.integer(4)};
  }
  find_handle_.reset();
  if (code == SQLITE_ROW || code == SQLITE_DONE) return found;
  return on_.error(code, "reading a handle of");
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::put_handle(
    const lease_key& key, protocol::generation gen, const protocol::process_handle& handle) {
  put_handle_.bind_text(1, key.tenant.value)
      .bind_text(2, key.lease.value)
      .bind(3, gen.value)
      .bind_text(4, handle.platform)
      .bind(5, handle.pid)
      .bind_text(6, handle.boot_id)
      .bind(7, handle.start_ticks)
      .bind(8, handle.process_group);
  return run(put_handle_, "writing a handle to");
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::drop_handles(const lease_key& key,
                                                               protocol::generation gen) {
  drop_handles_.bind_text(1, key.tenant.value).bind_text(2, key.lease.value).bind(3, gen.value);
  return run(drop_handles_, "removing handles from");
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::forget(const lease_key& key) {
  for (statement* each : {&forget_record_, &forget_events_}) {
    each->bind_text(1, key.tenant.value).bind_text(2, key.lease.value);
    if (auto failed = run(*each, "forgetting a dispatch in")) return failed;
  }
  return drop_handles(key, {});
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::begin_part() {
  return on_.execute("SAVEPOINT part", "writing a dispatch to");
}

sqlite_dispatch_rows::fault sqlite_dispatch_rows::end_part(bool keep) {
  return on_.execute(keep ? "RELEASE part" : "ROLLBACK TO part; RELEASE part",
                     "writing a dispatch to");
}

store_result<actors::dispatch_page> read_dispatch_page(connection& from,
                                                       const actors::dispatch_query& what,
                                                       protocol::instant now) {
  const auto after = actors::key_of(what.from);
  if (!after) return actors::unknown_cursor();
  const std::size_t limit = actors::bounded_page(what.limit);
  const page_sql sql = page_sql_of(what, *after);
  statement query = from.prepare(sql.text);
  int index = 0;
  for (const std::string& each : sql.words) query.bind_text(++index, each);
  if (what.claimable) query.bind(++index, now.ms);
  query.bind(++index, static_cast<std::int64_t>(limit) + 1);
  if (!query.prepared()) return from.last_error("reading dispatches of");
  actors::dispatch_page page;
  lease_key last;
  int code = query.step();
  for (std::size_t rows = 0; code == SQLITE_ROW && rows < limit; ++rows, code = query.step()) {
    last = key_in(query);
    // One that cannot be read does not hide those behind it.
    if (auto record = record_in(query)) page.records.push_back(std::move(*record));
  }
  if (code == SQLITE_ROW) page.next = actors::cursor_after(last);
  if (code != SQLITE_ROW && code != SQLITE_DONE) return from.error(code, "reading dispatches of");
  return page;
}

store_result<std::optional<dispatch_record>> read_dispatch(connection& from, const lease_key& key) {
  statement query = from.prepare(select_records(without_token, "WHERE tenant = ? AND lease = ?"));
  return record_of(from, query, key);
}

store_result<std::vector<protocol::dispatch_event>> read_dispatch_events(connection& from,
                                                                         const lease_key& key,
                                                                         std::int64_t after,
                                                                         std::size_t limit) {
  statement query = from.prepare(
      "SELECT version, at_ms, kind, generation, dispatch_count, result FROM dispatch_event "
      "WHERE tenant = ? AND lease = ? AND version > ? ORDER BY version LIMIT ?");
  if (!query.prepared()) return from.last_error("reading dispatch events of");
  query.bind_text(1, key.tenant.value)
      .bind_text(2, key.lease.value)
      .bind(3, after)
      .bind(4, static_cast<std::int64_t>(actors::bounded_page(limit)));
  std::vector<protocol::dispatch_event> found;
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    auto event = event_in(query, key);
    if (!event) return damaged(from, key);
    found.push_back(std::move(*event));
  }
  if (code != SQLITE_DONE) return from.error(code, "reading dispatch events of");
  return found;
}

store_result<std::vector<dispatch_record>> read_exited_dispatches(connection& from,
                                                                  protocol::instant since,
                                                                  std::size_t limit) {
  statement query =
      from.prepare(select_records(without_token,
                                  "INDEXED BY cancel_dispatch_open WHERE status <> 'closed' AND "
                                  "last_result = 'already_exited' AND "
                                  "updated_ms >= ? ORDER BY updated_ms, tenant, lease LIMIT ?"));
  if (!query.prepared()) return from.last_error("reading dispatches of");
  query.bind(1, since.ms).bind(2, static_cast<std::int64_t>(actors::bounded_page(limit)));
  std::vector<dispatch_record> found;
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    if (auto record = record_in(query)) found.push_back(std::move(*record));
  }
  if (code != SQLITE_DONE) return from.error(code, "reading dispatches of");
  return found;
}

store_result<actors::dispatch_counts> count_dispatches(connection& from) {
  statement query = from.prepare(
      "SELECT stage, status, last_result, count(*), min(created_ms) FROM cancel_dispatch "
      "GROUP BY stage, status, last_result");
  if (!query.prepared()) return from.last_error("counting dispatches of");
  actors::dispatch_counts found;
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    const auto stage = protocol::dispatch_stage_from(query.bytes(0));
    const auto status = protocol::dispatch_status_from(query.bytes(1));
    const auto result = protocol::dispatch_result_from(query.bytes(2));
    if (!stage || !status) continue;
    found.cells.push_back({*stage,
                           *status,
                           result.value_or(protocol::dispatch_result::none),
                           query.integer(3),
                           {query.integer(4)}});
  }
  if (code != SQLITE_DONE) return from.error(code, "counting dispatches of");
  return found;
}

}  // namespace leasehold::storage
