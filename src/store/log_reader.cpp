#include "src/store/log_reader.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::storage {

namespace {

using actors::store_error;
using actors::stored_batch;
using protocol::row_number;
using protocol::stored_row;

}  // namespace

store_error log_reader::broken(row_number row) const {
  return {store_error::kind::corrupt,
          place() + ": row " + std::to_string(row.value) +
              " cannot be read; 'leasehold verify' names everything that is damaged"};
}

log_reader::found_batch log_reader::batch_holding(row_number row) {
  auto found = batch_begun_by(row);
  auto* batch = std::get_if<std::optional<stored_batch>>(&found);
  if (batch != nullptr && *batch && (*batch)->last_row < row) batch->reset();
  return found;
}

log_reader::found_batch log_reader::batch_before(row_number row) {
  return batch_begun_by({row.value - 1});
}

actors::store_result<std::vector<stored_batch>> log_reader::batches_from(row_number from,
                                                                         std::size_t limit) {
  const view whole(*this);
  if (whole.fault()) return *whole.fault();
  auto holding = batch_holding(from);
  if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
  const auto& first = std::get<std::optional<stored_batch>>(holding);
  return batches_begun_at(first ? first->first_row : from, limit);
}

actors::store_result<std::vector<stored_row>> log_reader::rows_from(row_number from,
                                                                    std::size_t limit) {
  const view whole(*this);
  if (whole.fault()) return *whole.fault();
  std::vector<stored_row> rows;
  while (rows.size() < limit) {
    const row_number next{rows.empty() ? std::max<std::int64_t>(from.value, 1)
                                       : rows.back().row.value + 1};
    auto holding = batch_holding(next);
    if (auto* fault = std::get_if<store_error>(&holding)) return *fault;
    auto& piece = std::get<std::optional<stored_batch>>(holding);
    if (!piece && rows.empty()) {
      auto front = batches_begun_at(next, 1);
      if (auto* fault = std::get_if<store_error>(&front)) return *fault;
      auto& found = std::get<std::vector<stored_batch>>(front);
      if (!found.empty()) piece = std::move(found.front());
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

actors::store_result<std::vector<stored_row>> log_reader::rows_of_lease(
    const protocol::lease_key& key, row_number newest, std::size_t limit, row_number after) {
  const view whole(*this);
  if (whole.fault()) return *whole.fault();
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

actors::store_result<row_number> log_reader::row_before(protocol::instant at) {
  const view whole(*this);
  if (whole.fault()) return *whole.fault();
  // Batches are written in the order of their times, so the last one before `at` is found by
  // halving: there is no index of times.
  row_number found;
  row_number low;
  row_number high{protocol::max_number};
  auto newest = written_by(high);
  if (auto* fault = std::get_if<store_error>(&newest)) return *fault;
  if (!std::get<std::optional<written>>(newest)) return found;
  high = std::get<std::optional<written>>(newest)->last_row;
  while (low < high) {
    const row_number middle{low.value + (high.value - low.value + 1) / 2};
    auto read = written_by(middle);
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

actors::store_result<std::unique_ptr<log_reader>> reader_pool::take() {
  std::unique_lock lock(mutex_);
  free_.wait(lock, [this] { return !idle_.empty() || made_ < most_; });
  while (!idle_.empty()) {
    auto reader = std::move(idle_.back());
    idle_.pop_back();
    if (reader->usable()) return reader;
    --made_;
  }
  ++made_;
  lock.unlock();
  auto opened = open_();
  if (std::holds_alternative<store_error>(opened)) {
    lock.lock();
    --made_;
    lock.unlock();
    free_.notify_one();
  }
  return opened;
}

void reader_pool::give_back(std::unique_ptr<log_reader> reader) {
  {
    const std::lock_guard lock(mutex_);
    if (reader->usable()) {
      idle_.push_back(std::move(reader));
    } else {
      --made_;
    }
  }
  free_.notify_one();
}

}  // namespace leasehold::storage
