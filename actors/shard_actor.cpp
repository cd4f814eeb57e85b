#include "actors/shard_actor.hpp"

#include <algorithm>
#include <utility>

#include "actors/queue_actor.hpp"
#include "actors/standing.hpp"
#include "actors/usage.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

namespace {

/// Whether two submits are the same request: what the submitter chose, not when and by whom.
bool same_request(const job_spec& a, const job_spec& b) {
  return a.queue == b.queue && a.payload == b.payload && a.labels == b.labels &&
         a.priority == b.priority && a.not_before == b.not_before && a.not_after == b.not_after &&
         a.policy == b.policy && a.redrive_of == b.redrive_of;
}

std::int64_t payload_of(const shard_operation& operation) {
  return operation.spec ? static_cast<std::int64_t>(operation.spec->payload.size()) : 0;
}

}  // namespace

protocol::lease_key job_of_request(const protocol::tenant_id& tenant,
                                   const protocol::request_id& request) {
  return {tenant, protocol::lease_id{"r." + request.value}};
}

shard_actor::shard_actor(caf::actor_config& config, context_ptr context)
    : coordinator_actor(config),
      context_(std::move(context)),
      options_(context_->options),
      floors_(protocol::store_shards) {}

shard_actor::~shard_actor() = default;

actor_behavior shard_actor::make_behavior() {
  self_ = {context_->thread, caf::actor_cast<actor_handle>(this)};
  return {
      [this](shard_frames& message) { take_frames(message); },
      [this](shard_operation& operation) { take_operation(operation); },
      [this](lease_decided& message) { decided(message); },
      [this](const lean_actor_failed&) { context_->on_fatal("a lease actor failed"); },
      [this](journal_answer& message) { journal_said(message); },
      [this](const grant_answer& message) { grant_read(message); },
      [this](const requests_answer& message) { requests_read(message); },
      [this](const timer_fired&) { timer_said(); },
      [this](const fence_expected& said) {
        if (said.fence != fence_) return;
        ++fence_threads_;
        fence_open_ += said.connections;
        fence_progress();
      },
      [this](const fence_returned& said) {
        if (said.fence != fence_) return;
        --fence_open_;
        fence_progress();
      },
      [this](for_queue& message) {
        auto& queue = queues_[message.queue];
        if (!queue) queue = spawn<queue_actor>(context_, options_, self_, message.queue);
        tell(queue, std::move(message.what));
      },
      [this](const wake_queue& message) {
        alarm_at(message.at, [this, key = message.queue] {
          if (const auto it = queues_.find(key); it != queues_.end())
            tell(it->second, queue_event{queue_wake{}});
        });
      },
      [this](const stop_waiting& message) { leave_line(message); },
      [this](tie_lock& message) { take_tie(message); },
      [this](const tie_closed& message) {
        begin_turn();
        end_tied_lock(message);
      },
      [this](process_named& message) { take_process(message); },
      [this](const ask_holder& message) { ask_the_holder(message); },
      [this](const stop_asking& message) { no_more_asking(message); },
      [this](const prove_gone& message) { take_proof(message); },
      [this](resume_leases& message) { resume_each(message); },
      [this](shard_query& message) { message.ask(*this); },
      [this](const collect_checkpoint& message) { collect(message); },
      [this](const collect_more&) { collect_part(); },
      [this](const write_bases& message) { base_all(message); },
      [this](const sweep_on&) { sweep(); },
      [this](load_leases& message) { load(message); },
      [this](const options_changed& message) { change(message); },
  };
}

void shard_actor::on_exit() {
  context_->timer->disarm();
  for (auto& entry : leases_.all()) {
    if (entry.if_awake() == nullptr) continue;
    auto& lease = entry.awake();
    if (lease.actor) ask_to_exit(lease.actor);
    lease.actor = nullptr;
  }
  for (auto& [key, queue] : queues_) ask_to_exit(queue);
  queues_.clear();
  self_.who = nullptr;
}

void shard_actor::broken(const std::exception_ptr&) {
  // A shard that lost its place must not decide anything more: the process recovers from the store.
  context_->on_fatal("a shard actor failed");
}

const lease_entry* shard_actor::find(const protocol::lease_key& key) const {
  const auto* entry = leases_.find(key);
  return entry != nullptr && entry->known() ? entry : nullptr;
}

std::shared_ptr<const job_spec> shard_actor::spec_of(const lease_facts& facts) const {
  if (facts.state->kind != protocol::lease_kind::job) return nullptr;
  auto spec = decode_job(facts.body);
  if (!spec) return nullptr;
  spec->policy = *policy_of(facts.policy);
  return std::make_shared<const job_spec>(std::move(*spec));
}

std::shared_ptr<const lock_spec> shard_actor::lock_of(const lease_facts& facts) const {
  if (facts.state->kind != protocol::lease_kind::lock) return nullptr;
  auto spec = decode_lock(facts.body);
  if (!spec) return nullptr;
  spec->policy = *policy_of(facts.policy);
  return std::make_shared<const lock_spec>(std::move(*spec));
}

const std::string* shard_actor::kept_name(const std::string& name) {
  return &*names_.insert(name).first;
}

bool shard_actor::may_use(const principal& who, const lease_entry& entry) {
  if (entry.named == nullptr) return true;
  return entry.is_lock ? who.may_use_program(*entry.named) : who.may_use_queue(*entry.named);
}

void shard_actor::take_frames(shard_frames& message) {
  begin_turn();
  for (auto& lease : message.leases) {
    auto* const entry = leases_.find(lease.key);
    if (entry != nullptr && entry->known() && !may_use(*message.session->who, *entry)) {
      forbid(message.session, lease);
      continue;
    }
    event_group group;
    group.stamp = message.ingress;
    group.session = message.session;
    group.events = std::move(lease.frames);
    enqueue_group(entry != nullptr ? *entry : leases_.of(lease.key), std::move(group));
  }
  send_answers();
}

void shard_actor::forbid(const session_ptr& session, const lease_frames& lease) {
  for (const auto& frame : lease.frames) {
    context_->counters->refuse(protocol::reason::forbidden);
    if (frame.frame_id == 0) continue;
    protocol::frame_verdict verdict;
    verdict.answers = frame.frame_id;
    verdict.epoch = frame.session_epoch;
    verdict.reason = protocol::reason::forbidden;
    verdict.outcome = protocol::class_of(verdict.decision, verdict.reason);
    verdict.standing.lease = lease.key.lease;
    answer_to(session, {0, std::move(verdict)}, 1);
  }
}

void shard_actor::take_operation(shard_operation& operation) {
  begin_turn();
  if (asks_log(operation)) return;
  if (answer_old_request(operation)) {
    send_answers();
    return;
  }
  if (operation.what.kind == protocol::event_kind::acquire) {
    take_acquire(operation);
    send_answers();
    return;
  }
  const auto* entry = leases_.find(operation.key);
  if (operation.may_create && refuse_submit(operation, entry)) return;
  if (entry != nullptr && !entry->idle() &&
      entry->if_awake()->groups->waiting.size() >= options_->waiting_groups) {
    refuse(operation, protocol::reason::rate_limited);
    return;
  }
  auto& target = leases_.of(operation.key);
  enqueue_operation(target, std::move(operation));
}

void shard_actor::claim_request(shard_operation& operation) {
  const auto by_request = job_of_request(operation.key.tenant, operation.what.request);
  const auto noted = requests_.try_emplace(by_request, operation.key.lease).first;
  const bool of_another = noted->second != operation.key.lease;
  if (of_another || leases_.find(by_request) != nullptr) {
    if (!of_another) requests_.erase(noted);
    refuse(operation, protocol::reason::request_reused);
    return;
  }
  const auto& to = context_->shard_for(operation.key);
  tell(*context_, to, std::move(operation));
}

void shard_actor::note_request(const protocol::lease_key& by_request,
                               const protocol::lease_id& job) {
  requests_.try_emplace(by_request, job);
}

void shard_actor::drop_request(const protocol::lease_key& by_request,
                               const protocol::lease_id& job) {
  const auto found = requests_.find(by_request);
  if (found != requests_.end() && found->second == job) requests_.erase(found);
}

std::optional<protocol::lease_key> shard_actor::request_of(const protocol::lease_key& job,
                                                           const job_spec& spec) {
  if (spec.request.empty()) return std::nullopt;
  const auto by_request = job_of_request(job.tenant, spec.request);
  return by_request == job ? std::nullopt : std::optional(by_request);
}

void shard_actor::release_request(const shard_operation& operation) const {
  if (!operation.may_create || operation.what.request.empty()) return;
  const auto by_request = job_of_request(operation.key.tenant, operation.what.request);
  if (by_request == operation.key) return;
  const auto* known = find(operation.key);
  const auto first = known != nullptr ? spec_of(known->facts()) : nullptr;
  if (first != nullptr && first->request == operation.what.request) return;
  tell(*context_, context_->shard_for(by_request),
       shard_query{[by_request, job = operation.key.lease](shard_actor& shard) {
         shard.drop_request(by_request, job);
       }});
}

bool shard_actor::refuse_submit(shard_operation& operation, const lease_entry* known) {
  if (known != nullptr) {
    // A submit whose commit is awaited has its spec in its group, not in the entry.
    auto first = known->known() ? spec_of(known->facts()) : nullptr;
    if (first == nullptr && !known->idle()) {
      const auto& deciding = known->if_awake()->groups->deciding;
      if (deciding && deciding->operation) first = deciding->operation->spec;
    }
    if (first != nullptr && !same_request(*first, *operation.spec)) {
      refuse(operation, protocol::reason::request_reused);
      return true;
    }
    if (first != nullptr) return false;
  }
  if (requests_.contains(operation.key) && !operation.what.request.empty()) {
    refuse(operation, protocol::reason::request_reused);
    return true;
  }
  if (!reserve(operation)) {
    refuse(operation, protocol::reason::rate_limited);
    return true;
  }
  return false;
}

bool shard_actor::reserve(shard_operation& operation) {
  const auto& limits = *options_;
  auto& leases = leases_of(operation.key.tenant);
  if (!usage::reserve(leases, 1, limits.leases_per_tenant)) return false;
  const auto bytes = payload_of(operation);
  if (!usage::reserve(context_->usage->payload_bytes(), bytes, limits.payload_bytes)) {
    --leases;
    return false;
  }
  operation.reserved = true;
  return true;
}

void shard_actor::give_back(shard_operation& operation) {
  if (!std::exchange(operation.reserved, false)) return;
  --leases_of(operation.key.tenant);
  context_->usage->payload_bytes() -= payload_of(operation);
}

std::atomic<std::int64_t>& shard_actor::leases_of(const protocol::tenant_id& tenant) {
  auto& count = leases_of_tenant_[tenant];
  if (!count) count = context_->usage->leases_of(tenant);
  return *count;
}

void shard_actor::refuse(const shard_operation& operation, protocol::reason why) {
  context_->counters->refuse(why);
  release_request(operation);
  answer said;
  said.decision = protocol::decision::rejected;
  said.reason = why;
  if (protocol::class_of(said.decision, why) == protocol::reason_class::retryable) {
    said.retry_after = options_->store_retry;
  }
  if (operation.session && operation.what.kind == protocol::event_kind::acquire) {
    protocol::frame_verdict verdict;
    verdict.answers = operation.what.frame_id;
    verdict.epoch = operation.what.session_epoch;
    verdict.reason = why;
    verdict.outcome = protocol::class_of(said.decision, why);
    verdict.retry_after = said.retry_after;
    verdict.standing.lease = operation.key.lease;
    answer_to(operation.session, {0, std::move(verdict)}, operation.has_waited ? 0 : 1);
    return;
  }
  if (!operation.reply) return;
  context_->link->post(operation.reply_thread, [reply = operation.reply, said] { reply(said); });
}

namespace {

protocol::loss loss_of(const protocol::record* state, protocol::generation gen) {
  if (state == nullptr || state->gen > gen) return protocol::loss::expired;
  if (state->frozen) return protocol::loss::conflict;
  if (state->state == protocol::lease_state::revoked) return protocol::loss::revoked;
  return protocol::is_settled(state->state) ? protocol::loss::settled : protocol::loss::expired;
}

}  // namespace

void shard_actor::resume_each(resume_leases& message) {
  const auto& who = *message.session;
  leases_resumed out;
  const auto held = held_.find(who.tenant.value + '\n' + who.holder.value);
  if (held != held_.end()) {
    for (const auto mark : held->second) {
      auto& entry = leases_.at(mark);
      const auto& lease = entry.awake();
      out.standings.push_back(standing_of(*lease.state, lease.last_row));
      out.queues.push_back(entry.queue() != nullptr ? *entry.queue() : std::string{});
    }
  }
  for (const auto& running : message.running) {
    const auto* entry = find({who.tenant, running.lease});
    const auto facts = entry != nullptr ? entry->facts() : lease_facts{};
    const bool lives = entry != nullptr && protocol::is_live(facts.state->state) &&
                       facts.state->gen == running.gen && facts.state->held_by == who.holder;
    if (lives) continue;
    out.lost.push_back(
        {running.lease, running.gen, facts.last_row, loss_of(facts.state.get(), running.gen)});
  }
  tell(*context_, who.where, std::move(out));
}

void shard_actor::each_job(const protocol::tenant_id& tenant, const std::string& after,
                           const std::function<bool(const lease_entry&)>& take) const {
  const auto& all = leases_.all();
  for (auto it = leases_.after({tenant, protocol::lease_id{after}});
       it != all.end() && it->tenant() == tenant; ++it) {
    if (it->queue() != nullptr && it->known() && !take(*it)) return;
  }
}

void shard_actor::change(const options_changed& message) {
  options_ = message.options;
  // The queues look again at what they may offer.
  for (const auto& [key, queue] : queues_) tell(queue, queue_event{message});
}

std::vector<std::string> shard_actor::queues_of(const protocol::tenant_id& tenant) const {
  std::vector<std::string> found;
  for (auto it = queues_.lower_bound({tenant, {}});
       it != queues_.end() && it->first.tenant == tenant; ++it) {
    found.push_back(it->first.queue);
  }
  return found;
}

lease_view shard_actor::view_of(const lease_entry& entry) const {
  const auto facts = entry.facts();
  return {entry.tenant(), facts.state,  spec_of(facts),
          lock_of(facts), facts.policy, facts.last_row};
}

void shard_actor::await(const protocol::lease_key& key, protocol::instant until, record_test wanted,
                        view_reply then) {
  const auto* entry = find(key);
  if (entry == nullptr || until <= context_->clock->now() || wanted(*entry->state())) {
    then(entry ? std::optional{view_of(*entry)} : std::nullopt);
    return;
  }
  // Whichever of the two comes first answers; the other finds the waiter gone.
  const std::pair waiter{entry->mark, ++next_waiter_};
  record_waiters_.emplace(waiter, record_waiter{std::move(wanted), std::move(then)});
  alarm_at(until, [this, waiter, key] {
    const auto it = record_waiters_.find(waiter);
    if (it == record_waiters_.end()) return;
    const auto reply = std::move(it->second.then);
    record_waiters_.erase(it);
    const auto* known = find(key);
    reply(known ? std::optional{view_of(*known)} : std::nullopt);
  });
}

}  // namespace leasehold::actors
