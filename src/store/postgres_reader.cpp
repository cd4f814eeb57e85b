#include "src/store/postgres_reader.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::storage {

namespace {

using actors::store_error;
using actors::stored_batch;
using protocol::row_number;

/// Records per read: about 1 MiB.
constexpr int records_at_once = 2048;

constexpr std::string_view newest_begun_by =
    "SELECT first_row, last_row, format, boot_id, boottime_ms, wall_ms, coordinator_ms, chain, "
    "body FROM batch WHERE first_row <= $1 ORDER BY first_row DESC LIMIT 1";
constexpr std::string_view begun_at =
    "SELECT first_row, last_row, format, boot_id, boottime_ms, wall_ms, coordinator_ms, chain, "
    "body FROM batch WHERE first_row >= $1 ORDER BY first_row LIMIT $2";

stored_batch batch_at(const postgres_rows& rows, int row) {
  stored_batch found;
  found.first_row.value = rows.integer(row, 0);
  found.last_row.value = rows.integer(row, 1);
  found.format = rows.integer(row, 2);
  found.anchor.boot_id = rows.bytes(row, 3);
  found.anchor.boottime_ms = rows.integer(row, 4);
  found.anchor.wall_ms = rows.integer(row, 5);
  found.anchor.coordinator_time.ms = rows.integer(row, 6);
  found.chain = chain_of(rows.bytes(row, 7));
  found.rows = rows.bytes(row, 8);
  return found;
}

}  // namespace

std::optional<store_error> postgres_reader::begin_view() {
  auto begun = db_.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  if (auto* fault = std::get_if<postgres_error>(&begun)) return *fault;
  return std::nullopt;
}

void postgres_reader::end_view() {
  // Whether that works is seen by whoever wants to use the connection next.
  if (db_.is_open()) db_.run("ROLLBACK");
}

store_error postgres_reader::damaged(std::string_view what) const {
  return {store_error::kind::corrupt,
          db_.place() + ": " + std::string(what) +
              "; the store is not used like this. 'leasehold verify --store URL' names everything "
              "that is damaged; restore the database from a backup"};
}

log_reader::found_batch postgres_reader::batch_begun_by(row_number row) {
  auto read = db_.run(newest_begun_by, postgres_values().integer(row.value));
  if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
  const auto& rows = std::get<postgres_rows>(read);
  if (rows.count() == 0) return std::optional<stored_batch>{};
  return std::optional<stored_batch>(batch_at(rows, 0));
}

actors::store_result<std::vector<stored_batch>> postgres_reader::batches_begun_at(
    row_number row, std::size_t limit) {
  const auto most = static_cast<std::int64_t>(std::min<std::size_t>(limit, 1U << 30U));
  auto read = db_.run(begun_at, postgres_values().integer(row.value).integer(most));
  if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
  const auto& rows = std::get<postgres_rows>(read);
  std::vector<stored_batch> found;
  for (int i = 0; i < rows.count(); ++i) found.push_back(batch_at(rows, i));
  return found;
}

actors::store_result<std::optional<log_reader::written>> postgres_reader::written_by(
    row_number row) {
  auto read = db_.run(
      "SELECT last_row, coordinator_ms FROM batch WHERE first_row <= $1 "
      "ORDER BY first_row DESC LIMIT 1",
      postgres_values().integer(row.value));
  if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
  const auto& rows = std::get<postgres_rows>(read);
  if (rows.count() == 0) return std::optional<written>{};
  return std::optional<written>({{rows.integer(0, 0)}, {rows.integer(0, 1)}});
}

actors::store_result<std::optional<protocol::policy>> postgres_reader::find_policy(
    protocol::policy_id id) {
  auto read = db_.run("SELECT text FROM policy WHERE id = $1",
                      postgres_values().integer(static_cast<std::int64_t>(id.value)));
  if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
  const auto& rows = std::get<postgres_rows>(read);
  if (rows.count() == 0) return std::optional<protocol::policy>{};
  return protocol::policy_from_text(rows.bytes(0, 0));
}

actors::store_result<std::optional<std::string>> postgres_reader::find_image(
    const protocol::lease_key& key) {
  auto read = db_.run("SELECT image FROM record WHERE tenant = $1 AND lease = $2",
                      postgres_values().bytes(key.tenant.value).bytes(key.lease.value));
  if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
  const auto& rows = std::get<postgres_rows>(read);
  if (rows.count() == 0) return std::optional<std::string>{};
  return std::optional<std::string>(rows.bytes(0, 0));
}

postgres_result<postgres_rows> postgres_reader::page_of_records(
    const std::optional<protocol::lease_key>& after) {
  const auto most = postgres_values().integer(records_at_once);
  if (!after) {
    return db_.run(
        "SELECT tenant, lease, last_row, check_value, image FROM record "
        "ORDER BY tenant, lease LIMIT $1",
        most);
  }
  return db_.run(
      "SELECT tenant, lease, last_row, check_value, image FROM record "
      "WHERE (tenant, lease) > ($2, $3) ORDER BY tenant, lease LIMIT $1",
      postgres_values(most).bytes(after->tenant.value).bytes(after->lease.value));
}

/// In pages along the key: the memory of a start does not depend on how many records there are.
std::optional<store_error> postgres_reader::each_record(
    const std::function<void(const stored_record&)>& out) {
  std::optional<view> whole;
  if (db_.usable()) whole.emplace(*this);
  if (whole && whole->fault()) return whole->fault();
  std::optional<protocol::lease_key> after;
  while (true) {
    auto read = page_of_records(after);
    if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
    const auto& rows = std::get<postgres_rows>(read);
    for (int i = 0; i < rows.count(); ++i) {
      stored_record found;
      found.key = {protocol::tenant_id(rows.bytes(i, 0)), protocol::lease_id(rows.bytes(i, 1))};
      found.last_row.value = rows.integer(i, 2);
      found.check = static_cast<std::uint64_t>(rows.integer(i, 3));
      found.image = rows.bytes(i, 4);
      out(found);
      after = std::move(found.key);
    }
    if (rows.count() < records_at_once) return std::nullopt;
  }
}

std::optional<store_error> postgres_reader::each_policy(
    const std::function<void(protocol::policy_id, std::optional<protocol::policy>)>& out) {
  auto read = db_.run("SELECT id, text FROM policy ORDER BY id");
  if (auto* fault = std::get_if<postgres_error>(&read)) return *fault;
  const auto& rows = std::get<postgres_rows>(read);
  for (int i = 0; i < rows.count(); ++i) {
    out({static_cast<std::uint64_t>(rows.integer(i, 0))},
        protocol::policy_from_text(rows.bytes(i, 1)));
  }
  return std::nullopt;
}

open_reader opens_readers_of(const postgres_access& how) {
  return [how]() -> actors::store_result<std::unique_ptr<log_reader>> {
    auto opened = postgres_connection::open(how);
    if (auto* fault = std::get_if<store_error>(&opened)) return *fault;
    return std::make_unique<postgres_reader>(std::move(std::get<postgres_connection>(opened)));
  };
}

}  // namespace leasehold::storage
