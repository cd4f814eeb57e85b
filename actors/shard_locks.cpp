// Locks: who waits in line for one, and what one is tied to. Whoever is let through is judged like
// anybody else.
#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"
#include "actors/standing.hpp"
#include "actors/usage.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

namespace {

/// Nobody has it, and nobody is kept from it.
bool is_free(const protocol::record& r) { return !protocol::is_live(r.state) && !r.frozen; }

}  // namespace

const protocol::remembered_request* remembered(const protocol::record& r,
                                               const protocol::request_id& id) {
  if (id.empty()) return nullptr;
  for (const auto& each : r.requests) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

void shard_actor::enqueue_operation(lease_entry& entry, shard_operation operation) {
  event_group group;
  group.stamp = operation.ingress;
  group.session = operation.session;
  group.events.push_back(operation.what);
  group.operation = std::make_shared<shard_operation>(std::move(operation));
  enqueue_group(entry, std::move(group));
}

void shard_actor::take_acquire(shard_operation& operation) {
  auto* const known = leases_.find(operation.key);
  if (known == nullptr || !known->known()) {
    // A restored store knows nothing of the grants after its backup, of no lock.
    if (operation.ingress < context_->grants_from) {
      refuse(operation, protocol::reason::retry_not_due);
      return;
    }
    if (!reserve(operation)) {
      refuse(operation, protocol::reason::rate_limited);
      return;
    }
  }
  auto& entry = known != nullptr ? *known : leases_.of(operation.key);
  // A request that took effect is answered at once, whoever has the lock now, and whoever waits.
  const auto state = entry.known() ? entry.state() : nullptr;
  operation.repeats = state && remembered(*state, operation.what.request) != nullptr;
  const bool may_wait = !operation.repeats && operation.wait_until > operation.ingress;
  if (may_wait && (must_wait(entry, state.get(), operation) || lines_.contains(entry.mark))) {
    join_line(entry, operation);
    return;
  }
  // Whoever waits for a lock that has just become free goes first.
  const bool was_idle = entry.idle();
  wake_line(entry);
  if (was_idle && !entry.idle()) operation.ingress = context_->clock->now();
  auto* const line = operation.repeats ? nullptr : undecided_line(entry, operation.ingress);
  const bool is_full =
      line != nullptr
          ? line->passers.size() >= options_->waiting_groups
          : !entry.idle() && entry.if_awake()->groups->waiting.size() >= options_->waiting_groups;
  if (is_full) {
    give_back(operation);
    refuse(operation, protocol::reason::rate_limited);
  } else if (line != nullptr) {
    line->passers.push_back(std::move(operation));
  } else {
    judge_acquire(entry, std::move(operation));
  }
}

bool shard_actor::must_wait(const lease_entry& entry, const protocol::record* state,
                            const shard_operation& operation) {
  if (state == nullptr) return !entry.idle();
  if (state->kind != protocol::lease_kind::lock) return false;
  return !entry.idle() || !is_free(*state) || operation.ingress < state->next_offer_at;
}

lock_line* shard_actor::undecided_line(const lease_entry& entry, protocol::instant now) {
  const auto found = lines_.find(entry.mark);
  if (found == lines_.end()) return nullptr;
  if (!entry.idle() || now < found->second.closed_until) return &found->second;
  const auto state = entry.state();
  // Its deadline has passed and is judged in a moment.
  const bool is_ending = protocol::is_live(state->state) && state->expires_at <= now;
  return is_ending ? &found->second : nullptr;
}

bool shard_actor::judge_acquire(lease_entry& entry, shard_operation operation) {
  // A repeat is answered with what it was granted, and holds nothing more.
  operation.counted = !operation.repeats;
  if (operation.counted &&
      !usage::reserve(locks_of(entry.tenant(), operation.what.from), 1, operation.most_locks)) {
    operation.counted = false;
    give_back(operation);
    refuse(operation, protocol::reason::rate_limited);
    return false;
  }
  enqueue_operation(entry, std::move(operation));
  return true;
}

bool shard_actor::let_through(lease_entry& entry, shard_operation operation) {
  // It came long ago: now is when it is asked whether the lock is free.
  operation.ingress = context_->clock->now();
  return judge_acquire(entry, std::move(operation));
}

std::atomic<std::int64_t>& shard_actor::locks_of(const protocol::tenant_id& tenant,
                                                 const protocol::holder& holder) {
  const auto principal = std::string_view(holder.value).substr(0, holder.value.find('/'));
  auto& count = locks_of_principal_[tenant.value + '\n' + std::string(principal)];
  if (!count) count = context_->usage->locks_of(tenant, principal);
  return *count;
}

void shard_actor::uncount(shard_operation& operation) {
  if (!std::exchange(operation.counted, false)) return;
  --locks_of(operation.key.tenant, operation.what.from);
}

void shard_actor::follow_lock(const lease_entry& entry, const protocol::record& before) {
  if (!entry.is_lock) return;
  const auto after = entry.state();
  const bool was = protocol::is_live(before.state);
  const bool is = protocol::is_live(after->state);
  if (was && is && before.gen == after->gen) return;
  // In this order, so that at no moment it seems to be fewer.
  if (is) ++locks_of(entry.tenant(), after->held_by);
  if (was) --locks_of(entry.tenant(), before.held_by);
  context_->counters->locks_held.add((is ? 1 : 0) - (was ? 1 : 0));
}

void shard_actor::join_line(lease_entry& entry, shard_operation& operation) {
  auto& line = lines_[entry.mark];
  // A full line is gone through once a second, however many come.
  const auto now = context_->clock->now();
  if (line.size() >= options_->waiters_per_lock && line.pruned_at + options_->store_retry <= now) {
    line.pruned_at = now;
    drop_waiters(line.take_gone(true));
  }
  if (line.size() >= options_->waiters_per_lock) {
    give_back(operation);
    refuse(operation, protocol::reason::rate_limited);
    return;
  }
  if (operation.session) {
    // Answered, pending: whoever waits must not fill the frames in flight of its session.
    protocol::frame_verdict verdict;
    verdict.answers = operation.what.frame_id;
    verdict.epoch = operation.what.session_epoch;
    verdict.decision = protocol::decision::deferred;
    verdict.reason = protocol::reason::awaiting_grant;
    verdict.outcome = protocol::class_of(verdict.decision, verdict.reason);
    verdict.standing.lease = operation.key.lease;
    if (entry.known()) {
      const auto facts = entry.facts();
      verdict.standing = standing_of(*facts.state, facts.last_row);
    }
    answer_to(operation.session, {0, std::move(verdict)}, 1);
  }
  operation.has_waited = true;
  const auto number = ++next_waiter_;
  const auto until = operation.wait_until;
  line.add(number, std::move(operation));
  context_->counters->lock_waiters.add();
  alarm_at(until, [this, mark = entry.mark, number] { end_wait(mark, number); });
  wake_line(entry);
}

void shard_actor::drop_waiters(const std::vector<lock_line::waiter>& gone) {
  for (const auto& each : gone) give_back(*each);
  context_->counters->lock_waiters.add(-static_cast<std::int64_t>(gone.size()));
}

void shard_actor::wake_line(lease_entry& entry) {
  const auto found = lines_.find(entry.mark);
  if (found == lines_.end() || !entry.idle()) return;
  auto& line = found->second;
  drop_waiters(line.take_gone(false));
  const auto now = context_->clock->now();
  if (!line.empty() && now < line.closed_until) return;
  if (!line.empty() && entry.known()) {
    const auto state = entry.state();
    if (!is_free(*state) || now < state->next_offer_at) {
      if (is_free(*state)) wake_line_at(entry.mark, state->next_offer_at);
      let_pass(entry, line);
      return;
    }
  }
  for (bool is_judged = false; !line.empty() && !is_judged;) {
    const auto first = line.take_first();
    context_->counters->lock_waiters.add(-1);
    is_judged = let_through(entry, std::move(*first));
  }
  end_line_if_empty(entry);
}

void shard_actor::let_pass(lease_entry& entry, lock_line& line) {
  for (auto& each : std::exchange(line.passers, {})) let_through(entry, std::move(each));
}

void shard_actor::end_line_if_empty(lease_entry& entry) {
  const auto found = lines_.find(entry.mark);
  if (found == lines_.end() || !found->second.empty()) return;
  auto line = std::move(found->second);
  lines_.erase(found);
  let_pass(entry, line);
}

void shard_actor::answer_copies(lease_entry& entry, const protocol::request_id& request) {
  const auto found = lines_.find(entry.mark);
  if (found == lines_.end() || request.empty()) return;
  for (auto& copy : found->second.take_copies(request)) {
    context_->counters->lock_waiters.add(-1);
    copy->repeats = true;
    let_through(entry, std::move(*copy));
  }
  end_line_if_empty(entry);
}

void shard_actor::wake_line_at(std::uint64_t mark, protocol::instant at) {
  auto& line = lines_.at(mark);
  if (line.wakes_at && line.wakes_at <= at) return;
  line.wakes_at = at;
  alarm_at(at, [this, mark, at] {
    const auto found = lines_.find(mark);
    if (found == lines_.end()) return;
    if (found->second.wakes_at == at) found->second.wakes_at = {};
    wake_line(leases_.at(mark));
  });
}

void shard_actor::end_wait(std::uint64_t mark, std::uint64_t number) {
  const auto found = lines_.find(mark);
  if (found == lines_.end()) return;
  const auto waiter = found->second.take(number);
  if (waiter == nullptr) return;
  context_->counters->lock_waiters.add(-1);
  give_back(*waiter);
  refuse(*waiter, protocol::reason::wait_deadline_passed);
  auto& entry = leases_.at(mark);
  end_line_if_empty(entry);
  rest_or_forget(entry);
  send_answers();
}

void shard_actor::leave_line(const stop_waiting& message) {
  const auto* entry = leases_.find(message.key);
  if (entry == nullptr) return;
  const auto found = lines_.find(entry->mark);
  if (found == lines_.end()) return;
  const auto waiter = found->second.of_frame(message.session->epoch, message.acquire);
  if (waiter != 0) end_wait(entry->mark, waiter);
}

void shard_actor::name_lock(lease_entry& entry, const lock_spec& spec) {
  entry.is_lock = true;
  entry.named = kept_name(spec.name.program);
  if (spec.tie.job.empty() || !protocol::is_live(entry.state()->state)) return;
  const protocol::lease_key job{entry.tenant(), protocol::lease_id{spec.tie.job.value}};
  tell(*context_, context_->shard_for(job), tie_lock{job, spec.tie.gen, entry.key(), nullptr});
}

void shard_actor::lock_granted(lease_entry& entry, const lock_spec& spec) {
  auto& lease = entry.awake();
  auto& chosen = policies_[lease.policy];
  if (!chosen) chosen = std::make_shared<const protocol::policy>(spec.policy);
  lease.body = encode_lock(spec);
  lease.body.shrink_to_fit();
  name_lock(entry, spec);
}

void shard_actor::answer_request(const lease_entry& entry, const shard_operation& operation,
                                 const frame_answer& said, protocol::duration retry,
                                 protocol::generation granted) {
  const auto facts = entry.facts();
  if (operation.session) {
    protocol::frame_verdict verdict;
    verdict.answers = operation.what.frame_id;
    verdict.epoch = operation.what.session_epoch;
    verdict.decision = said.decision;
    verdict.reason = said.reason;
    verdict.outcome = protocol::class_of(said.decision, said.reason);
    verdict.retry_after = retry;
    verdict.standing = standing_of(*facts.state, facts.last_row);
    if (granted.value > 0) verdict.grant = {granted, protocol::holds(*facts.state, granted)};
    answer_to(operation.session, {0, std::move(verdict)}, operation.has_waited ? 0 : 1);
    if (operation.has_waited && said.decision == protocol::decision::accepted) {
      answer_to(
          operation.session,
          {0, protocol::granted{standing_of(*facts.state, facts.last_row), operation.what.request}},
          0);
    }
    return;
  }
  if (!operation.reply) return;
  answer a;
  a.decision = said.decision;
  a.reason = said.reason;
  a.retry_after = retry;
  a.created = said.decision == protocol::decision::accepted;
  a.granted = granted;
  if (entry.known()) a.lease = view_of(entry);
  context_->link->post(operation.reply_thread,
                       [reply = operation.reply, a = std::move(a)] { reply(a); });
}

// ---- ties
// ----------------------------------------------------------------------------------------

void shard_actor::take_tie(tie_lock& message) {
  if (!loaded_) {
    early_ties_.push_back(std::move(message));
    return;
  }
  const auto* entry = find(message.job);
  const auto state = entry != nullptr ? entry->state() : nullptr;
  const bool lives =
      state != nullptr && protocol::is_live(state->state) && state->gen == message.gen;
  if (message.acquire != nullptr) {
    if (lives) {
      const auto& to = context_->shard_for(message.acquire->key);
      tell(*context_, to, std::move(*message.acquire));
      return;
    }
    const bool is_to_come = state != nullptr && message.gen > state->gen;
    refuse(*message.acquire, state == nullptr ? protocol::reason::unknown_lease
                             : is_to_come     ? protocol::reason::unknown_generation
                                              : protocol::reason::generation_closed);
    send_answers();
    return;
  }
  if (lives) {
    ties_[entry->mark].push_back({message.gen, std::move(message.lock)});
    return;
  }
  const protocol::job_id job{message.job.lease.value};
  const auto& to = context_->shard_for(message.lock);
  tell(*context_, to, tie_closed{std::move(message.lock), job, message.gen});
}

void shard_actor::close_ties(const lease_entry& entry, const protocol::record& before) {
  if (ties_.empty() || !protocol::is_live(before.state)) return;
  const auto found = ties_.find(entry.mark);
  if (found == ties_.end()) return;
  const auto after = entry.state();
  if (protocol::is_live(after->state) && after->gen == before.gen) return;
  for (auto& tie : found->second) {
    const auto& to = context_->shard_for(tie.lock);
    tell(*context_, to,
         tie_closed{std::move(tie.lock), protocol::job_id{after->lease.value}, tie.gen});
  }
  ties_.erase(found);
}

void shard_actor::end_tied_lock(const tie_closed& message) {
  auto* const entry = leases_.find(message.lock);
  if (entry == nullptr || !entry->known()) return;
  const auto facts = entry->facts();
  const auto spec = lock_of(facts);
  if (spec == nullptr || spec->tie != lock_tie{message.job, message.gen} ||
      !protocol::is_live(facts.state->state)) {
    return;
  }
  shard_operation release;
  release.key = message.lock;
  release.ingress = context_->clock->now();
  release.tied = true;
  release.what.kind = protocol::event_kind::release;
  release.what.lease = message.lock.lease;
  release.what.gen = facts.state->gen;
  release.what.from = facts.state->held_by;
  release.what.sent_at = release.ingress;
  release.what.detail = "The generation of the job that the lock was tied to has closed.";
  enqueue_operation(*entry, std::move(release));
}

// ---- readers
// -------------------------------------------------------------------------------------

void shard_actor::each_lock(const protocol::tenant_id& tenant, const std::string& after,
                            const std::function<bool(const lease_entry&)>& take) const {
  const auto& all = leases_.all();
  const std::string locks = "k:";  // the ids of all locks begin so, and of no job
  for (auto it = leases_.after({tenant, protocol::lease_id{std::max(after, locks)}});
       it != all.end() && it->tenant() == tenant && it->lease().starts_with(locks); ++it) {
    if (it->is_lock && it->known() && !take(*it)) return;
  }
}

fence_view shard_actor::fence_of(const protocol::lease_key& key) const {
  fence_view fence;
  fence.observed = floors_[protocol::shard_of(key)];
  const auto* entry = find(key);
  if (entry == nullptr) return fence;
  const auto state = entry->state();
  fence.observed = std::max(fence.observed, state->gen);
  if (entry->program() != nullptr) fence.program = *entry->program();
  const bool holds = state->state == protocol::lease_state::active && !state->frozen &&
                     context_->clock->now() < state->expires_at;
  if (holds) fence.live = state->gen;
  return fence;
}

}  // namespace leasehold::actors
