#include "src/store/log_writer.hpp"

#include <algorithm>
#include <utility>

#include "protocol/mutation.hpp"
#include "src/store/batch_log.hpp"

namespace leasehold::storage {

namespace {

using actors::store_error;
using protocol::row_number;
using std::chrono::milliseconds;

/// The most that one transaction takes of what waits.
constexpr std::size_t transaction_bytes = std::size_t{1024} * 1024;
/// Records per transaction of a checkpoint: a commit waits for no more than these.
constexpr std::size_t records_at_once = 512;
/// Commits on one side, slices and cuts on the other: a checkpoint keeps up with a load that never
/// pauses, and a commit waits for not much more than this.
constexpr milliseconds most_ahead{5};

/// A batch of dispatch changes alone has a size, too.
std::size_t bytes_of(const actors::batch& what) {
  std::size_t bytes = what.dispatches.size() * 256;
  for (const std::string& group : what.groups) bytes += group.size();
  return bytes;
}

}  // namespace

log_writer::log_writer(store_facts facts, actors::log_head head)
    : facts_(std::move(facts)), head_(head), turns_(most_ahead), published_head_(head) {}

void log_writer::start() {
  thread_ = std::thread([this] { run(); });
}

void log_writer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void log_writer::commit(actors::batch what, commit_done done) {
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back({std::move(what), std::move(done)});
  }
  work_.notify_one();
}

void log_writer::checkpoint(actors::checkpoint_slice slice, slice_done done) {
  {
    const std::lock_guard lock(mutex_);
    slices_.push_back({std::move(slice), std::move(done), 0});
  }
  work_.notify_one();
}

void log_writer::cut(row_number upto, cut_done done) {
  {
    const std::lock_guard lock(mutex_);
    cuts_.push_back({upto, std::move(done)});
  }
  work_.notify_one();
}

actors::log_head log_writer::head() const {
  const std::lock_guard lock(mutex_);
  return published_head_;
}

bool log_writer::add_work(const std::function<bool()>& add) {
  {
    const std::lock_guard lock(mutex_);
    if (!add()) return false;
  }
  work_.notify_one();
  return true;
}

bool log_writer::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto there = [this] { return has_commits() || is_behind(); };
  if (!stopping_ && !there()) {
    work_.wait(lock, [&] { return stopping_ || there(); });
    wake();
  }
  return there();
}

void log_writer::run() {
  wake();
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock)) {
    const auto begun = steady::now();
    if (!has_commits() || (is_behind() && turns_.behind_goes_first())) {
      write_behind(lock);
      turns_.behind_took(steady::now() - begun);
    } else {
      auto waiting = take_batches();
      take_more();
      lock.unlock();
      commit_all(waiting);
      waiting.clear();  // what the callbacks hold ends without the lock
      lock.lock();
      turns_.commits_took(steady::now() - begun);
    }
    lock.unlock();
    rest();
    lock.lock();
  }
}

void log_writer::write_behind(std::unique_lock<std::mutex>& lock) {
  // In turns, when both wait.
  cut_was_last_ = !cuts_.empty() && (slices_.empty() || !cut_was_last_);
  if (cut_was_last_) {
    write_one(cuts_, lock, [this](const waiting_cut& cut) { return cut_some(cut); });
  } else if (!slices_.empty()) {
    write_one(slices_, lock, [this](waiting_slice& slice) { return write_slice(slice); });
  }
}

template <class Waiting, class Write>
void log_writer::write_one(std::deque<Waiting>& waiting, std::unique_lock<std::mutex>& lock,
                           Write write) {
  Waiting first = std::move(waiting.front());
  waiting.pop_front();
  lock.unlock();
  const bool finished = write(first);
  lock.lock();
  if (!finished) waiting.push_front(std::move(first));
}

void log_writer::look_at(const store_error& fault) {
  if (fault.what == store_error::kind::fatal || fault.what == store_error::kind::deposed) {
    ended_ = fault;
  }
}

bool log_writer::cut_some(const waiting_cut& what) {
  if (ended_) {
    what.done(*ended_);
    return true;
  }
  store_facts facts = facts_;
  auto deleted = delete_batches(std::min(what.upto, facts_.checkpoint), facts);
  if (auto* fault = std::get_if<store_error>(&deleted)) {
    look_at(*fault);
    what.done(*fault);
    return true;
  }
  facts_ = facts;
  if (std::get<std::int64_t>(deleted) == batches_cut_at_once) return false;
  what.done(facts_.anchor.last_row);
  return true;
}

std::vector<log_writer::waiting_batch> log_writer::take_batches() {
  std::vector<waiting_batch> taken;
  std::size_t bytes = 0;
  while (!batches_.empty() && bytes < transaction_bytes) {
    bytes += bytes_of(batches_.front().what);
    taken.push_back(std::move(batches_.front()));
    batches_.pop_front();
  }
  return taken;
}

void log_writer::commit_all(const std::vector<waiting_batch>& waiting) {
  actors::log_head head = head_;
  const std::int64_t first_row = head_.last_row.value + 1;
  std::optional<store_error> fault = ended_;
  if constexpr (protocol::mutated(4)) answer_all(waiting, first_row, fault, head);
  if (!fault) fault = write_waiting(waiting, head);
  if (!fault) {
    head_ = head;
    const std::lock_guard lock(mutex_);
    published_head_ = head;
  } else {
    look_at(*fault);
  }
  if constexpr (!protocol::mutated(4)) answer_all(waiting, first_row, fault, head);
  answer_more(fault);
}

std::optional<store_error> log_writer::write_waiting(const std::vector<waiting_batch>& waiting,
                                                     actors::log_head& head) {
  batches of;
  of.reserve(waiting.size());
  for (const waiting_batch& each : waiting) of.push_back(&each.what);
  const auto pieces = cut_pieces(of, head);
  if (!pieces) {
    return store_error{store_error::kind::corrupt,
                       "a batch does not hold the rows that it says; nothing of it was stored"};
  }
  return write(*pieces, of, head);
}

void log_writer::answer_all(const std::vector<waiting_batch>& waiting, std::int64_t first_row,
                            const std::optional<store_error>& fault, const actors::log_head& head) {
  for (const waiting_batch& each : waiting) {
    if (fault) {
      each.done(*fault);
      continue;
    }
    each.done(actors::committed{{first_row}, head});
    first_row += each.what.rows;
  }
}

bool log_writer::write_slice(waiting_slice& slice) {
  auto fault = ended_ ? ended_ : write_some(slice);
  if (fault) {
    look_at(*fault);
    slice.done(*fault);
    return true;
  }
  if (slice.written < slice.what.changed.size()) return false;
  settle_slice();
  if (ended_) {
    slice.done(*ended_);
  } else {
    slice.done(true);
  }
  return true;
}

std::optional<store_error> log_writer::write_some(waiting_slice& slice) {
  const actors::checkpoint_slice& what = slice.what;
  if (what.upto > head_.last_row) {
    return store_error{store_error::kind::corrupt,
                       "the checkpoint is ahead of the log; nothing of it was stored"};
  }
  const std::size_t end = std::min(slice.written + records_at_once, what.changed.size());
  const bool finishes = what.last && end == what.changed.size();
  store_facts facts = facts_;
  for (std::size_t i = slice.written; i < end; ++i) forgotten_.erase(what.changed[i].key);
  if (end == what.changed.size()) {
    forgotten_.insert(what.forgotten.begin(), what.forgotten.end());
  }
  if (finishes) {
    facts.checkpoint = what.upto;
    facts.state = what.state;
  }
  if (auto fault = write_records(what, slice.written, end, finishes, facts)) return fault;
  facts_ = facts;
  slice.written = end;
  if (finishes) forgotten_.clear();
  return std::nullopt;
}

}  // namespace leasehold::storage
