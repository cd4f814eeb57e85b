#include "src/store/sqlite_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leasehold::storage {

namespace {

using actors::store_error;
using actors::stored_batch;
using protocol::row_number;

constexpr std::string_view batch_columns =
    "SELECT first_row, last_row, format, boot_id, boottime_ms, wall_ms, coordinator_ms, chain, "
    "body FROM batch ";

/// A chain of another size stays as zeros, which no batch has: the chain then breaks here.
stored_batch batch_at(const statement& query) {
  stored_batch found;
  found.first_row.value = query.integer(0);
  found.last_row.value = query.integer(1);
  found.format = query.integer(2);
  found.anchor.boot_id = query.bytes(3);
  found.anchor.boottime_ms = query.integer(4);
  found.anchor.wall_ms = query.integer(5);
  found.anchor.coordinator_time.ms = query.integer(6);
  const std::string_view chain = query.bytes(7);
  if (chain.size() == found.chain.size()) {
    std::memcpy(found.chain.data(), chain.data(), chain.size());
  }
  found.rows = query.bytes(8);
  return found;
}

std::string with_clause(std::string_view clause) {
  return std::string(batch_columns).append(clause);
}

}  // namespace

sqlite_reader::sqlite_reader(connection db)
    : db_(std::move(db)),
      find_batch_(db_.prepare(with_clause("WHERE first_row <= ? ORDER BY first_row DESC LIMIT 1"))),
      batches_from_(db_.prepare(with_clause("WHERE first_row >= ? ORDER BY first_row LIMIT ?"))),
      find_written_(db_.prepare("SELECT last_row, coordinator_ms FROM batch WHERE first_row <= ? "
                                "ORDER BY first_row DESC LIMIT 1")) {}

std::optional<store_error> sqlite_reader::begin_view() {
  view_.emplace(db_);
  return view_->begin_reading();
}

void sqlite_reader::end_view() { view_.reset(); }

store_error sqlite_reader::damaged(std::string_view what) const {
  const auto directory = std::filesystem::path(db_.file()).parent_path().string();
  return {store_error::kind::corrupt,
          directory + ": " + std::string(what) +
              "; the store is not used like this. 'leasehold verify --data " + directory +
              "' names everything that is damaged; restore the directory from a backup"};
}

log_reader::found_batch sqlite_reader::batch_begun_by(row_number row) {
  const int code = find_batch_.bind(1, row.value).step();
  std::optional<stored_batch> found;
  if (code == SQLITE_ROW) found = batch_at(find_batch_);
  find_batch_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code, "reading a batch of");
  return found;
}

actors::store_result<std::vector<stored_batch>> sqlite_reader::batches_begun_at(row_number row,
                                                                                std::size_t limit) {
  std::vector<stored_batch> found;
  batches_from_.bind(1, row.value)
      .bind(2, static_cast<std::int64_t>(std::min<std::size_t>(limit, 1U << 30U)));
  int code = batches_from_.step();
  for (; code == SQLITE_ROW; code = batches_from_.step()) found.push_back(batch_at(batches_from_));
  batches_from_.reset();
  if (code != SQLITE_DONE) return db_.error(code, "reading batches of");
  return found;
}

actors::store_result<std::optional<std::string>> sqlite_reader::find_image(
    const protocol::lease_key& key) {
  statement query = db_.prepare("SELECT image FROM record WHERE tenant = ? AND lease = ?");
  query.bind_text(1, key.tenant.value).bind_text(2, key.lease.value);
  const int code = query.step();
  if (code == SQLITE_DONE) return std::optional<std::string>{};
  if (code != SQLITE_ROW) return db_.error(code, "reading a record of");
  return std::optional<std::string>(query.bytes(0));
}

actors::store_result<std::optional<log_reader::written>> sqlite_reader::written_by(row_number row) {
  const int code = find_written_.bind(1, row.value).step();
  std::optional<written> found;
  if (code == SQLITE_ROW) found = {{find_written_.integer(0)}, {find_written_.integer(1)}};
  find_written_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code, "reading a batch of");
  return found;
}

actors::store_result<std::optional<protocol::policy>> sqlite_reader::find_policy(
    protocol::policy_id id) {
  statement query = db_.prepare("SELECT text FROM policy WHERE id = ?");
  const int code = query.bind(1, static_cast<std::int64_t>(id.value)).step();
  if (code == SQLITE_DONE) return std::optional<protocol::policy>{};
  if (code != SQLITE_ROW) return db_.error(code, "reading a policy of");
  return protocol::policy_from_text(query.bytes(0));
}

std::optional<store_error> sqlite_reader::each_record(
    const std::function<void(const stored_record&)>& out) {
  statement query = db_.prepare(
      "SELECT tenant, lease, last_row, check_value, image FROM record ORDER BY tenant, lease");
  if (!query.prepared()) return db_.last_error("reading the records of");
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    stored_record found;
    found.key = {protocol::tenant_id(query.bytes(0)), protocol::lease_id(query.bytes(1))};
    found.last_row.value = query.integer(2);
    found.check = static_cast<std::uint64_t>(query.integer(3));
    found.image = query.bytes(4);
    out(found);
  }
  if (code != SQLITE_DONE) return db_.error(code, "reading the records of");
  return std::nullopt;
}

std::optional<store_error> sqlite_reader::each_policy(
    const std::function<void(protocol::policy_id, std::optional<protocol::policy>)>& out) {
  statement query = db_.prepare("SELECT id, text FROM policy ORDER BY id");
  if (!query.prepared()) return db_.last_error("reading the policies of");
  int code = query.step();
  for (; code == SQLITE_ROW; code = query.step()) {
    out({static_cast<std::uint64_t>(query.integer(0))}, protocol::policy_from_text(query.bytes(1)));
  }
  if (code != SQLITE_DONE) return db_.error(code, "reading the policies of");
  return std::nullopt;
}

}  // namespace leasehold::storage
