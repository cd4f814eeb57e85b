// How often somebody may ask, by the coordinator's clock, and how many of something a tenant may
// have.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "leasehold/protocol/units.hpp"

namespace leasehold::server {

/// A bucket of its own: `per_second` units a second, twice as many for a moment.
class bucket {
 public:
  /// How long until `units` may be taken; 0 ms: they were taken. Without a limit they always are.
  protocol::duration take(std::int64_t units, std::int64_t per_second, protocol::instant now);
  /// Takes them in any case; how long until the sender is within its rate again.
  protocol::duration charge(std::int64_t units, std::int64_t per_second, protocol::instant now);

 private:
  void refill(std::int64_t per_second, protocol::instant now);

  std::int64_t spent_thousandths_ = 0;  ///< of a unit, not yet given back by time
  protocol::instant seen_at_;
};

/// Any thread. Names come from the principals file alone, so there are boundedly many.
class rate_limits {
 public:
  /// Takes one request of `name`; how long to wait when it may not ask now.
  protocol::duration take(const std::string& name, std::int64_t per_second, protocol::instant now);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, bucket> buckets_;
};

/// How many of something each tenant has at once. Any thread.
class tenant_quota : public std::enable_shared_from_this<tenant_quota> {
 public:
  /// Gives one back when the last copy of it goes.
  using ticket = std::shared_ptr<const void>;
  /// Null when the tenant has `most` already.
  ticket enter(const std::string& tenant, std::int64_t most);

 private:
  void leave(const std::string& tenant);

  std::mutex mutex_;
  std::unordered_map<std::string, std::int64_t> live_;
};

}  // namespace leasehold::server
