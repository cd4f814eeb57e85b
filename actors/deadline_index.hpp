// The deadlines of one shard in order of time: one ordered index, one timer. A deadline that moves
// later is not touched here; when its entry comes due the lease says when it really ends.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "leasehold/protocol/units.hpp"

namespace leasehold::actors {

/// Entries are (instant, mark); an entry that was overtaken by an earlier one of the same mark is
/// told apart by its owner, who remembers the instant that counts.
class deadline_index {
 public:
  struct item {
    protocol::instant at;
    std::uint64_t mark = 0;
    friend bool operator>(const item& a, const item& b) noexcept {
      return a.at != b.at ? a.at > b.at : a.mark > b.mark;
    }
  };

  void enter(protocol::instant at, std::uint64_t mark) { heap_.push({at, mark}); }

  [[nodiscard]] std::optional<protocol::instant> earliest() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.top().at;
  }

  /// The earliest entry if it is due at `now`; it leaves the index.
  std::optional<item> pop_due(protocol::instant now) {
    if (heap_.empty() || heap_.top().at > now) return std::nullopt;
    auto due = heap_.top();
    heap_.pop();
    return due;
  }

  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }

 private:
  std::priority_queue<item, std::vector<item>, std::greater<>> heap_;
};

}  // namespace leasehold::actors
