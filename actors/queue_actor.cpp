#include "actors/queue_actor.hpp"

#include <memory>
#include <utility>

namespace leasehold::actors {

queue_actor::queue_actor(caf::actor_config& config, context_ptr context, options_ptr options,
                         place shard, queue_key key)
    : coordinator_actor(config),
      context_(std::move(context)),
      options_(std::move(options)),
      shard_(std::move(shard)),
      key_(std::move(key)) {}

queue_actor::~queue_actor() { jobs_.clear_and_dispose(std::default_delete<job>{}); }

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

void queue_actor::broken(const std::exception_ptr&) {
  // Its jobs would never be offered again.
  context_->on_fatal("a queue actor failed");
}

void queue_actor::on(job_ready& message) {
  auto [j, fresh] = find_or_make(message.key.lease.value);
  // The shard's answer to an offer that is still on its way settles its reservation.
  const bool offering = !fresh && j.place == place_of_job::offering;
  if (!fresh && !offering) unplace(j);
  set_terms(j, message);
  if (!offering) place_job(j);
}

void queue_actor::on(job_held& message) {
  auto [held, fresh] = find_or_make(message.key.lease.value);
  if (!fresh) {
    if (held.place == place_of_job::offering) offering_over(held);
    unplace(held);
  }
  leave_group(held);
  held.place = place_of_job::held;
  held.held_by = &*holders_.try_emplace(message.holder).first;
  ++held.held_by->second;
  ++taken_;
}

void queue_actor::on(job_closed& message) {
  if (auto* const j = find(message.key.lease.value); j != nullptr) {
    free_slot(*j);
    if (j->place == place_of_job::held) {
      unplace(*j);
      erase(*j);  // job_ready follows when it may be offered again
    }
  }
  for (auto& [epoch, s] : sessions_) {
    if (!s.strays.empty()) s.strays.erase(message.key.lease.value);
  }
}

void queue_actor::on(job_gone& message) {
  auto* const j = find(message.key.lease.value);
  if (j == nullptr || j->place == place_of_job::offering) return;
  unplace(*j);
  erase(*j);
}

void queue_actor::on(job_not_offered& message) {
  auto* const j = find(message.key.lease.value);
  if (j == nullptr || j->place != place_of_job::offering) return;
  auto& refused = *j;
  if (refused.slot == no_slot) {
    refused.of->strays.erase(message.key.lease.value);
  } else {
    free_slot(refused);
  }
  offering_over(refused);
  unplace(refused);
  const bool may_pass = message.reason == protocol::reason::retry_not_due ||
                        message.reason == protocol::reason::store_unavailable ||
                        message.reason == protocol::reason::rate_limited;
  if (may_pass) {
    if (message.again_at >= refused.due) {
      refused.due = message.again_at;
      refused.due_by_not_before = false;
    }
    place_job(refused);
  } else {
    erase(refused);  // its shard says job_ready when that changes
  }
}

void queue_actor::offering_over(job& j) {
  auto& s = *j.of;
  if (j.slot == no_slot) j.of = nullptr;
  --s.offering;
  if (s.gone) forget_if_done(s.ref->epoch);
}

void queue_actor::on(session_credit& message) {
  auto& s = sessions_[message.session->epoch];
  if (s.gone || (s.ref && message.sequence < s.sequence)) return;
  s.ref = message.session;
  s.has = std::move(message.has);
  s.sequence = message.sequence;
  s.slots = message.slots;
  // The connection's set corrects ours, but for offers that it cannot have seen yet.
  const auto unseen = [&s](const job& j) {
    return (j.place == place_of_job::offering && j.of == &s) ||
           (j.place == place_of_job::held && j.held_by->first == s.ref->holder);
  };
  for (auto slot = s.uses.size(); slot-- > 0;) {
    // The last one takes the place of the one that leaves: it has been looked at.
    if (!unseen(*s.uses[slot])) free_slot(*s.uses[slot]);
  }
  std::erase_if(s.strays, [&](const std::string& lease) {
    const auto* const j = find(lease);
    return j == nullptr || !unseen(*j);
  });
  for (const auto& lease : message.held) use(s, lease);
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
  for (auto* const j : it->second.uses) {
    j->of = nullptr;
    j->slot = no_slot;
  }
  sessions_.erase(it);
}

void queue_actor::on(queue_wake&) {
  woken_at_ = {};
  const auto now = context_->clock->now();
  while (!waiting_.empty() && due(*waiting_.begin()) <= now) {
    auto& j = *waiting_.begin();
    unplace(j);
    place_job(j);
  }
}

void queue_actor::on(options_changed& message) { options_ = std::move(message.options); }

void queue_actor::on(queue_query& message) { message.ask(*this); }

void queue_actor::wake_at_earliest() {
  if (waiting_.empty()) return;
  const auto at = due(*waiting_.begin());
  if (woken_at_ && woken_at_ <= at) return;
  woken_at_ = at;
  tell(shard_.who, wake_queue{key_, at});
}

}  // namespace leasehold::actors
