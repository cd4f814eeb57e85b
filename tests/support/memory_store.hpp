// A store in memory with faults to order: the n-th commit fails, commits wait until told, what was
// not yet acknowledged is lost. Keeps the same log as the real stores, seals and chain included.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "src/store/batch_log.hpp"
#include "src/store/stored_grant.hpp"
#include "support/memory_dispatch_store.hpp"

namespace leasehold::tests {

/// Any thread may call it. `done` runs inside commit() and checkpoint(), or inside the call that
/// lets a held commit go on; never under the lock.
class memory_store final : public actors::store {
 public:
  explicit memory_store(std::string store_id = "00000000000000000000000000000001",
                        std::int64_t shards = 64)
      : store_id_(std::move(store_id)), shards_(shards) {
    head_.chain = storage::genesis_chain(store_id_);
  }

  // ---- faults

  /// The n-th commit from now fails (1: the next one). Nothing of it is in the log.
  void fail_commit(std::int64_t n,
                   actors::store_error::kind what = actors::store_error::kind::full) {
    const std::lock_guard lock(mutex_);
    failures_[commits_ + n] = what;
  }
  /// The keys of all records that were checkpointed since it was last asked, in their order.
  std::vector<protocol::lease_key> take_checkpointed() {
    const std::lock_guard lock(mutex_);
    return std::exchange(checkpointed_, {});
  }
  /// Reads of grants wait until answer_reads().
  void hold_reads() {
    const std::lock_guard lock(mutex_);
    reads_held_ = true;
  }
  /// Every grant that is read from now on is this one, or a failure.
  void answer_reads_with(actors::store_result<actors::stored_grant> what) {
    const std::lock_guard lock(mutex_);
    read_answer_ = std::move(what);
  }
  std::size_t answer_reads() {
    std::vector<waiting_read> now;
    {
      const std::lock_guard lock(mutex_);
      reads_held_ = false;
      now.swap(reads_);
    }
    for (auto& each : now) read_grant(each.key, each.newest, std::move(each.done));
    return now.size();
  }
  [[nodiscard]] std::int64_t reads() const {
    const std::lock_guard lock(mutex_);
    return reads_asked_;
  }

  /// The next read of requests is refused.
  void fail_requests() { fails_requests_ = true; }

  /// From now on commits wait, in order, until complete_next() or complete_all().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  /// Commits are done at once again; what waits is done now.
  void resume() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    complete_all();
  }
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  /// Makes the oldest waiting commit durable (or fail, when that was ordered). False: none waits.
  bool complete_next() {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) return false;
    pending next = std::move(waiting_.front());
    waiting_.pop_front();
    const auto outcome = write(next);
    lock.unlock();
    next.done(outcome);
    return true;
  }
  std::size_t complete_all() {
    std::size_t completed = 0;
    while (complete_next()) ++completed;
    return completed;
  }
  /// As a store that takes what waits into one commit: each batch is answered with the head of all,
  /// and `after_first` is called behind the first answer.
  void complete_as_one(const std::function<void()>& after_first) {
    std::vector<std::pair<pending, actors::store_result<actors::committed>>> done;
    {
      const std::lock_guard lock(mutex_);
      for (auto& each : waiting_) {
        auto outcome = write(each);
        done.emplace_back(std::move(each), std::move(outcome));
      }
      waiting_.clear();
      for (auto& [batch, outcome] : done) {
        if (auto* durable = std::get_if<actors::committed>(&outcome)) durable->head = head_;
      }
    }
    for (std::size_t i = 0; i < done.size(); ++i) {
      done[i].first.done(done[i].second);
      if (i == 0) after_first();
    }
  }
  /// As a crash between commit and answer: the oldest waiting commit is in the log, nobody is told.
  bool write_next_untold() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    write(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  /// As a crash before the commit: what waits is gone and nobody is told. Recover afterwards.
  void crash() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    held_ = false;
  }
  [[nodiscard]] std::int64_t commits() const {
    const std::lock_guard lock(mutex_);
    return commits_;
  }
  [[nodiscard]] actors::log_head anchor() const {
    const std::lock_guard lock(mutex_);
    return anchor_;
  }
  [[nodiscard]] std::map<protocol::policy_id, protocol::policy> policies() const {
    const std::lock_guard lock(mutex_);
    return policies_;
  }
  /// Every row of the log, decoded.
  [[nodiscard]] std::vector<protocol::stored_row> all_rows() const {
    const std::lock_guard lock(mutex_);
    return decode_from(1, static_cast<std::size_t>(-1));
  }

  // ---- actors::store

  actors::store_result<actors::recovered_head> recover(
      const std::function<void(const actors::store_state&)>& on_state,
      const std::function<void(actors::checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(actors::stored_batch&&)>& on_batch) override {
    std::unique_lock lock(mutex_);
    const auto records = records_;
    const auto policies = policies_;
    const auto log = log_;
    actors::recovered_head out{head_, checkpoint_, std::nullopt, store_id_, shards_};
    if (!log_.empty()) out.anchor = log_.back().anchor;
    const auto state = state_;
    out.anchor_row = anchor_.last_row;
    lock.unlock();
    on_state(state);
    for (const auto& [id, chosen] : policies) on_policy(id, chosen);
    for (const auto& [key, image] : records) on_record({key, image});
    for (const auto& each : log) {
      if (each.last_row > out.checkpoint) on_batch(actors::stored_batch(each));
    }
    return out;
  }

  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    std::unique_lock lock(mutex_);
    pending next{std::move(what), std::move(done), {}};
    ++commits_;
    if (const auto found = failures_.find(commits_); found != failures_.end()) {
      next.failure = found->second;
      failures_.erase(found);
    }
    if (held_ || !waiting_.empty()) {
      waiting_.push_back(std::move(next));
      return;
    }
    const auto outcome = write(next);
    lock.unlock();
    next.done(outcome);
  }

  void checkpoint(actors::checkpoint_slice slice,
                  std::function<void(actors::store_result<bool>)> done) override {
    {
      const std::lock_guard lock(mutex_);
      for (auto& each : slice.changed) {
        forgotten_.erase(each.key);
        checkpointed_.push_back(each.key);
        records_[each.key] = std::move(each.image);
      }
      forgotten_.insert(slice.forgotten.begin(), slice.forgotten.end());
      if (slice.last) {
        for (const auto& key : forgotten_) records_.erase(key);
        forgotten_.clear();
        checkpoint_ = slice.upto;
        state_ = slice.state;
      }
    }
    done(true);
  }

  void read_grant(protocol::lease_key key, protocol::row_number newest,
                  std::function<void(actors::store_result<actors::stored_grant>)> done) override {
    std::unique_lock lock(mutex_);
    if (reads_held_) {
      reads_.push_back({std::move(key), newest, std::move(done)});
      return;
    }
    ++reads_asked_;
    auto said = read_answer_ ? *read_answer_ : stored(key, newest);
    lock.unlock();
    done(std::move(said));
  }

  void read_requests(protocol::lease_key key, protocol::row_number newest, protocol::generation gen,
                     protocol::instant since,
                     std::function<void(actors::store_result<std::vector<protocol::past_request>>)>
                         done) override {
    if (std::exchange(fails_requests_, false)) {
      done(actors::store_error{actors::store_error::kind::busy, "busy"});
      return;
    }
    auto rows = std::get<0>(rows_of_lease(key, newest, 65'536));
    std::erase_if(rows, [&](const auto& row) { return row.at < since; });
    done(protocol::requests_in(rows, gen));
  }

  void find_row_before(
      protocol::instant at,
      std::function<void(actors::store_result<protocol::row_number>)> done) override {
    protocol::row_number found;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& each : log_) {
        if (each.anchor.coordinator_time < at) found = each.last_row;
      }
    }
    done(found);
  }

  void cut(protocol::row_number upto,
           std::function<void(actors::store_result<protocol::row_number>)> done) override {
    protocol::row_number begins;
    {
      const std::lock_guard lock(mutex_);
      const auto last = std::min(upto, checkpoint_);
      while (!log_.empty() && log_.front().last_row <= last) {
        anchor_ = {log_.front().last_row, log_.front().chain};
        log_.erase(log_.begin());
      }
      begins = anchor_.last_row;
    }
    done(begins);
  }

  actors::store_result<std::optional<protocol::policy>> find_policy(
      protocol::policy_id id) override {
    const std::lock_guard lock(mutex_);
    const auto found = policies_.find(id);
    if (found == policies_.end()) return std::optional<protocol::policy>{};
    return std::optional{found->second};
  }

  actors::store_result<std::vector<protocol::stored_row>> rows_of_lease(
      const protocol::lease_key& key, protocol::row_number newest, std::size_t limit) override {
    const std::lock_guard lock(mutex_);
    std::vector<protocol::stored_row> found;
    for (std::int64_t at = newest.value; at > 0 && found.size() < limit;) {
      auto rows = decode_from(at, 1);
      if (rows.empty() || rows.front().key != key) break;
      at = rows.front().prev_row.value;
      found.push_back(std::move(rows.front()));
    }
    return found;
  }

  actors::store_result<std::vector<protocol::stored_row>> rows_from(protocol::row_number from,
                                                                    std::size_t limit) override {
    const std::lock_guard lock(mutex_);
    return decode_from(from.value, limit);
  }

  actors::store_result<std::vector<actors::stored_batch>> batches_from(protocol::row_number from,
                                                                       std::size_t limit) override {
    const std::lock_guard lock(mutex_);
    std::vector<actors::stored_batch> found;
    for (const auto& each : log_) {
      if (each.last_row >= from && found.size() < limit) found.push_back(each);
    }
    return found;
  }

  actors::store_result<actors::log_head> head() override {
    const std::lock_guard lock(mutex_);
    return head_;
  }

  memory_dispatch_store& dispatches() override { return dispatches_; }

 private:
  struct pending {
    actors::batch what;
    std::function<void(actors::store_result<actors::committed>)> done;
    std::optional<actors::store_error::kind> failure;
  };

  struct waiting_read {
    protocol::lease_key key;
    protocol::row_number newest;
    std::function<void(actors::store_result<actors::stored_grant>)> done;
  };

  [[nodiscard]] actors::store_result<actors::stored_grant> stored(
      const protocol::lease_key& key, protocol::row_number newest) const {
    protocol::fold folded;
    for (const auto& [id, chosen] : policies_) folded.learn(id, chosen);
    std::optional<protocol::fold::lease_image> image;
    if (const auto found = records_.find(key); found != records_.end()) image = found->second;
    const auto upto = image ? image->last_row : protocol::row_number{};
    std::vector<protocol::stored_row> rows;
    for (auto at = newest; at > upto; at = rows.back().prev_row) {
      rows.push_back(std::move(decode_from(at.value, 1).front()));
    }
    return storage::fold_grant(std::move(folded), key, std::move(image), rows);
  }

  actors::store_result<actors::committed> write(const pending& next) {
    if (next.failure)
      return actors::store_error{*next.failure, "the test ordered this commit to fail"};
    const protocol::row_number first{head_.last_row.value + 1};
    auto pieces = storage::cut_pieces({&next.what}, head_);
    if (!pieces) {
      return actors::store_error{actors::store_error::kind::corrupt,
                                 "the batch does not hold the rows that it says"};
    }
    for (auto& each : *pieces) log_.push_back(std::move(each));
    for (const auto& [id, chosen] : next.what.policies) policies_[id] = chosen;
    dispatches_.apply(next.what.dispatches);
    return actors::committed{first, head_};
  }

  [[nodiscard]] std::vector<protocol::stored_row> decode_from(std::int64_t from,
                                                              std::size_t limit) const {
    std::vector<protocol::stored_row> found;
    for (const auto& each : log_) {
      if (each.last_row.value < from) continue;
      for (auto& r : protocol::decode_rows(each.rows, each.first_row).rows) {
        if (found.size() >= limit) return found;
        if (r.row.value >= from) found.push_back(std::move(r));
      }
    }
    return found;
  }

  mutable std::mutex mutex_;
  std::string store_id_;
  std::int64_t shards_;
  actors::log_head head_;
  std::vector<actors::stored_batch> log_;
  std::map<protocol::lease_key, protocol::fold::lease_image> records_;
  std::vector<protocol::lease_key> checkpointed_;
  std::map<protocol::policy_id, protocol::policy> policies_;
  std::set<protocol::lease_key> forgotten_;
  protocol::row_number checkpoint_;
  actors::store_state state_;
  actors::log_head anchor_;  ///< the log begins behind it
  std::deque<pending> waiting_;
  std::map<std::int64_t, actors::store_error::kind> failures_;
  std::int64_t commits_ = 0;
  bool held_ = false;
  std::vector<waiting_read> reads_;
  std::optional<actors::store_result<actors::stored_grant>> read_answer_;
  std::int64_t reads_asked_ = 0;
  bool fails_requests_ = false;
  bool reads_held_ = false;
  memory_dispatch_store dispatches_;
};

}  // namespace leasehold::tests
