#include "actors/queue_actor.hpp"

#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"

namespace leasehold::actors {

namespace {

bool has_all(const protocol::labels& has, const protocol::labels& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& label) {
    const auto it = has.find(label.first);
    return it != has.end() && it->second == label.second;
  });
}

}  // namespace

queue_actor::queue_actor(caf::actor_config& config, context_ptr context, options_ptr options,
                         place shard, queue_key key)
    : coordinator_actor(config),
      context_(std::move(context)),
      options_(std::move(options)),
      shard_(std::move(shard)),
      key_(std::move(key)) {}

std::int64_t queue_actor::limit() const {
  const auto& limits = options_->queue_limits;
  const auto found = limits.find(key_.queue);
  return found == limits.end() ? 0 : found->second;
}

actor_behavior queue_actor::make_behavior() {
  return {[this](queue_event& what) {
    std::visit([this](auto& message) { on(message); }, what);
    match();
    wake_at_earliest();
  }};
}

void queue_actor::on_exit() {
  shard_.who = nullptr;
  sessions_.clear();
}

queue_actor::rank queue_actor::rank_of(const job& j) const {
  return {-j.what.spec->priority, j.what.submitted_at.ms, j.what.since.value,
          j.what.key.lease.value};
}

protocol::instant queue_actor::due(const job& j) const {
  return protocol::later(protocol::later(j.what.next_offer_at, j.what.spec->not_before),
                         context_->grants_from);
}

void queue_actor::place_job(job& j) {
  if (due(j) > context_->clock->now()) {
    j.place = place_of_job::waiting;
    waiting_.emplace(due(j), j.what.key);
    context_->counters->jobs_waiting.add();
  } else {
    j.place = place_of_job::ready;
    ready_[j.what.spec->labels].emplace(rank_of(j), j.what.key);
    context_->counters->jobs_ready.add();
  }
}

void queue_actor::unplace(const job& j) {
  switch (j.place) {
    case place_of_job::ready: {
      const auto it = ready_.find(j.what.spec->labels);
      it->second.erase(rank_of(j));
      if (it->second.empty()) ready_.erase(it);
      context_->counters->jobs_ready.add(-1);
      break;
    }
    case place_of_job::waiting:
      waiting_.erase({due(j), j.what.key});
      context_->counters->jobs_waiting.add(-1);
      break;
    case place_of_job::offering:
    case place_of_job::held:
      --taken_;
      break;
  }
}

void queue_actor::on(job_ready& message) {
  const auto key = message.key;
  const auto [it, fresh] = jobs_.try_emplace(key);
  auto& j = it->second;
  if (!fresh) {
    if (j.place == place_of_job::offering) {
      // The shard's answer to the offer is still on its way and settles this reservation.
      j.what = std::move(message);
      return;
    }
    unplace(j);
  }
  j.what = std::move(message);
  place_job(j);
}

void queue_actor::on(job_held& message) {
  const auto [it, fresh] = jobs_.try_emplace(message.key);
  auto& j = it->second;
  if (fresh) {
    j.what.key = message.key;
  } else if (j.place == place_of_job::offering) {
    offering_over(j);
    --taken_;
  } else {
    unplace(j);
  }
  j.place = place_of_job::held;
  j.held_by = message.holder;
  ++taken_;
}

void queue_actor::on(job_closed& message) {
  const auto it = jobs_.find(message.key);
  if (it != jobs_.end() && it->second.place == place_of_job::held) {
    unplace(it->second);
    jobs_.erase(it);  // job_ready follows when it may be offered again
  }
  for (auto& [epoch, s] : sessions_) s.uses.erase(message.key);
}

void queue_actor::on(job_gone& message) {
  const auto it = jobs_.find(message.key);
  if (it == jobs_.end() || it->second.place == place_of_job::offering) return;
  unplace(it->second);
  jobs_.erase(it);
}

void queue_actor::on(job_not_offered& message) {
  const auto it = jobs_.find(message.key);
  if (it == jobs_.end() || it->second.place != place_of_job::offering) return;
  auto& j = it->second;
  const auto reserved_by = j.reserved_by;
  offering_over(j);
  --taken_;
  if (const auto s = sessions_.find(reserved_by); s != sessions_.end())
    s->second.uses.erase(message.key);
  const bool may_pass = message.reason == protocol::reason::retry_not_due ||
                        message.reason == protocol::reason::store_unavailable ||
                        message.reason == protocol::reason::rate_limited;
  if (may_pass) {
    j.what.next_offer_at = protocol::later(j.what.next_offer_at, message.again_at);
    place_job(j);
  } else {
    jobs_.erase(it);  // its shard says job_ready when that changes
  }
  forget_if_done(reserved_by);
}

void queue_actor::offering_over(job& j) {
  const auto s = sessions_.find(std::exchange(j.reserved_by, 0));
  if (s == sessions_.end()) return;
  --s->second.offering;
  if (s->second.gone) forget_if_done(s->first);
}

void queue_actor::on(session_credit& message) {
  auto& s = sessions_[message.session->epoch];
  if (s.gone || (s.ref && message.sequence < s.sequence)) return;
  s.ref = message.session;
  s.has = std::move(message.has);
  s.sequence = message.sequence;
  s.slots = message.slots;
  // The connection's set corrects ours, but for offers that it cannot have seen yet.
  std::set<protocol::lease_key> uses;
  for (auto& lease : message.held) uses.insert({key_.tenant, std::move(lease)});
  for (const auto& key : s.uses) {
    const auto it = jobs_.find(key);
    if (it == jobs_.end()) continue;
    const bool unseen =
        it->second.reserved_by == s.ref->epoch ||
        (it->second.place == place_of_job::held && it->second.held_by == s.ref->holder);
    if (unseen) uses.insert(key);
  }
  s.uses = std::move(uses);
}

void queue_actor::on(session_gone& message) {
  const auto it = sessions_.find(message.session->epoch);
  if (it == sessions_.end()) {
    tell(*context_, message.session->where, session_forgotten{});
    return;
  }
  it->second.gone = true;
  it->second.ref = message.session;
  forget_if_done(it->first);
}

void queue_actor::forget_if_done(session_id epoch) {
  const auto it = sessions_.find(epoch);
  if (it == sessions_.end() || !it->second.gone || it->second.offering > 0) return;
  tell(*context_, it->second.ref->where, session_forgotten{});
  sessions_.erase(it);
}

void queue_actor::on(queue_wake&) {
  woken_at_ = {};
  const auto now = context_->clock->now();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    auto& j = jobs_.at(waiting_.begin()->second);
    unplace(j);
    place_job(j);
  }
}

void queue_actor::on(options_changed& message) { options_ = std::move(message.options); }

void queue_actor::on(queue_query& message) { message.ask(*this); }

void queue_actor::wake_at_earliest() {
  if (waiting_.empty()) return;
  const auto at = waiting_.begin()->first;
  if (woken_at_ && woken_at_ <= at) return;
  woken_at_ = at;
  tell(shard_.who, wake_queue{key_, at});
}

queue_actor::session* queue_actor::free_session(const protocol::labels& wanted) {
  // In turn, from the one after the session that was served last.
  const auto fits = [&](const session& s) {
    return !s.gone && s.slots > static_cast<std::int64_t>(s.uses.size()) && has_all(s.has, wanted);
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
  while (!ready_.empty() && (most == 0 || taken_ < most)) {
    // The best job of each set of labels that some free session has.
    std::optional<std::pair<rank, protocol::lease_key>> best;
    session* to = nullptr;
    for (const auto& [wanted, ranked] : ready_) {
      const auto& candidate = *ranked.begin();
      if (best && best->first < candidate.first) continue;
      if (auto* s = free_session(wanted)) {
        best = candidate;
        to = s;
      }
    }
    if (to == nullptr) return;
    auto& j = jobs_.at(best->second);
    const auto not_after = j.what.spec->not_after;
    if (not_after && not_after <= context_->clock->now()) {
      cancel_late(j);
    } else {
      offer(j, *to);
    }
  }
}

void queue_actor::offer(job& j, session& to) {
  unplace(j);
  j.place = place_of_job::offering;
  j.reserved_by = to.ref->epoch;
  ++taken_;
  ++to.offering;
  to.uses.insert(j.what.key);
  last_served_ = to.ref->epoch;

  shard_operation operation;
  operation.key = j.what.key;
  operation.ingress = context_->clock->now();
  operation.session = to.ref;
  operation.what.kind = protocol::event_kind::offer;
  operation.what.lease = j.what.key.lease;
  operation.what.job = protocol::job_id{j.what.key.lease.value};
  operation.what.from = to.ref->holder;
  tell(*context_, context_->shard_for(j.what.key), std::move(operation));
}

void queue_actor::cancel_late(const job& j) {
  shard_operation operation;
  operation.key = j.what.key;
  operation.ingress = context_->clock->now();
  operation.what.kind = protocol::event_kind::cancel;
  operation.what.lease = j.what.key.lease;
  const auto key = j.what.key;
  unplace(j);
  jobs_.erase(key);
  tell(*context_, context_->shard_for(key), std::move(operation));
}

queue_view queue_actor::view() const {
  queue_view v;
  v.tenant = key_.tenant;
  v.queue = key_.queue;
  v.limit = limit();
  v.waiting = static_cast<std::int64_t>(waiting_.size());
  for (const auto& [key, j] : jobs_) {
    if (j.place == place_of_job::offering) ++v.offered;
    if (j.place == place_of_job::held) ++v.held;
    if (j.place != place_of_job::ready) continue;
    ++v.ready;
    if (!v.oldest || j.what.submitted_at < v.oldest) v.oldest = j.what.submitted_at;
  }
  for (const auto& [epoch, s] : sessions_) {
    if (s.gone) continue;
    ++v.workers;
    v.free_slots += std::max<std::int64_t>(0, s.slots - static_cast<std::int64_t>(s.uses.size()));
  }
  return v;
}

std::vector<queue_actor::session_use> queue_actor::sessions() const {
  std::vector<session_use> used;
  for (const auto& [epoch, s] : sessions_) {
    if (!s.gone) used.push_back({s.ref->holder, s.slots, static_cast<std::int64_t>(s.uses.size())});
  }
  return used;
}

std::pair<std::string, std::string> queue_actor::why(const protocol::lease_key& wanted) const {
  const auto it = jobs_.find(wanted);
  if (it == jobs_.end()) return {"behind", "The queue is about to learn of the job."};
  const auto& j = it->second;
  if (j.place == place_of_job::offering) return {"offering", "The job is being offered now."};
  if (j.place == place_of_job::held)
    return {"held", "A worker has been offered the job or works on it."};
  if (j.place == place_of_job::waiting) {
    return j.what.spec->not_before > j.what.next_offer_at
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
    return !s.second.gone && has_all(s.second.has, j.what.spec->labels);
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
