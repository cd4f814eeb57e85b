// The epoch's row in memory, and connections to it that fail and hang as a test says.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "src/epoch_store.hpp"

namespace leasehold::tests {

struct epoch_table {
  std::mutex mutex;
  std::optional<server::epoch_row> row;
};

class fake_epoch_store final : public server::epoch_store {
 public:
  explicit fake_epoch_store(epoch_table& table) : table_(table) {}

  std::atomic<bool> fail{false};  ///< calls do not arrive
  std::atomic<bool> hang{false};  ///< calls wait, and fail then

  using found = actors::store_result<std::optional<server::epoch_row>>;

  found read() override {
    if (auto lost = arrive()) return *lost;
    const std::lock_guard lock(table_.mutex);
    return table_.row;
  }
  found take(const std::optional<server::epoch_row>& seen, const server::epoch_claim& by) override {
    if (auto lost = arrive()) return *lost;
    const std::lock_guard lock(table_.mutex);
    if (table_.row != seen) return std::optional<server::epoch_row>{};
    const std::int64_t epoch = seen ? seen->epoch + 1 : 1;
    const std::int64_t renewal = seen ? seen->renewal + 1 : 1;
    table_.row = server::epoch_row{.epoch = epoch, .renewal = renewal, .by = by};
    return table_.row;
  }
  found renew(const server::epoch_row& mine) override {
    if (auto lost = arrive()) return *lost;
    const std::lock_guard lock(table_.mutex);
    if (!is_still(mine)) return std::optional<server::epoch_row>{};
    ++table_.row->renewal;
    return table_.row;
  }
  actors::store_result<bool> release(const server::epoch_row& mine) override {
    if (auto lost = arrive()) return *lost;
    const std::lock_guard lock(table_.mutex);
    if (!is_still(mine)) return false;
    ++table_.row->renewal;
    table_.row->released = true;
    return true;
  }

 private:
  [[nodiscard]] bool is_still(const server::epoch_row& mine) const {
    return table_.row && table_.row->epoch == mine.epoch && table_.row->by == mine.by &&
           !table_.row->released;
  }
  std::optional<actors::store_error> arrive() const {
    const bool waits = hang;
    while (hang) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    if (!waits && !fail) return std::nullopt;
    return actors::store_error{actors::store_error::kind::io, "The database does not answer."};
  }

  epoch_table& table_;
};

}  // namespace leasehold::tests
