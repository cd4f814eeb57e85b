// Deadlines of a shard: they travel behind the frames that were read before them.
#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

void shard_actor::note_deadline(lease_entry& entry) {
  const auto ends = protocol::next_deadline(*entry.awake().state);
  if (!ends) return;
  // A deadline that moved later stays where it is: it is looked at when it comes due.
  if (entry.indexed_at && entry.indexed_at <= *ends) return;
  entry.indexed_at = *ends;
  index_.enter(*ends, entry.mark);
  context_->counters->deadlines_armed.set(static_cast<std::int64_t>(index_.size()));
}

bool shard_actor::blocked_by_fence(const awake_lease& lease, const event_group& group) const {
  if (group.is_deadline() || group.history != history_row::none) return false;
  const auto ends = protocol::next_deadline(*lease.state);
  return ends && *ends <= group.stamp && *ends > fenced_until_;
}

void shard_actor::alarm_at(protocol::instant at, std::function<void()> what) {
  alarms_.emplace(at, std::move(what));
  arm_timer();
}

void shard_actor::arm_timer() {
  std::optional<protocol::instant> next;
  // While a fence is on its way the index waits for it, at most max_expiry_lag.
  const auto due =
      fence_time_ ? std::optional{fence_time_ + options_->max_expiry_lag} : index_.earliest();
  if (due) next = due;
  if (!alarms_.empty() && (!next || alarms_.begin()->first < *next)) next = alarms_.begin()->first;
  if (!next || armed_for_ == *next) return;
  armed_for_ = *next;
  context_->timer->arm(*next, [who = self_.who] { tell(who, timer_fired{}); });
}

void shard_actor::timer_said() {
  begin_turn();
  armed_for_ = {};
  const auto now = context_->clock->now();
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    const auto what = std::move(alarms_.begin()->second);
    alarms_.erase(alarms_.begin());
    what();
  }
  if (fence_time_ && fence_time_ + options_->max_expiry_lag <= now) {
    fence_complete();
  } else if (const auto earliest = index_.earliest(); earliest && *earliest <= now) {
    raise_fence();
  }
  arm_timer();
}

void shard_actor::raise_fence() {
  if (fence_time_) return;
  ++fence_;
  fence_time_ = context_->clock->now();
  fence_threads_ = 0;
  fence_open_ = 0;
  for (std::size_t thread = 0; thread < context_->threads; ++thread) {
    context_->link->post(thread, [pass = context_->pass_fence, thread, fence = fence_,
                                  self = self_] { pass(thread, fence, self); });
  }
}

void shard_actor::fence_progress() {
  if (!fence_time_ || fence_threads_ < context_->threads || fence_open_ > 0) return;
  begin_turn();
  fence_complete();
  arm_timer();
}

void shard_actor::fence_complete() {
  fenced_until_ = protocol::later(fenced_until_, std::exchange(fence_time_, {}));
  ++fence_;  // what still comes back belongs to a fence that is over
  fire_due();
  for (const auto mark : std::exchange(fence_blocked_, {})) {
    if (auto* entry = leases_.find(mark)) start_next(*entry);
  }
}

void shard_actor::fire_due() {
  const auto now = context_->clock->now();
  while (const auto due = index_.pop_due(fenced_until_)) {
    auto* const found = leases_.find(due->mark);
    if (found == nullptr || found->indexed_at != due->at) continue;
    auto& entry = *found;
    entry.indexed_at = {};
    // One at rest has no deadline any more.
    if (entry.if_awake() == nullptr) continue;
    const auto ends = protocol::next_deadline(*entry.awake().state);
    if (!ends) continue;
    if (*ends > fenced_until_) {
      note_deadline(entry);
      continue;
    }
    context_->counters->expiry_lateness.observe_us((now.ms - ends->ms) * 1000);
    event_group group;
    group.stamp = *ends;
    group.fired_at = now;
    enqueue_group(entry, std::move(group));
  }
  context_->counters->deadlines_armed.set(static_cast<std::int64_t>(index_.size()));
}

}  // namespace leasehold::actors
