#include "src/store/sqlite_writer.hpp"

#include <cstring>
#include <utility>

#include "leasehold/protocol/record_image.hpp"
#include "src/store/kept_head.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using protocol::row_number;
using std::chrono::milliseconds;

/// Calls of the dispatch tables that one transaction takes: a commit waits for no more than these.
constexpr std::size_t turns_at_once = 4;
constexpr milliseconds busy_stretch{20};
constexpr milliseconds lock_pause{1};

}  // namespace

sqlite_writer::sqlite_writer(connection db, store_facts facts, actors::log_head head,
                             std::filesystem::path directory, int wal_pages)
    : log_writer(std::move(facts), head),
      db_(std::move(db)),
      insert_batch_(db_.prepare("INSERT INTO batch (first_row, last_row, format, boot_id, "
                                "boottime_ms, wall_ms, coordinator_ms, chain, body) "
                                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")),
      insert_policy_(db_.prepare("INSERT OR REPLACE INTO policy (id, text) VALUES (?, ?)")),
      find_record_(db_.prepare("SELECT check_value FROM record WHERE tenant = ? AND lease = ?")),
      put_record_(db_.prepare("INSERT OR REPLACE INTO record (tenant, lease, last_row, "
                              "check_value, image) VALUES (?, ?, ?, ?, ?)")),
      delete_record_(db_.prepare("DELETE FROM record WHERE tenant = ? AND lease = ?")),
      dispatch_rows_(db_),
      wal_limit_pages_(wal_pages),
      directory_(std::move(directory)),
      heads_(directory_) {
  sqlite3_wal_hook(
      db_.raw(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages_);
  start();
}

sqlite_writer::~sqlite_writer() {
  stop();
  heads_.stop();
  // What the log holds after a failed fsync is not known: the next start reads it as it is. And a
  // start that was refused has written nothing, and leaves every file as it found it.
  if (ended_ || !has_written_) return;
  keep_head(directory_, head_);
  const int code =
      sqlite3_wal_checkpoint_v2(db_.raw(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  // The file has everything: its empty log may go.
  if (code == SQLITE_OK) {
    sqlite3_db_config(db_.raw(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  }
}

bool sqlite_writer::dispatch(dispatch_turn what) {
  return add_work([this, &what] {
    if (turns_waiting_.size() >= most_dispatch_calls) return false;
    turns_waiting_.push_back(std::move(what));
    return true;
  });
}

void sqlite_writer::take_more() {
  while (!turns_waiting_.empty() && turns_.size() < turns_at_once) {
    turns_.push_back({std::move(turns_waiting_.front()), {}});
    turns_waiting_.pop_front();
  }
}

void sqlite_writer::answer_more(const std::optional<store_error>& fault) {
  for (const taken_turn& each : turns_) each.what.answer(fault ? fault : each.fault);
  turns_.clear();
}

actors::store_result<std::int64_t> sqlite_writer::delete_batches(row_number upto,
                                                                 store_facts& facts) {
  transaction part(db_);
  if (auto fault = part.begin_writing()) return *fault;
  std::int64_t count = 0;
  {
    statement front = db_.prepare(
        "SELECT last_row, coordinator_ms, chain FROM batch WHERE last_row <= ? "
        "ORDER BY first_row LIMIT ?");
    front.bind(1, upto.value).bind(2, batches_cut_at_once);
    int code = front.step();
    for (; code == SQLITE_ROW; code = front.step(), ++count) {
      const std::string_view chain = front.bytes(2);
      if (chain.size() != facts.anchor.chain.size()) {
        return store_error{store_error::kind::corrupt,
                           "the hash of a batch is damaged; the log is not cut behind it"};
      }
      facts.anchor.last_row.value = front.integer(0);
      facts.anchor_time.ms = front.integer(1);
      std::memcpy(facts.anchor.chain.data(), chain.data(), chain.size());
    }
    if (code != SQLITE_DONE) return db_.error(code, "reading the front of the log of");
  }
  if (count == 0) return count;
  facts.batches_cut += count;
  statement cut = db_.prepare("DELETE FROM batch WHERE first_row <= ?");
  const int code = cut.bind(1, facts.anchor.last_row.value).run();
  if (code != SQLITE_DONE) return db_.error(code, "cutting the log of");
  if (auto fault = write_anchor_facts(db_, facts)) return *fault;
  if (auto fault = part.commit()) return *fault;
  has_written_ = true;
  return count;
}

std::optional<store_error> sqlite_writer::write(const std::vector<actors::stored_batch>& pieces,
                                                const batches& of, const actors::log_head& after) {
  std::optional<store_error> fault;
  {
    transaction whole(db_);
    if ((fault = whole.begin_writing())) return fault;
    for (const actors::stored_batch& piece : pieces) {
      if ((fault = insert(piece))) return fault;
    }
    for (const actors::batch* each : of) {
      if ((fault = insert_policies(*each))) return fault;
      if ((fault = apply_dispatches(*each))) return fault;
    }
    for (taken_turn& each : turns_) {
      if ((fault = take_part(each))) return fault;
    }
    // With the rows of the restore the file is no backup any more.
    if (facts_.is_backup && !pieces.empty() && (fault = write_backup_mark(db_, false))) {
      return fault;
    }
    fault = whole.commit();
  }
  if (fault) return settle_failed_commit(std::move(*fault));
  if (!pieces.empty()) facts_.is_backup = false;
  // What was kept before may be of a log that was lost.
  if (!std::exchange(has_written_, true)) heads_.keep(after);
  return std::nullopt;
}

std::optional<store_error> sqlite_writer::insert(const actors::stored_batch& piece) {
  const std::string_view chain(reinterpret_cast<const char*>(piece.chain.data()),
                               piece.chain.size());
  const int code = insert_batch_.bind(1, piece.first_row.value)
                       .bind(2, piece.last_row.value)
                       .bind(3, piece.format)
                       .bind_text(4, piece.anchor.boot_id)
                       .bind(5, piece.anchor.boottime_ms)
                       .bind(6, piece.anchor.wall_ms)
                       .bind(7, piece.anchor.coordinator_time.ms)
                       .bind_blob(8, chain)
                       .bind_blob(9, piece.rows)
                       .run();
  if (code == SQLITE_DONE) return std::nullopt;
  return db_.error(code, "writing a batch to");
}

std::optional<store_error> sqlite_writer::insert_policies(const actors::batch& what) {
  for (const auto& [id, chosen] : what.policies) {
    const std::string text = protocol::canonical_text(chosen);
    const int code =
        insert_policy_.bind(1, static_cast<std::int64_t>(id.value)).bind_text(2, text).run();
    if (code != SQLITE_DONE) return db_.error(code, "writing a policy to");
  }
  return std::nullopt;
}

std::optional<store_error> sqlite_writer::apply_dispatches(const actors::batch& what) {
  for (const auto& each : what.dispatches) {
    if (auto fault = actors::apply_change(dispatch_rows_, each)) return fault;
  }
  return std::nullopt;
}

std::optional<store_error> sqlite_writer::take_part(taken_turn& turn) {
  if (auto fault = db_.execute("SAVEPOINT turn", "writing dispatches to")) return fault;
  turn.fault = turn.what.act(dispatch_rows_);
  const auto lost = db_.execute(turn.fault ? "ROLLBACK TO turn; RELEASE turn" : "RELEASE turn",
                                "writing dispatches to");
  if (lost && turn.fault) return turn.fault;
  return lost;
}

std::optional<store_error> sqlite_writer::settle_failed_commit(store_error fault) {
  const auto found = read_head(db_, facts_);
  const auto* now = std::get_if<actors::log_head>(&found);
  if (now != nullptr && *now == head_) return fault;
  if (fault.what != store_error::kind::fatal) {
    fault = {store_error::kind::fatal,
             fault.sentence +
                 "; whether the commit is in the log cannot be told, so the process "
                 "must stop and recover"};
  }
  return fault;
}

std::optional<store_error> sqlite_writer::write_records(const actors::checkpoint_slice& what,
                                                        std::size_t begin, std::size_t end,
                                                        bool finishes, store_facts& facts) {
  // Until the last slice a lost transaction only means an older checkpoint: no fsync is needed.
  const char* safety = finishes ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
  if (auto fault = db_.execute(safety, "preparing")) return fault;
  std::optional<store_error> fault;
  {
    transaction part(db_);
    fault = part.begin_writing();
    for (std::size_t i = begin; !fault && i < end; ++i) {
      fault = write_record(what.changed[i], facts);
    }
    if (!fault && finishes) fault = forget_records(facts);
    if (!fault) fault = write_checkpoint_facts(db_, facts);
    if (!fault) fault = part.commit();
  }
  if (!fault) {
    has_written_ = true;
    heads_.keep(head_);
  }
  if (auto unsafe = db_.execute("PRAGMA synchronous = FULL", "preparing")) {
    // The next commit would be answered before it is on the disk.
    unsafe->what = store_error::kind::fatal;
    return unsafe;
  }
  return fault;
}

void sqlite_writer::rest() {
  shorten_wal();
  leave_lock_free();
}

std::optional<store_error> sqlite_writer::write_record(const actors::checkpoint_entry& entry,
                                                       store_facts& facts) {
  if (auto fault = remove_from_sums(entry.key, facts)) return fault;
  const std::string image = protocol::encode_image(entry.image);
  const std::uint64_t check = record_check(entry.key, image);
  facts.record_count += 1;
  facts.record_sum += check;
  const int code = put_record_.bind_text(1, entry.key.tenant.value)
                       .bind_text(2, entry.key.lease.value)
                       .bind(3, entry.image.last_row.value)
                       .bind(4, static_cast<std::int64_t>(check))
                       .bind_blob(5, image)
                       .run();
  if (code == SQLITE_DONE) return std::nullopt;
  return db_.error(code, "writing a record to");
}

std::optional<store_error> sqlite_writer::forget_records(store_facts& facts) {
  for (const protocol::lease_key& key : forgotten_) {
    if (auto fault = remove_from_sums(key, facts)) return fault;
    const int code =
        delete_record_.bind_text(1, key.tenant.value).bind_text(2, key.lease.value).run();
    if (code != SQLITE_DONE) return db_.error(code, "forgetting a record in");
  }
  return std::nullopt;
}

std::optional<store_error> sqlite_writer::remove_from_sums(const protocol::lease_key& key,
                                                           store_facts& facts) {
  const int code = find_record_.bind_text(1, key.tenant.value).bind_text(2, key.lease.value).step();
  if (code == SQLITE_ROW) {
    facts.record_count -= 1;
    facts.record_sum -= static_cast<std::uint64_t>(find_record_.integer(0));
  }
  find_record_.reset();
  if (code == SQLITE_ROW || code == SQLITE_DONE) return std::nullopt;
  return db_.error(code, "reading a record of");
}

/// Copies the write-ahead log into the database while nobody appends to it, so that the next commit
/// begins it anew. A reader in the middle of it only delays that.
void sqlite_writer::shorten_wal() {
  if (ended_ || wal_pages_ < wal_limit_pages_) {
    next_shortening_ = 0;
    return;
  }
  if (wal_pages_ < next_shortening_) return;
  next_shortening_ = wal_pages_ + wal_limit_pages_ / 4;
  const int code =
      sqlite3_wal_checkpoint_v2(db_.raw(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code == SQLITE_OK || code == SQLITE_BUSY) return;
  const store_error fault = db_.error(code, "copying the write-ahead log of");
  if (fault.what == store_error::kind::fatal) give_up(fault);
}

void sqlite_writer::leave_lock_free() {
  const auto now = steady::now();
  if (now - busy_since_ < busy_stretch) return;
  std::this_thread::sleep_for(lock_pause);
  busy_since_ = steady::now();
}

}  // namespace leasehold::storage
