// What follows once a group is durable: answers, offers, pushes, the queue's view, the deadline
// index. Nothing outside a lease hears of a change before.
#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"
#include "actors/standing.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

namespace {

using protocol::lease_state;

bool same_grant(const protocol::record& a, const protocol::record& b) { return a.gen == b.gen; }

bool offerable(const protocol::record& r) { return protocol::is_grantable(r.state) && !r.frozen; }

protocol::loss loss_of(closing how) {
  switch (how) {
    case closing::revoked:
      return protocol::loss::revoked;
    case closing::conflict:
      return protocol::loss::conflict;
    case closing::settled:
      return protocol::loss::settled;
    case closing::none:
    case closing::by_holder:
    case closing::expired:
      return protocol::loss::expired;
  }
  return protocol::loss::expired;
}

/// How long to wait before trying again after a refusal that may pass.
protocol::duration retry_after(protocol::decision what, protocol::reason why,
                               const protocol::record& r, protocol::instant now) {
  if (protocol::class_of(what, why) != protocol::reason_class::retryable) return {};
  if (why == protocol::reason::retry_not_due && r.next_offer_at > now) {
    return {r.next_offer_at.ms - now.ms};
  }
  return {1000};
}

}  // namespace

void shard_actor::commit(lease_entry& entry, decision_group& out, protocol::row_number first) {
  auto& lease = entry.awake();
  const auto before = std::move(lease.state);
  lease.state = settle_rows(std::move(out.after), first);
  lease.group_began = first;
  const bool known = lease.state->known();
  // The rows of a lease are linked from the one on that made it known.
  lease.last_row =
      known ? protocol::row_number{first.value + out.count - 1} : protocol::row_number{};
  if (known) {
    mark_changed(entry);
    if (!before->known()) entry.base_row = first;
    entry.last_at = out.last_at;
    for (const auto& each : out.counts) {
      protocol::count_reason(lease.counts, each.reason, each.number);
    }
  }
  const auto group = take_deciding(lease);

  auto& counted = *context_->counters;
  for (const auto& a : out.answers) counted.count(a.kind, a.decision, a.reason);
  if (before->state != lease.state->state) {
    if (before->known()) counted.leases[static_cast<std::size_t>(before->state)].add(-1);
    if (known) counted.leases[static_cast<std::size_t>(lease.state->state)].add();
  }
  if (group.operation && (before->known() || !known)) {
    give_back(*group.operation);
    release_request(*group.operation);
  }
  if (!before->known() && known) {
    lease.policy = out.policy;
    lease.submitted_row = first;
    if (group.operation && group.operation->spec) {
      const auto& spec = *group.operation->spec;
      lease.body = encode_job(spec);
      lease.body.shrink_to_fit();
      entry.named = kept_name(spec.queue);
      auto& chosen = policies_[lease.policy];
      if (!chosen) chosen = std::make_shared<const protocol::policy>(spec.policy);
      counted.payload_bytes.add(static_cast<std::int64_t>(spec.payload.size()));
    }
  }

  if (group.operation && group.operation->lock && is_granted(out)) {
    lease.policy = out.policy;
    lock_granted(entry, *group.operation->lock);
  }

  follow_lock(entry, *before);
  if (group.operation) uncount(*group.operation);
  older_requests_.note(entry.mark, *before, *lease.state, out.last_at);
  follow_holder(entry, *before);
  budget(entry, group, out);
  if (group.operation) {
    answer_operation(entry, group, out, *before);
  } else if (group.session) {
    answer_frames(lease, group, out);
    for (const auto& a : out.answers) {
      if (a.reason == protocol::reason::unknown_generation) counted.unknown_generations.add();
    }
  }
  tell_holder(entry, *before, group, out);
  hear_holder(entry, group, out);
  tell_queue(entry, *before);
  close_ties(entry, *before);
  auto waiter = record_waiters_.lower_bound({entry.mark, 0});
  while (waiter != record_waiters_.end() && waiter->first.first == entry.mark) {
    if (!waiter->second.wanted(*lease.state)) {
      ++waiter;
      continue;
    }
    waiter->second.then(view_of(entry));
    waiter = record_waiters_.erase(waiter);
  }
  note_deadline(entry);
  if (group.operation && is_granted(out)) answer_copies(entry, group.operation->what.request);
  start_next(entry);
  rest_or_forget(entry);
}

void shard_actor::answer_to(const session_ptr& session, protocol::coordinator_frame frame,
                            std::int64_t answered) {
  // Answers of one commit come in runs of one session.
  auto it = std::find_if(answers_.rbegin(), answers_.rend(),
                         [&](const outgoing& o) { return o.session == session; });
  if (it == answers_.rend()) {
    answers_.push_back({session, {}});
    it = answers_.rbegin();
  }
  it->frames.frames.push_back(std::move(frame));
  it->frames.answered += answered;
}

void shard_actor::send_answers() {
  for (auto& out : std::exchange(answers_, {})) {
    tell(*context_, out.session->where, std::move(out.frames));
  }
  // Behind the answers: a queue that hears of an offer may let its session go, and the offer itself
  // must have reached the session by then.
  for (auto& [thread, news] : std::exchange(queue_news_, {})) {
    tell(*context_, context_->shards[thread], std::move(news));
  }
}

void shard_actor::push(const protocol::tenant_id& tenant, const protocol::holder& to,
                       protocol::coordinator_frame frame) {
  push_to_holder message;
  message.tenant = tenant;
  message.holder = to;
  message.frames.push_back(std::move(frame));
  tell(*context_, context_->registry, std::move(message));
}

void shard_actor::answer_frames(const awake_lease& lease, const event_group& group,
                                const decision_group& out) {
  const auto standing = standing_of(*lease.state, lease.last_row);
  const auto verdict_of = [&](const frame_answer& a) {
    protocol::frame_verdict v;
    v.answers = a.frame_id;
    v.epoch = a.epoch;
    v.decision = a.decision;
    v.reason = a.reason;
    v.outcome = protocol::class_of(a.decision, a.reason);
    v.retry_after = retry_after(a.decision, a.reason, *lease.state, group.stamp);
    v.standing = standing;
    return protocol::coordinator_frame{0, std::move(v)};
  };
  for (const auto& a : out.answers) {
    if (a.frame_id != 0) answer_to(group.session, verdict_of(a), 1);
  }
  for (const auto& a : out.finals) {
    if (a.frame_id != 0 && a.epoch == group.session->epoch) {
      answer_to(group.session, verdict_of(a), 0);
    }
  }
}

void shard_actor::answer_operation(lease_entry& entry, const event_group& group,
                                   const decision_group& out, const protocol::record& before) {
  const auto& lease = entry.awake();
  const auto& operation = *group.operation;
  if (out.answers.empty()) return;
  const auto& said = out.answers.front();
  const auto retry = retry_after(said.decision, said.reason, *lease.state, group.stamp);
  if (operation.lock) {
    protocol::generation granted;
    if (said.decision == protocol::decision::accepted) {
      granted = lease.state->gen;
    } else if (const auto* known = remembered(*lease.state, operation.what.request)) {
      granted = known->answered;
    }
    answer_request(entry, operation, said, retry, granted);
    return;
  }
  if (is_offer(group) && said.decision != protocol::decision::applied) {
    queue_for(entry, job_not_offered{entry.key(), said.reason, lease.state->next_offer_at});
  } else if (is_offer(group)) {
    auto spec = decode_job(lease.body).value_or(job_spec{});
    const auto chosen = policy_of(lease.policy);
    protocol::offer offer;
    offer.standing = standing_of(*lease.state, lease.last_row);
    offer.job = lease.state->job;
    offer.queue = std::move(spec.queue);
    offer.payload = std::move(spec.payload);
    offer.attempt = lease.state->attempt + 1;
    offer.ack_deadline = lease.state->ack_deadline;
    offer.lease_duration = chosen->lease_duration;
    offer.cancel_grace = chosen->cancel_grace;
    offer.max_lifetime = chosen->max_lifetime;
    offer.last_progress = before.progress_value;
    offer.trace_id = std::move(spec.trace_id);
    answer_to(group.session, {0, std::move(offer)}, 0);
  }
  if (!operation.reply) return;
  answer a;
  a.decision = said.decision;
  a.reason = said.reason;
  a.retry_after = retry;
  a.created = !before.known() && entry.known();
  if (entry.known()) a.lease = view_of(entry);
  context_->link->post(operation.reply_thread,
                       [reply = operation.reply, a = std::move(a)] { reply(a); });
}

void shard_actor::tell_holder(lease_entry& entry, const protocol::record& before,
                              const event_group& group, const decision_group& out) {
  const auto& lease = entry.awake();
  const auto& after = *lease.state;
  if (before.state != lease_state::active && after.state == lease_state::active && group.session &&
      !group.operation) {
    answer_to(group.session,
              {0, protocol::activated{standing_of(after, lease.last_row), after.acquired_at}}, 0);
  }
  for (const auto& a : out.finals) {
    if (a.frame_id == 0 || (group.session && a.epoch == group.session->epoch)) continue;
    protocol::frame_verdict v;
    v.answers = a.frame_id;
    v.epoch = a.epoch;
    v.decision = a.decision;
    v.reason = a.reason;
    v.outcome = protocol::class_of(a.decision, a.reason);
    v.standing = standing_of(after, lease.last_row);
    push(entry.tenant(), before.held_by, {0, std::move(v)});
  }
  const bool ended = protocol::is_live(before.state) &&
                     (!protocol::is_live(after.state) || !same_grant(before, after));
  const bool by_tie = group.operation && group.operation->tied;
  if (ended && (by_tie || out.closed != closing::by_holder) && out.closed != closing::none) {
    push(entry.tenant(), before.held_by,
         {0, protocol::lease_lost{{after.lease, before.gen, lease.last_row,
                                   by_tie ? protocol::loss::settled : loss_of(out.closed)}}});
  }
  if (after.cancel_requested_at && !before.cancel_requested_at &&
      after.state == lease_state::active) {
    push(entry.tenant(), after.held_by,
         {0, protocol::cancel_notice{standing_of(after, lease.last_row)}});
  }
  if (after.frozen && !before.frozen) context_->counters->ownership_conflicts.add();
}

void shard_actor::follow_holder(lease_entry& entry, const protocol::record& before) {
  auto& lease = entry.awake();
  const auto& after = *lease.state;
  const bool was = protocol::is_live(before.state);
  const bool is = protocol::is_live(after.state);
  if (was && is && before.held_by == after.held_by) return;
  if (was) {
    const auto it = held_.find(entry.tenant().value + '\n' + before.held_by.value);
    auto& marks = it->second;
    leases_.at(marks.back()).awake().held_at = lease.held_at;
    marks[lease.held_at] = marks.back();
    marks.pop_back();
    if (marks.empty()) held_.erase(it);
  }
  if (is) {
    auto& marks = held_[entry.tenant().value + '\n' + after.held_by.value];
    lease.held_at = marks.size();
    marks.push_back(entry.mark);
  }
}

void shard_actor::queue_for(const lease_entry& entry, queue_event what) {
  if (entry.queue() == nullptr) return;
  const auto thread = context_->thread_of_queue(entry.tenant(), *entry.queue());
  queue_news_.emplace_back(thread, for_queue{{entry.tenant(), *entry.queue()}, std::move(what)});
}

void shard_actor::tell_queue(lease_entry& entry, const protocol::record& before) {
  const auto& lease = entry.awake();
  const auto& after = *lease.state;
  if (after.kind != protocol::lease_kind::job) return;
  const bool was = protocol::is_live(before.state);
  const bool is = protocol::is_live(after.state);
  if (was && (!is || !same_grant(before, after))) queue_for(entry, job_closed{entry.key()});
  if (is && (!was || !same_grant(before, after))) {
    queue_for(entry, job_held{entry.key(), after.held_by});
  }
  if (offerable(after) && (!offerable(before) || before.next_offer_at != after.next_offer_at ||
                           !same_grant(before, after))) {
    if (auto spec = spec_of(lease)) {
      const auto submitted_at = spec->submitted_at;
      queue_for(entry, job_ready{entry.key(), std::move(spec), lease.submitted_row, submitted_at,
                                 after.next_offer_at});
    }
  } else if (!is && !offerable(after) && (was || offerable(before))) {
    queue_for(entry, job_gone{entry.key()});
  }
}

}  // namespace leasehold::actors
