// What the coordinator keeps for its tenants, counted over all threads against the operator's
// limits. The one thing besides counters that threads share: a limit that each thread watched for
// itself would refuse too early or too late.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::actors {

/// Any thread.
class usage {
 public:
  using count = std::shared_ptr<std::atomic<std::int64_t>>;

  /// How many leases of the tenant are known. The same count for every caller.
  count leases_of(const protocol::tenant_id& tenant) {
    const std::lock_guard lock(mutex_);
    auto& found = leases_[tenant];
    if (!found) found = std::make_shared<std::atomic<std::int64_t>>(0);
    return found;
  }
  /// How many locks the principal holds. The same count for every caller.
  count locks_of(const protocol::tenant_id& tenant, std::string_view principal) {
    const std::lock_guard lock(mutex_);
    auto& found = locks_[{tenant, std::string(principal)}];
    if (!found) found = std::make_shared<std::atomic<std::int64_t>>(0);
    return found;
  }
  /// Of all jobs that are known.
  std::atomic<std::int64_t>& payload_bytes() noexcept { return payload_bytes_; }

  /// Takes `amount` of what is left below `limit`; false when there is not as much, and then
  /// nothing is taken.
  static bool reserve(std::atomic<std::int64_t>& from, std::int64_t amount, std::int64_t limit) {
    if (from.fetch_add(amount) + amount <= limit) return true;
    from.fetch_sub(amount);
    return false;
  }

 private:
  std::mutex mutex_;
  std::map<protocol::tenant_id, count> leases_;
  std::map<std::pair<protocol::tenant_id, std::string>, count> locks_;
  std::atomic<std::int64_t> payload_bytes_{0};
};

}  // namespace leasehold::actors
