#include "src/rate_limits.hpp"

#include <algorithm>

namespace leasehold::server {

namespace {

constexpr std::int64_t burst_seconds = 2;

/// In ms, rounded up: per_second units a second are per_second thousandths a millisecond.
protocol::duration time_for(std::int64_t thousandths, std::int64_t per_second) {
  if (thousandths <= 0) return {};
  return {(thousandths + per_second - 1) / per_second};
}

}  // namespace

void bucket::refill(std::int64_t per_second, protocol::instant now) {
  const std::int64_t elapsed = std::clamp<std::int64_t>(now.ms - seen_at_.ms, 0, 60'000);
  spent_thousandths_ = std::max<std::int64_t>(0, spent_thousandths_ - elapsed * per_second);
  seen_at_ = protocol::later(now, seen_at_);
}

protocol::duration bucket::take(std::int64_t units, std::int64_t per_second,
                                protocol::instant now) {
  if (per_second <= 0) return {};
  refill(per_second, now);
  const std::int64_t full = burst_seconds * per_second * 1000;
  // What is larger than the whole bucket may go when nothing else is spent.
  const std::int64_t wanted = std::min(units * 1000, full);
  const auto wait = time_for(spent_thousandths_ + wanted - full, per_second);
  if (wait.ms == 0) spent_thousandths_ += wanted;
  return wait;
}

protocol::duration bucket::charge(std::int64_t units, std::int64_t per_second,
                                  protocol::instant now) {
  if (per_second <= 0) return {};
  refill(per_second, now);
  spent_thousandths_ += units * 1000;
  return time_for(spent_thousandths_ - burst_seconds * per_second * 1000, per_second);
}

protocol::duration rate_limits::take(const std::string& name, std::int64_t per_second,
                                     protocol::instant now) {
  if (per_second <= 0) return {};
  const std::lock_guard lock(mutex_);
  return buckets_[name].take(1, per_second, now);
}

tenant_quota::ticket tenant_quota::enter(const std::string& tenant, std::int64_t most) {
  const std::lock_guard lock(mutex_);
  std::int64_t& live = live_[tenant];
  if (live >= most) return nullptr;
  ++live;
  return ticket(this, [self = shared_from_this(), tenant](const void*) { self->leave(tenant); });
}

void tenant_quota::leave(const std::string& tenant) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(tenant);
  if (--found->second == 0) live_.erase(found);
}

}  // namespace leasehold::server
