// Which job of a queue is offered next and to which session, and what a reader is told about it.
#include <algorithm>
#include <utility>

#include "actors/queue_actor.hpp"

namespace leasehold::actors {

namespace {

/// Offers on their way at once: their groups, rows and frames are all in memory until they are
/// durable.
constexpr std::int64_t most_offering = 1024;

bool has_all(const protocol::labels& has, const protocol::labels& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& label) {
    const auto it = has.find(label.first);
    return it != has.end() && it->second == label.second;
  });
}

}  // namespace

std::int64_t queue_actor::limit() const {
  const auto& limits = options_->queue_limits;
  const auto found = limits.find(key_.queue);
  return found == limits.end() ? 0 : found->second;
}

queue_actor::session* queue_actor::free_session(const protocol::labels& wanted) {
  // In turn, from the one after the session that was served last.
  const auto fits = [&](const session& s) {
    return !s.gone && s.slots > s.used() && has_all(s.has, wanted);
  };
  const auto start = sessions_.upper_bound(last_served_);
  for (auto it = start; it != sessions_.end(); ++it) {
    if (fits(it->second)) return &it->second;
  }
  for (auto it = sessions_.begin(); it != start; ++it) {
    if (fits(it->second)) return &it->second;
  }
  return nullptr;
}

void queue_actor::match() {
  const auto most = limit();
  while (!ready_.empty() && offering_ < most_offering && (most == 0 || taken_ < most)) {
    // The best job of each set of labels that some free session has.
    job* best = nullptr;
    session* to = nullptr;
    for (auto* group : ready_) {
      auto& candidate = *group->ready.begin();
      if (best != nullptr && by_rank()(*best, candidate)) continue;
      if (auto* s = free_session(*group->wanted)) {
        best = &candidate;
        to = s;
      }
    }
    if (to == nullptr) return;
    const auto not_after = best->not_after;
    if (not_after && not_after <= context_->clock->now()) {
      cancel_late(*best);
    } else {
      offer(*best, *to);
    }
  }
}

shard_operation queue_actor::operation_on(const job& j) const {
  shard_operation operation;
  operation.key = {key_.tenant, protocol::lease_id{j.id.view()}};
  operation.ingress = context_->clock->now();
  operation.what.lease = operation.key.lease;
  return operation;
}

void queue_actor::offer(job& j, session& to) {
  unplace(j);
  use(to, j);
  j.place = place_of_job::offering;
  ++taken_;
  ++offering_;
  ++to.offering;
  last_served_ = to.ref->epoch;

  auto operation = operation_on(j);
  operation.session = to.ref;
  operation.what.kind = protocol::event_kind::offer;
  operation.what.job = protocol::job_id{j.id.view()};
  operation.what.from = to.ref->holder;
  const auto& shard = context_->shard_for(operation.key);
  tell(*context_, shard, std::move(operation));
}

void queue_actor::cancel_late(job& j) {
  auto operation = operation_on(j);
  operation.what.kind = protocol::event_kind::cancel;
  unplace(j);
  erase(j);
  const auto& shard = context_->shard_for(operation.key);
  tell(*context_, shard, std::move(operation));
}

queue_view queue_actor::view() const {
  queue_view v;
  v.tenant = key_.tenant;
  v.queue = key_.queue;
  v.limit = limit();
  v.waiting = static_cast<std::int64_t>(waiting_.size());
  for (const auto& j : jobs_) {
    if (j.place == place_of_job::offering) ++v.offered;
    if (j.place == place_of_job::held) ++v.held;
    if (j.place != place_of_job::ready) continue;
    ++v.ready;
    if (!v.oldest || j.submitted_at < v.oldest) v.oldest = j.submitted_at;
  }
  for (const auto& [epoch, s] : sessions_) {
    if (s.gone) continue;
    ++v.workers;
    v.free_slots += std::max<std::int64_t>(0, s.slots - s.used());
  }
  return v;
}

std::vector<queue_actor::session_use> queue_actor::sessions() const {
  std::vector<session_use> used;
  for (const auto& [epoch, s] : sessions_) {
    if (!s.gone) used.push_back({s.ref->holder, s.slots, s.used()});
  }
  return used;
}

std::pair<std::string, std::string> queue_actor::why(const protocol::lease_key& wanted) const {
  const auto* const known = find(wanted.lease.value);
  if (known == nullptr) return {"behind", "The queue is about to learn of the job."};
  const auto& j = *known;
  if (j.place == place_of_job::offering) return {"offering", "The job is being offered now."};
  if (j.place == place_of_job::held)
    return {"held", "A worker has been offered the job or works on it."};
  if (j.place == place_of_job::waiting) {
    return j.due_by_not_before
               ? std::pair<std::string, std::string>{"not_before",
                                                     "The job waits for its not_before."}
               : std::pair<std::string, std::string>{
                     "backoff",
                     "The job waits for next_offer_at, after an attempt, a loss or a lock delay."};
  }
  const auto living =
      std::ranges::count_if(sessions_, [](const auto& s) { return !s.second.gone; });
  if (living == 0) return {"no_worker", "No worker takes jobs from this queue; start one."};
  const auto matching = std::ranges::count_if(sessions_, [&](const auto& s) {
    return !s.second.gone && has_all(s.second.has, *j.group->wanted);
  });
  if (matching == 0) {
    return {"no_matching_labels", "No connected worker has all labels that the job asks for."};
  }
  if (const auto most = limit(); most != 0 && taken_ >= most) {
    return {"queue_limit", "The queue has as many live leases as its limit allows."};
  }
  return {"no_credit", "All matching workers are as busy as they want to be."};
}

}  // namespace leasehold::actors
