// The tables of cancellation dispatch in memory, with faults to order.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "leasehold/actors/memory_dispatches.hpp"

namespace leasehold::tests {

class memory_dispatch_store final : public actors::memory_dispatches {
 public:
  /// The next call fails with this, whichever it is; nothing is done. Again: the one after it.
  void fail_next(actors::store_error::kind what) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(what);
  }
  /// The next call is done, and answered as if it had not been.
  void lose_next_answer() {
    const std::lock_guard lock(mutex_);
    loses_answer_ = true;
  }
  /// In the way of an event that is to be appended, and out of it again.
  void put_event(const protocol::dispatch_event& event) { put_row(event); }
  void remove_event(const protocol::dispatch_event& event) { remove_row(event); }

 private:
  std::optional<actors::store_error> refuse_call() override {
    const std::lock_guard lock(mutex_);
    if (failures_.empty()) return std::nullopt;
    const auto what = failures_.front();
    failures_.pop_front();
    return actors::store_error{what, "the test ordered this call to fail"};
  }
  std::optional<actors::store_error> lose_answer() override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(loses_answer_, false)) return std::nullopt;
    return actors::store_error{actors::store_error::kind::io, "the answer was lost"};
  }

  std::mutex mutex_;
  std::deque<actors::store_error::kind> failures_;
  bool loses_answer_ = false;
};

}  // namespace leasehold::tests
