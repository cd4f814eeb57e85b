#include "src/store/sqlite_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "leasehold/protocol/record_image.hpp"
#include "protocol/mutation.hpp"
#include "src/store/batch_log.hpp"
#include "src/store/kept_head.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using protocol::row_number;
using std::chrono::milliseconds;

/// The most that one transaction takes of what waits.
constexpr std::size_t transaction_bytes = std::size_t{1024} * 1024;
/// Records per transaction of a checkpoint: a commit waits for no more than these.
constexpr std::size_t records_at_once = 512;
/// Calls of the dispatch tables that one transaction takes: a commit waits for no more than these.
constexpr std::size_t turns_at_once = 4;
/// Batches that one transaction removes from the front of the log.
constexpr std::int64_t batches_cut_at_once = 64;
/// Commits on one side, slices and cuts on the other: a checkpoint keeps up with a load that never
/// pauses, and a commit waits for not much more than this.
constexpr milliseconds most_ahead{5};
constexpr milliseconds busy_stretch{20};
constexpr milliseconds lock_pause{1};

std::size_t bytes_of(const actors::batch& what) {
  std::size_t bytes = 0;
  for (const std::string& group : what.groups) bytes += group.size();
  return bytes;
}

}  // namespace

sqlite_writer::sqlite_writer(connection db, store_facts facts, actors::log_head head,
                             std::filesystem::path directory, int wal_pages)
    : db_(std::move(db)),
      facts_(std::move(facts)),
      head_(head),
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
      turns_(most_ahead),
      directory_(std::move(directory)),
      heads_(directory_),
      published_head_(head) {
  sqlite3_wal_hook(
      db_.raw(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages_);
  thread_ = std::thread([this] { run(); });
}

sqlite_writer::~sqlite_writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
  heads_.stop();
  // What the log holds after a failed fsync is not known: the next start reads it as it is. And a
  // start that was refused has written nothing, and leaves every file as it found it.
  if (fatal_ || !has_written_) return;
  keep_head(directory_, head_);
  const int code =
      sqlite3_wal_checkpoint_v2(db_.raw(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  // The file has everything: its empty log may go.
  if (code == SQLITE_OK) {
    sqlite3_db_config(db_.raw(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  }
}

void sqlite_writer::commit(actors::batch what, commit_done done) {
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back({std::move(what), std::move(done)});
  }
  work_.notify_one();
}

void sqlite_writer::checkpoint(actors::checkpoint_slice slice, slice_done done) {
  {
    const std::lock_guard lock(mutex_);
    slices_.push_back({std::move(slice), std::move(done), 0});
  }
  work_.notify_one();
}

void sqlite_writer::cut(row_number upto, cut_done done) {
  {
    const std::lock_guard lock(mutex_);
    cuts_.push_back({upto, std::move(done)});
  }
  work_.notify_one();
}

bool sqlite_writer::dispatch(dispatch_turn what) {
  {
    const std::lock_guard lock(mutex_);
    if (turns_waiting_.size() >= most_dispatch_calls) return false;
    turns_waiting_.push_back(std::move(what));
  }
  work_.notify_one();
  return true;
}

actors::log_head sqlite_writer::head() const {
  const std::lock_guard lock(mutex_);
  return published_head_;
}

bool sqlite_writer::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto there = [this] { return has_commits() || is_behind(); };
  if (!stopping_ && !there()) {
    work_.wait(lock, [&] { return stopping_ || there(); });
    busy_since_ = steady::now();
  }
  return there();
}

void sqlite_writer::run() {
  busy_since_ = steady::now();
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock)) {
    const auto begun = steady::now();
    if (!has_commits() || (is_behind() && turns_.behind_goes_first())) {
      write_behind(lock);
      turns_.behind_took(steady::now() - begun);
    } else {
      auto waiting = take_batches();
      auto turns = take_turns();
      lock.unlock();
      commit_all(waiting, turns);
      waiting.clear();  // what the callbacks hold ends without the lock
      turns.clear();
      lock.lock();
      turns_.commits_took(steady::now() - begun);
    }
    lock.unlock();
    shorten_wal();
    leave_lock_free();
    lock.lock();
  }
}

void sqlite_writer::write_behind(std::unique_lock<std::mutex>& lock) {
  // In turns, when both wait.
  cut_was_last_ = !cuts_.empty() && (slices_.empty() || !cut_was_last_);
  if (cut_was_last_) {
    write_one(cuts_, lock, [this](const waiting_cut& cut) { return cut_some(cut); });
  } else if (!slices_.empty()) {
    write_one(slices_, lock, [this](waiting_slice& slice) { return write_slice(slice); });
  }
}

template <class Waiting, class Write>
void sqlite_writer::write_one(std::deque<Waiting>& waiting, std::unique_lock<std::mutex>& lock,
                              Write write) {
  Waiting first = std::move(waiting.front());
  waiting.pop_front();
  lock.unlock();
  const bool finished = write(first);
  lock.lock();
  if (!finished) waiting.push_front(std::move(first));
}

bool sqlite_writer::cut_some(const waiting_cut& what) {
  if (fatal_) {
    what.done(*fatal_);
    return true;
  }
  store_facts facts = facts_;
  auto deleted = delete_batches(std::min(what.upto, facts_.checkpoint), facts);
  if (auto* fault = std::get_if<store_error>(&deleted)) {
    if (fault->what == store_error::kind::fatal) fatal_ = *fault;
    what.done(*fault);
    return true;
  }
  facts_ = facts;
  has_written_ = true;
  if (std::get<std::int64_t>(deleted) == batches_cut_at_once) return false;
  what.done(facts_.anchor.last_row);
  return true;
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
  return count;
}

std::vector<sqlite_writer::waiting_batch> sqlite_writer::take_batches() {
  std::vector<waiting_batch> taken;
  std::size_t bytes = 0;
  while (!batches_.empty() && bytes < transaction_bytes) {
    bytes += bytes_of(batches_.front().what);
    taken.push_back(std::move(batches_.front()));
    batches_.pop_front();
  }
  return taken;
}

std::vector<sqlite_writer::taken_turn> sqlite_writer::take_turns() {
  std::vector<taken_turn> taken;
  while (!turns_waiting_.empty() && taken.size() < turns_at_once) {
    taken.push_back({std::move(turns_waiting_.front()), {}});
    turns_waiting_.pop_front();
  }
  return taken;
}

void sqlite_writer::commit_all(const std::vector<waiting_batch>& waiting,
                               std::vector<taken_turn>& turns) {
  actors::log_head head = head_;
  const std::int64_t first_row = head_.last_row.value + 1;
  std::optional<store_error> fault = fatal_;
  if constexpr (protocol::mutated(4)) answer_all(waiting, first_row, fault, head);
  if (!fault) fault = write_batches(waiting, turns, head);
  if (!fault) {
    // What was kept before may be of a log that was lost.
    if (!std::exchange(has_written_, true)) heads_.keep(head);
    head_ = head;
    const std::lock_guard lock(mutex_);
    published_head_ = head;
  } else if (fault->what == store_error::kind::fatal) {
    fatal_ = fault;
  }
  if constexpr (!protocol::mutated(4)) answer_all(waiting, first_row, fault, head);
  for (const taken_turn& each : turns) each.what.answer(fault ? fault : each.fault);
}

void sqlite_writer::answer_all(const std::vector<waiting_batch>& waiting, std::int64_t first_row,
                               const std::optional<store_error>& fault,
                               const actors::log_head& head) {
  for (const waiting_batch& each : waiting) {
    if (fault) {
      each.done(*fault);
      continue;
    }
    each.done(actors::committed{{first_row}, head});
    first_row += each.what.rows;
  }
}

std::optional<store_error> sqlite_writer::write_batches(const std::vector<waiting_batch>& waiting,
                                                        std::vector<taken_turn>& turns,
                                                        actors::log_head& head) {
  std::vector<const actors::batch*> batches;
  batches.reserve(waiting.size());
  for (const waiting_batch& each : waiting) batches.push_back(&each.what);
  const auto pieces = cut_pieces(batches, head);
  if (!pieces) {
    return store_error{store_error::kind::corrupt,
                       "a batch does not hold the rows that it says; nothing of it was stored"};
  }
  std::optional<store_error> fault;
  {
    transaction whole(db_);
    if ((fault = whole.begin_writing())) return fault;
    for (const actors::stored_batch& piece : *pieces) {
      if ((fault = insert(piece))) return fault;
    }
    for (const waiting_batch& each : waiting) {
      if ((fault = insert_policies(each.what))) return fault;
      if ((fault = apply_dispatches(each.what))) return fault;
    }
    for (taken_turn& each : turns) {
      if ((fault = take_part(each))) return fault;
    }
    // With the rows of the restore the file is no backup any more.
    if (facts_.is_backup && !pieces->empty() && (fault = write_backup_mark(db_, false)))
      return fault;
    fault = whole.commit();
  }
  if (!fault && !pieces->empty()) facts_.is_backup = false;
  return fault ? settle_failed_commit(std::move(*fault)) : std::nullopt;
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

bool sqlite_writer::write_slice(waiting_slice& slice) {
  auto fault = fatal_ ? fatal_ : write_records(slice);
  if (fault) {
    if (fault->what == store_error::kind::fatal) fatal_ = fault;
    slice.done(*fault);
    return true;
  }
  if (slice.written < slice.what.changed.size()) return false;
  // Somebody hears here if it cannot be copied; nobody may ask for a commit soon.
  shorten_wal();
  if (fatal_) {
    slice.done(*fatal_);
  } else {
    slice.done(true);
  }
  return true;
}

std::optional<store_error> sqlite_writer::write_records(waiting_slice& slice) {
  const actors::checkpoint_slice& what = slice.what;
  if (what.upto > head_.last_row) {
    return store_error{store_error::kind::corrupt,
                       "the checkpoint is ahead of the log; nothing of it was stored"};
  }
  const std::size_t end = std::min(slice.written + records_at_once, what.changed.size());
  const bool finishes = what.last && end == what.changed.size();
  store_facts facts = facts_;
  // Until the last slice a lost transaction only means an older checkpoint: no fsync is needed.
  const char* safety = finishes ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
  if (auto fault = db_.execute(safety, "preparing")) return fault;
  std::optional<store_error> fault;
  {
    transaction part(db_);
    fault = part.begin_writing();
    for (std::size_t i = slice.written; !fault && i < end; ++i) {
      fault = write_record(what.changed[i], facts);
    }
    if (end == what.changed.size()) {
      forgotten_.insert(what.forgotten.begin(), what.forgotten.end());
    }
    if (!fault && finishes) {
      fault = forget_records(facts);
      facts.checkpoint = what.upto;
      facts.state = what.state;
    }
    if (!fault) fault = write_checkpoint_facts(db_, facts);
    if (!fault) fault = part.commit();
  }
  if (!fault) {
    has_written_ = true;
    heads_.keep(head_);
    facts_ = facts;
    slice.written = end;
  }
  if (auto unsafe = db_.execute("PRAGMA synchronous = FULL", "preparing")) {
    // The next commit would be answered before it is on the disk.
    unsafe->what = store_error::kind::fatal;
    return unsafe;
  }
  if (fault) return fault;
  if (finishes) forgotten_.clear();
  return std::nullopt;
}

std::optional<store_error> sqlite_writer::write_record(const actors::checkpoint_entry& entry,
                                                       store_facts& facts) {
  if (auto fault = remove_from_sums(entry.key, facts)) return fault;
  forgotten_.erase(entry.key);
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
  if (fatal_ || wal_pages_ < wal_limit_pages_) {
    next_shortening_ = 0;
    return;
  }
  if (wal_pages_ < next_shortening_) return;
  next_shortening_ = wal_pages_ + wal_limit_pages_ / 4;
  const int code =
      sqlite3_wal_checkpoint_v2(db_.raw(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code == SQLITE_OK || code == SQLITE_BUSY) return;
  const store_error fault = db_.error(code, "copying the write-ahead log of");
  if (fault.what == store_error::kind::fatal) fatal_ = fault;
}

void sqlite_writer::leave_lock_free() {
  const auto now = steady::now();
  if (now - busy_since_ < busy_stretch) return;
  std::this_thread::sleep_for(lock_pause);
  busy_since_ = steady::now();
}

}  // namespace leasehold::storage
