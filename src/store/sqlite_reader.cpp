#include "src/store/sqlite_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace leasehold::storage {

namespace {

using actors::store_error;
using actors::stored_batch;
using protocol::row_number;
using protocol::stored_row;

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
      batches_from_(db_.prepare(with_clause("WHERE first_row >= ? ORDER BY first_row LIMIT ?"))) {}

store_error sqlite_reader::broken(row_number row) const {
  return {store_error::kind::corrupt,
          db_.file() + ": row " + std::to_string(row.value) +
              " cannot be read; 'leasehold verify' names everything that is damaged"};
}

actors::store_result<std::optional<stored_batch>> sqlite_reader::batch_holding(row_number row) {
  const int code = find_batch_.bind(1, row.value).step();
  std::optional<stored_batch> found;
  if (code == SQLITE_ROW) found = batch_at(find_batch_);
  find_batch_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code, "reading a batch of");
  if (found && found->last_row < row) found.reset();
  return found;
}

actors::store_result<std::optional<stored_batch>> sqlite_reader::front_after(row_number row) {
  const int code = batches_from_.bind(1, row.value).bind(2, 1).step();
  std::optional<stored_batch> found;
  if (code == SQLITE_ROW) found = batch_at(batches_from_);
  batches_from_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code, "reading a batch of");
  return found;
}

actors::store_result<std::optional<stored_batch>> sqlite_reader::batch_before(row_number row) {
  const int code = find_batch_.bind(1, row.value - 1).step();
  std::optional<stored_batch> found;
  if (code == SQLITE_ROW) found = batch_at(find_batch_);
  find_batch_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code, "reading a batch of");
  return found;
}

actors::store_result<std::vector<stored_batch>> sqlite_reader::batches_from(row_number from,
                                                                            std::size_t limit) {
  transaction view(db_);
  if (auto fault = view.begin_reading()) return *fault;
  auto holding = batch_holding(from);
  if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
  const auto& first = std::get<std::optional<stored_batch>>(holding);
  const row_number begin = first ? first->first_row : from;
  std::vector<stored_batch> found;
  batches_from_.bind(1, begin.value)
      .bind(2, static_cast<std::int64_t>(std::min<std::size_t>(limit, 1U << 30U)));
  int code = batches_from_.step();
  for (; code == SQLITE_ROW; code = batches_from_.step()) found.push_back(batch_at(batches_from_));
  batches_from_.reset();
  if (code != SQLITE_DONE) return db_.error(code, "reading batches of");
  return found;
}

actors::store_result<std::vector<stored_row>> sqlite_reader::rows_from(row_number from,
                                                                       std::size_t limit) {
  transaction view(db_);
  if (auto fault = view.begin_reading()) return *fault;
  std::vector<stored_row> rows;
  while (rows.size() < limit) {
    const row_number next{rows.empty() ? std::max<std::int64_t>(from.value, 1)
                                       : rows.back().row.value + 1};
    auto holding = batch_holding(next);
    if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
    auto& piece = std::get<std::optional<stored_batch>>(holding);
    if (!piece && rows.empty()) {
      auto front = front_after(next);
      if (auto* fault = std::get_if<store_error>(&front)) return *fault;
      piece = std::move(std::get<std::optional<stored_batch>>(front));
    }
    if (!piece) break;
    auto decoded = protocol::decode_rows(piece->rows, piece->first_row);
    if (decoded.broken) return broken(*decoded.broken);
    const std::size_t before = rows.size();
    for (stored_row& r : decoded.rows) {
      if (r.row >= next && rows.size() < limit) rows.push_back(std::move(r));
    }
    if (rows.size() == before) return broken(next);
  }
  return rows;
}

actors::store_result<std::vector<stored_row>> sqlite_reader::rows_of_lease(
    const protocol::lease_key& key, row_number newest, std::size_t limit, row_number after) {
  transaction view(db_);
  if (auto fault = view.begin_reading()) return *fault;
  std::vector<stored_row> rows;
  std::optional<stored_batch> piece;
  for (row_number next = newest; next > after && rows.size() < limit;) {
    if (!piece || next < piece->first_row) {
      auto holding = batch_holding(next);
      if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
      piece = std::move(std::get<std::optional<stored_batch>>(holding));
      if (!piece) break;
    }
    std::optional<protocol::framed_row> framed = protocol::read_frame(piece->rows, 0);
    for (std::int64_t at = piece->first_row.value; framed && at < next.value; ++at) {
      framed = protocol::read_frame(piece->rows, framed->end);
    }
    auto r = framed ? protocol::decode_row(framed->body, next) : std::nullopt;
    if (!r || r->prev_row >= next) return broken(next);
    if (r->key != key) break;
    next = r->prev_row;
    rows.push_back(std::move(*r));
  }
  return rows;
}

actors::store_result<std::optional<sqlite_reader::written>> sqlite_reader::written_at(
    statement& query, row_number row) const {
  const int code = query.bind(1, row.value).step();
  std::optional<written> found;
  if (code == SQLITE_ROW) found = {{query.integer(0)}, {query.integer(1)}};
  query.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code, "reading a batch of");
  return found;
}

actors::store_result<row_number> sqlite_reader::row_before(protocol::instant at) {
  transaction view(db_);
  if (auto fault = view.begin_reading()) return *fault;
  statement query = db_.prepare(
      "SELECT last_row, coordinator_ms FROM batch WHERE first_row <= ? "
      "ORDER BY first_row DESC LIMIT 1");
  // Batches are written in the order of their times, so the last one before `at` is found by
  // halving: there is no index of times.
  row_number found;
  row_number low;
  row_number high{protocol::max_number};
  auto newest = written_at(query, high);
  if (auto* fault = std::get_if<store_error>(&newest)) return *fault;
  if (!std::get<std::optional<written>>(newest)) return found;
  high = std::get<std::optional<written>>(newest)->last_row;
  while (low < high) {
    const row_number middle{low.value + (high.value - low.value + 1) / 2};
    auto read = written_at(query, middle);
    if (auto* fault = std::get_if<store_error>(&read)) return *fault;
    const auto& piece = std::get<std::optional<written>>(read);
    if (piece && piece->at < at) {
      found = piece->last_row;
      low = std::max(middle, piece->last_row);
    } else if (piece) {
      high = {middle.value - 1};
    } else {
      low = middle;  // the log begins behind it
    }
  }
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

reader_pool::reader_pool(std::filesystem::path file, std::size_t most)
    : file_(std::move(file)), most_(most) {}

actors::store_result<std::unique_ptr<sqlite_reader>> reader_pool::take() {
  std::unique_lock lock(mutex_);
  free_.wait(lock, [this] { return !idle_.empty() || made_ < most_; });
  if (!idle_.empty()) {
    auto reader = std::move(idle_.back());
    idle_.pop_back();
    return reader;
  }
  ++made_;
  lock.unlock();
  // The writer's file was looked at when it was opened. To look again, past SQLite, would let go of
  // every lock that this process has on it, and whoever opens the file next could take its
  // write-ahead log away.
  auto opened = connection::open(file_, connection::access::read_only);
  if (auto* fault = std::get_if<store_error>(&opened)) {
    lock.lock();
    --made_;
    lock.unlock();
    free_.notify_one();
    return *fault;
  }
  return std::make_unique<sqlite_reader>(std::move(std::get<connection>(opened)));
}

void reader_pool::give_back(std::unique_ptr<sqlite_reader> reader) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(reader));
  }
  free_.notify_one();
}

}  // namespace leasehold::storage
