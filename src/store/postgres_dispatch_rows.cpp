#include "src/store/postgres_dispatch_rows.hpp"

#include <string>
#include <utility>

namespace leasehold::storage {

// A handle is in a table of its own, which nothing that is shown reads.
const std::string_view postgres_dispatch_tables = R"(
  CREATE TABLE leasehold.cancel_dispatch (
    tenant bytea NOT NULL, lease bytea NOT NULL, generation bigint NOT NULL,
    cancel_requested_ms bigint NOT NULL, cancel_deadline_ms bigint NOT NULL, host text NOT NULL,
    stage text NOT NULL, status text NOT NULL, version bigint NOT NULL,
    dispatch_count bigint NOT NULL, next_attempt_ms bigint NOT NULL, lease_owner text NOT NULL,
    lease_token text NOT NULL, lease_expires_ms bigint NOT NULL, last_result text NOT NULL,
    last_dispatched_ms bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    PRIMARY KEY (tenant, lease));
  CREATE INDEX cancel_dispatch_open ON leasehold.cancel_dispatch (tenant, lease)
    WHERE status <> 'closed';
  CREATE TABLE leasehold.dispatch_event (
    tenant bytea NOT NULL, lease bytea NOT NULL, version bigint NOT NULL, at_ms bigint NOT NULL,
    kind text NOT NULL, generation bigint NOT NULL, dispatch_count bigint NOT NULL,
    result text NOT NULL, PRIMARY KEY (tenant, lease, version));
  CREATE TABLE leasehold.process_handle (
    tenant bytea NOT NULL, lease bytea NOT NULL, generation bigint NOT NULL,
    platform text NOT NULL, pid bigint NOT NULL, boot_id text NOT NULL,
    start_ticks bigint NOT NULL, process_group bigint NOT NULL,
    PRIMARY KEY (tenant, lease, generation));
  CREATE TABLE leasehold.dispatch_clock (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), epoch bigint NOT NULL,
    coordinator_ms bigint NOT NULL, at timestamptz NOT NULL);
)";

namespace {

using actors::store_error;
using actors::store_result;
using protocol::dispatch_record;
using protocol::lease_key;

constexpr std::string_view shown_columns =
    "SELECT d.tenant, d.lease, d.generation, d.cancel_requested_ms, d.cancel_deadline_ms, d.host, "
    "d.stage, d.status, d.version, d.dispatch_count, d.next_attempt_ms, d.lease_owner, '', "
    "d.lease_expires_ms, d.last_result, d.last_dispatched_ms, d.created_ms, d.updated_ms "
    "FROM cancel_dispatch AS d ";

/// The rest of a statement that shows records.
std::string shows(std::string_view rest) { return std::string(shown_columns) + std::string(rest); }

lease_key key_in(const postgres_rows& rows, int row) {
  return {protocol::tenant_id(rows.bytes(row, 0)), protocol::lease_id(rows.bytes(row, 1))};
}

/// Nothing: a word in it is none of ours.
std::optional<dispatch_record> record_in(const postgres_rows& rows, int row) {
  const auto stage = protocol::dispatch_stage_from(rows.bytes(row, 6));
  const auto status = protocol::dispatch_status_from(rows.bytes(row, 7));
  const auto result = protocol::dispatch_result_from(rows.bytes(row, 14));
  if (!stage || !status || (!result && !rows.bytes(row, 14).empty())) return std::nullopt;
  dispatch_record r;
  r.key = key_in(rows, row);
  r.gen.value = rows.integer(row, 2);
  r.cancel_requested_at.ms = rows.integer(row, 3);
  r.cancel_deadline.ms = rows.integer(row, 4);
  r.host = rows.bytes(row, 5);
  r.stage = *stage;
  r.status = *status;
  r.version = rows.integer(row, 8);
  r.dispatch_count = rows.integer(row, 9);
  r.next_attempt_at.ms = rows.integer(row, 10);
  r.lease_owner = rows.bytes(row, 11);
  r.lease_token = rows.bytes(row, 12);
  r.lease_expires_at.ms = rows.integer(row, 13);
  r.last_result = result.value_or(protocol::dispatch_result::none);
  r.last_dispatched_at.ms = rows.integer(row, 15);
  r.created_at.ms = rows.integer(row, 16);
  r.updated_at.ms = rows.integer(row, 17);
  return r;
}

std::optional<protocol::process_handle> handle_in(const postgres_rows& rows, int row, int column) {
  if (rows.is_null(row, column)) return std::nullopt;
  return protocol::process_handle{std::string(rows.bytes(row, column)),
                                  rows.integer(row, column + 1),
                                  std::string(rows.bytes(row, column + 2)),
                                  rows.integer(row, column + 3), rows.integer(row, column + 4)};
}

store_error damaged(const postgres_connection& in, const lease_key& key) {
  return {store_error::kind::corrupt, in.place() + ": the dispatch of job '" + key.lease.value +
                                          "' of tenant '" + key.tenant.value +
                                          "' is not what was stored"};
}

/// One that cannot be read does not hide the others.
std::vector<dispatch_record> records_in(const postgres_rows& rows, int most) {
  std::vector<dispatch_record> found;
  for (int i = 0; i < rows.count() && i < most; ++i) {
    if (auto record = record_in(rows, i)) found.push_back(std::move(*record));
  }
  return found;
}

postgres_values page_values(const actors::dispatch_query& what, const lease_key& after,
                            protocol::instant now, std::size_t limit) {
  std::vector<std::string_view> statuses;
  for (const auto each : what.statuses) statuses.push_back(protocol::word(each));
  postgres_values with;
  with.bytes(after.tenant.value).bytes(after.lease.value).texts(statuses);
  with.text(what.stage ? protocol::word(*what.stage) : "");
  with.boolean(what.host.has_value()).text(what.host.value_or(""));
  with.boolean(what.tenant.has_value()).bytes(what.tenant ? what.tenant->value : "");
  with.boolean(what.claimable).integer(now.ms).integer(static_cast<std::int64_t>(limit) + 1);
  return with;
}

constexpr std::string_view page_conditions =
    "WHERE (d.tenant, d.lease) > ($1, $2) AND (cardinality($3::text[]) = 0 OR d.status = ANY ($3)) "
    "AND ($4::text = '' OR d.stage = $4) AND (NOT $5::boolean OR d.host = $6) "
    "AND (NOT $7::boolean OR d.tenant = $8) AND (NOT $9::boolean OR CASE d.status "
    "WHEN 'pending' THEN d.next_attempt_ms <= $10 WHEN 'retry_wait' THEN d.next_attempt_ms <= $10 "
    "WHEN 'leased' THEN d.lease_expires_ms <= $10 ELSE false END) ";

bool wants_closed(const actors::dispatch_query& what) {
  if (what.claimable) return false;
  if (what.statuses.empty()) return true;
  for (const auto each : what.statuses) {
    if (each == protocol::dispatch_status::closed) return true;
  }
  return false;
}

/// What is to be written, as columns.
struct next_columns {
  std::vector<std::string_view> tenants, leases, hosts, stages, statuses, owners, tokens, results,
      kinds, event_results;
  std::vector<std::int64_t> before, versions, counts, due, expires, dispatched, updated,
      generations;
};

next_columns columns_of(std::span<const next_dispatch> next) {
  next_columns c;
  for (const auto& each : next) {
    const auto& r = each.record;
    c.tenants.emplace_back(r.key.tenant.value);
    c.leases.emplace_back(r.key.lease.value);
    c.before.push_back(each.before);
    c.hosts.emplace_back(r.host);
    c.stages.push_back(protocol::word(r.stage));
    c.statuses.push_back(protocol::word(r.status));
    c.versions.push_back(r.version);
    c.counts.push_back(r.dispatch_count);
    c.due.push_back(r.next_attempt_at.ms);
    c.owners.emplace_back(r.lease_owner);
    c.tokens.emplace_back(r.lease_token);
    c.expires.push_back(r.lease_expires_at.ms);
    c.results.push_back(protocol::word(r.last_result));
    c.dispatched.push_back(r.last_dispatched_at.ms);
    c.updated.push_back(r.updated_at.ms);
    c.kinds.push_back(each.event ? protocol::word(each.event->kind) : "");
    c.generations.push_back(r.gen.value);
    c.event_results.push_back(each.event ? protocol::word(each.event->result) : "");
  }
  return c;
}

// The rows are locked in the order of their keys, as every statement of ours does, and looked at
// again then; an event that is in the way leaves its record as it is.
constexpr std::string_view write_sql =
    "WITH locked AS (SELECT n.* FROM cancel_dispatch AS d JOIN unnest($1::bytea[], $2::bytea[], "
    "$3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], "
    "$10::text[], $11::text[], $12::bigint[], $13::text[], $14::bigint[], $15::bigint[], "
    "$16::text[], $17::bigint[], $18::text[]) AS n (tenant, lease, was, host, stage, status, "
    "version, dispatch_count, next_attempt_ms, lease_owner, lease_token, lease_expires_ms, "
    "last_result, last_dispatched_ms, updated_ms, event_kind, generation, event_result) "
    "ON d.tenant = n.tenant AND d.lease = n.lease AND d.version = n.was "
    "ORDER BY d.tenant, d.lease FOR UPDATE OF d), "
    "appended AS (INSERT INTO dispatch_event (tenant, lease, version, at_ms, kind, generation, "
    "dispatch_count, result) SELECT tenant, lease, version, updated_ms, event_kind, generation, "
    "dispatch_count, event_result FROM locked WHERE event_kind <> '' "
    "ON CONFLICT DO NOTHING RETURNING tenant, lease) "
    "UPDATE cancel_dispatch AS d SET host = c.host, stage = c.stage, status = c.status, "
    "version = c.version, dispatch_count = c.dispatch_count, next_attempt_ms = c.next_attempt_ms, "
    "lease_owner = c.lease_owner, lease_token = c.lease_token, "
    "lease_expires_ms = c.lease_expires_ms, last_result = c.last_result, "
    "last_dispatched_ms = c.last_dispatched_ms, updated_ms = c.updated_ms FROM locked AS c "
    "WHERE d.tenant = c.tenant AND d.lease = c.lease AND (c.event_kind = '' OR EXISTS (SELECT 1 "
    "FROM appended AS a WHERE a.tenant = c.tenant AND a.lease = c.lease)) "
    "RETURNING d.tenant, d.lease";

// The database's clock tells how much of the coordinator's time has passed since the two were last
// looked at together; the wall clock of the newest batch where they never were.
constexpr std::string_view clock_sql =
    "SELECT coalesce((SELECT coordinator_ms + greatest(0, "
    "(extract(epoch FROM clock_timestamp() - at) * 1000)::bigint) FROM dispatch_clock), "
    "(SELECT coordinator_ms + greatest(0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - "
    "wall_ms) FROM batch ORDER BY first_row DESC LIMIT 1), "
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

}  // namespace

postgres_result<std::vector<seen_dispatch>> look_for_dispatches(postgres_connection& in,
                                                                std::span<const lease_key> keys) {
  std::vector<std::string_view> tenants;
  std::vector<std::string_view> leases;
  for (const auto& each : keys) {
    tenants.emplace_back(each.tenant.value);
    leases.emplace_back(each.lease.value);
  }
  auto read = in.run(
      "SELECT d.tenant, d.lease, d.generation, d.cancel_requested_ms, d.cancel_deadline_ms, "
      "d.host, d.stage, d.status, d.version, d.dispatch_count, d.next_attempt_ms, d.lease_owner, "
      "d.lease_token, d.lease_expires_ms, d.last_result, d.last_dispatched_ms, d.created_ms, "
      "d.updated_ms, h.platform, h.pid, h.boot_id, h.start_ticks, h.process_group "
      "FROM cancel_dispatch AS d LEFT JOIN process_handle AS h ON h.tenant = d.tenant "
      "AND h.lease = d.lease AND h.generation = d.generation WHERE (d.tenant, d.lease) IN "
      "(SELECT * FROM unnest($1::bytea[], $2::bytea[]))",
      postgres_values().byte_texts(tenants).byte_texts(leases));
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  const auto& rows = std::get<postgres_rows>(read);
  std::vector<seen_dispatch> found;
  for (int i = 0; i < rows.count(); ++i) {
    auto record = record_in(rows, i);
    seen_dispatch one;
    one.is_damaged = !record;
    if (record) one.record = std::move(*record);
    one.record.key = key_in(rows, i);
    one.process = handle_in(rows, i, 18);
    found.push_back(std::move(one));
  }
  return found;
}

postgres_result<std::vector<lease_key>> write_dispatches(postgres_connection& in,
                                                         std::span<const next_dispatch> next) {
  const auto c = columns_of(next);
  postgres_values with;
  with.byte_texts(c.tenants).byte_texts(c.leases).integers(c.before).texts(c.hosts);
  with.texts(c.stages).texts(c.statuses).integers(c.versions).integers(c.counts).integers(c.due);
  with.texts(c.owners).texts(c.tokens).integers(c.expires).texts(c.results);
  with.integers(c.dispatched).integers(c.updated).texts(c.kinds).integers(c.generations);
  with.texts(c.event_results);
  auto written = in.run(write_sql, with);
  if (auto* fault = std::get_if<postgres_error>(&written)) return std::move(*fault);
  const auto& rows = std::get<postgres_rows>(written);
  std::vector<lease_key> keys;
  for (int i = 0; i < rows.count(); ++i) keys.push_back(key_in(rows, i));
  return keys;
}

store_result<actors::dispatch_page> read_dispatch_page(postgres_connection& from,
                                                       const actors::dispatch_query& what,
                                                       protocol::instant now) {
  const auto after = actors::key_of(what.from);
  if (!after) return actors::unknown_cursor();
  const std::size_t limit = actors::bounded_page(what.limit);
  // What is closed stays until its job is forgotten: those that are open have an index.
  std::string rest(page_conditions);
  if (!wants_closed(what)) rest += "AND d.status <> 'closed' ";
  auto read = from.run(shows(rest + "ORDER BY d.tenant, d.lease LIMIT $11"),
                       page_values(what, *after, now, limit));
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  const auto& rows = std::get<postgres_rows>(read);
  const int most = static_cast<int>(limit);
  actors::dispatch_page page{records_in(rows, most), {}};
  if (rows.count() > most) page.next = actors::cursor_after(key_in(rows, most - 1));
  return page;
}

store_result<std::optional<dispatch_record>> read_dispatch(postgres_connection& from,
                                                           const lease_key& key) {
  auto read = from.run(shows("WHERE d.tenant = $1 AND d.lease = $2"),
                       postgres_values().bytes(key.tenant.value).bytes(key.lease.value));
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  const auto& rows = std::get<postgres_rows>(read);
  if (rows.count() == 0) return std::optional<dispatch_record>{};
  auto record = record_in(rows, 0);
  if (!record) return damaged(from, key);
  return record;
}

store_result<std::vector<protocol::dispatch_event>> read_dispatch_events(postgres_connection& from,
                                                                         const lease_key& key,
                                                                         std::int64_t after,
                                                                         std::size_t limit) {
  auto read = from.run(
      "SELECT version, at_ms, kind, generation, dispatch_count, result FROM dispatch_event "
      "WHERE tenant = $1 AND lease = $2 AND version > $3 ORDER BY version LIMIT $4",
      postgres_values()
          .bytes(key.tenant.value)
          .bytes(key.lease.value)
          .integer(after)
          .integer(static_cast<std::int64_t>(actors::bounded_page(limit))));
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  const auto& rows = std::get<postgres_rows>(read);
  std::vector<protocol::dispatch_event> found;
  for (int i = 0; i < rows.count(); ++i) {
    const auto kind = protocol::dispatch_event_kind_from(rows.bytes(i, 2));
    const auto result = protocol::dispatch_result_from(rows.bytes(i, 5));
    if (!kind || (!result && !rows.bytes(i, 5).empty())) return damaged(from, key);
    found.push_back({key,
                     rows.integer(i, 0),
                     {rows.integer(i, 1)},
                     *kind,
                     {rows.integer(i, 3)},
                     rows.integer(i, 4),
                     result.value_or(protocol::dispatch_result::none)});
  }
  return found;
}

store_result<std::vector<dispatch_record>> read_exited_dispatches(postgres_connection& from,
                                                                  protocol::instant since,
                                                                  std::size_t limit) {
  const std::size_t most = actors::bounded_page(limit);
  auto read =
      from.run(shows("WHERE d.status <> 'closed' AND d.last_result = 'already_exited' AND "
                     "d.updated_ms >= $1 ORDER BY d.updated_ms, d.tenant, d.lease LIMIT $2"),
               postgres_values().integer(since.ms).integer(static_cast<std::int64_t>(most)));
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  return records_in(std::get<postgres_rows>(read), static_cast<int>(most));
}

store_result<actors::dispatch_counts> count_dispatches(postgres_connection& from) {
  auto read = from.run(
      "SELECT stage, status, last_result, count(*), min(created_ms) FROM cancel_dispatch "
      "GROUP BY stage, status, last_result");
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  const auto& rows = std::get<postgres_rows>(read);
  actors::dispatch_counts found;
  for (int i = 0; i < rows.count(); ++i) {
    const auto stage = protocol::dispatch_stage_from(rows.bytes(i, 0));
    const auto status = protocol::dispatch_status_from(rows.bytes(i, 1));
    const auto result = protocol::dispatch_result_from(rows.bytes(i, 2));
    if (!stage || !status) continue;
    found.cells.push_back({*stage,
                           *status,
                           result.value_or(protocol::dispatch_result::none),
                           rows.integer(i, 3),
                           {rows.integer(i, 4)}});
  }
  return found;
}

postgres_result<protocol::instant> read_dispatch_clock(postgres_connection& from) {
  auto read = from.run(clock_sql);
  if (auto* fault = std::get_if<postgres_error>(&read)) return std::move(*fault);
  return protocol::instant{std::get<postgres_rows>(read).integer(0, 0)};
}

std::optional<postgres_error> write_dispatch_clock(postgres_connection& to, std::int64_t epoch,
                                                   protocol::instant now) {
  auto written = to.run(
      "INSERT INTO dispatch_clock AS c (epoch, coordinator_ms, at) "
      "VALUES ($1, $2, clock_timestamp()) ON CONFLICT (is_only) DO UPDATE SET "
      "epoch = excluded.epoch, coordinator_ms = excluded.coordinator_ms, at = excluded.at "
      "WHERE c.epoch <= excluded.epoch",
      postgres_values().integer(epoch).integer(now.ms));
  if (auto* fault = std::get_if<postgres_error>(&written)) return std::move(*fault);
  return std::nullopt;
}

}  // namespace leasehold::storage
