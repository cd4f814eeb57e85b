// A store in front of another: it keeps what was handed over to be committed and what was answered,
// so that a test can tell whether a log holds whole batches, in order, and all that were answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "leasehold/actors/forwarding_store.hpp"

namespace leasehold::tests {

/// The log as it should be, over all lives of one directory.
class expected_log {
 public:
  void hand_over(const actors::batch& what) {
    const std::lock_guard lock(mutex_);
    std::string bytes;
    for (const auto& group : what.groups) bytes += group;
    auto read = protocol::decode_rows(bytes, {next_row()});
    std::ranges::move(read.rows, std::back_inserter(rows_));
    ends_.insert(next_row() - 1);
  }
  void answered(protocol::row_number last) {
    const std::lock_guard lock(mutex_);
    answered_ = std::max(answered_, last.value);
  }
  /// This directory holds a copy of another's log, up to here.
  void begin_as(expected_log& other, protocol::row_number last) {
    const std::scoped_lock lock(mutex_, other.mutex_);
    rows_ = other.rows_;
    ends_ = other.ends_;
    rows_.resize(std::min(rows_.size(), static_cast<std::size_t>(last.value)));
    answered_ = last.value;
  }
  /// The coordinator starts on a log that ends here. What is wrong with that, if anything is.
  std::vector<std::string> recovered(protocol::row_number last) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> faults;
    if (last.value < answered_) {
      faults.push_back("the log ends at row " + std::to_string(last.value) +
                       ", but batches up to row " + std::to_string(answered_) + " were answered");
    }
    if (!ends_.contains(last.value)) {
      faults.push_back("the log ends at row " + std::to_string(last.value) +
                       ", in the middle of a batch");
    }
    ends_.erase(ends_.upper_bound(last.value), ends_.end());
    if (last.value < next_row()) rows_.resize(static_cast<std::size_t>(last.value));
    answered_ = last.value;
    return faults;
  }
  /// Compares the rows up to the newest start. The log begins behind row `cut`.
  std::vector<std::string> compare(const std::vector<protocol::stored_row>& log, std::int64_t cut) {
    const std::lock_guard lock(mutex_);
    for (const auto& row : log) {
      if (row.row.value >= next_row()) break;
      if (row == rows_[static_cast<std::size_t>(row.row.value - 1)]) continue;
      return {"row " + std::to_string(row.row.value) + " is not the one that was handed over"};
    }
    if (cut >= next_row()) return {"rows were cut that were never handed over"};
    return {};
  }

 private:
  [[nodiscard]] std::int64_t next_row() const {
    return static_cast<std::int64_t>(rows_.size()) + 1;
  }

  std::mutex mutex_;
  std::vector<protocol::stored_row> rows_;
  std::set<std::int64_t> ends_{0};  ///< of batches
  std::int64_t answered_ = 0;
};

class recording_store final : public actors::forwarding_store {
 public:
  /// `faults`: where to say what recover found wrong. `counts` says whether an answer still counts:
  /// nobody hears one after the crash.
  recording_store(std::unique_ptr<actors::store> behind, expected_log& log,
                  std::vector<std::string>& faults, std::function<bool()> counts)
      : forwarding_store(std::move(behind)),
        log_(log),
        faults_(faults),
        counts_(std::move(counts)) {}
  ~recording_store() override { end(); }

  actors::store_result<actors::recovered_head> recover(
      const std::function<void(const actors::store_state&)>& on_state,
      const std::function<void(actors::checkpoint_entry&&)>& on_record,
      const std::function<void(protocol::policy_id, const protocol::policy&)>& on_policy,
      const std::function<void(actors::stored_batch&&)>& on_batch) override {
    auto found = forwarding_store::recover(on_state, on_record, on_policy, on_batch);
    if (const auto* head = std::get_if<actors::recovered_head>(&found)) {
      faults_ = log_.recovered(head->head.last_row);
    }
    return found;
  }
  void commit(actors::batch what,
              std::function<void(actors::store_result<actors::committed>)> done) override {
    log_.hand_over(what);
    forwarding_store::commit(std::move(what), [this, done = std::move(done)](
                                                  actors::store_result<actors::committed> result) {
      const auto* durable = std::get_if<actors::committed>(&result);
      if (durable != nullptr && counts_()) log_.answered(durable->head.last_row);
      done(std::move(result));
    });
  }

 private:
  expected_log& log_;
  std::vector<std::string>& faults_;
  std::function<bool()> counts_;
};

}  // namespace leasehold::tests
