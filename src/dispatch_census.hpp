// How many cancellation dispatches there are and how old: for /metrics, counted at most once a
// second however often it is asked.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "leasehold/actors/dispatch_store.hpp"
#include "src/store/read_pool.hpp"

namespace leasehold::server {

/// Any thread.
class dispatch_census : public std::enable_shared_from_this<dispatch_census> {
 public:
  dispatch_census(std::shared_ptr<actors::dispatch_store> from,
                  std::shared_ptr<storage::read_pool> reads)
      : store_(std::move(from)), reads_(std::move(reads)) {}

  /// The counts of the last second, or new ones; the newest that are known when the store cannot
  /// be asked, nothing when none are. `then` runs inside the call or on a thread of the store.
  using sink = std::function<void(const std::optional<actors::dispatch_counts>&)>;
  void ask(sink then);

 private:
  void answer(actors::store_result<actors::dispatch_counts> counted, const sink& then);
  std::optional<actors::dispatch_counts> known();

  std::shared_ptr<actors::dispatch_store> store_;
  std::shared_ptr<storage::read_pool> reads_;
  std::mutex mutex_;
  std::optional<actors::dispatch_counts> counts_;
  std::chrono::steady_clock::time_point counted_at_{};
};

/// `leasehold_dispatches` and `leasehold_dispatch_oldest_seconds` in Prometheus' text form. Labels
/// are words of the protocol.
std::string dispatch_metrics(const actors::dispatch_counts& counts, protocol::instant now);

}  // namespace leasehold::server
