// From a group of events to its commit: one group of a lease at a time, in the order of the stamps.
#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"
#include "actors/standing.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

void shard_actor::begin_turn() {
  if (open_turns_.empty() || open_turns_.back() != 0) open_turns_.push_back(0);
}

void shard_actor::enqueue_group(lease_entry& entry, event_group group) {
  auto& waiting = groups_of(entry.awake()).waiting;
  // A deadline goes before what was stamped at or after it, frames behind their equals.
  const auto place =
      group.is_deadline()
          ? std::lower_bound(
                waiting.begin(), waiting.end(), group.stamp,
                [](const event_group& g, protocol::instant at) { return g.stamp < at; })
          : std::upper_bound(
                waiting.begin(), waiting.end(), group.stamp,
                [](protocol::instant at, const event_group& g) { return at < g.stamp; });
  waiting.insert(place, std::move(group));
  start_next(entry);
}

void shard_actor::start_next(lease_entry& entry) {
  if (entry.idle()) {
    wake_line(entry);
    return;
  }
  auto& lease = entry.awake();
  auto& groups = *lease.groups;
  if (groups.deciding) return;
  if (groups.waiting.empty()) {
    lease.groups.reset();
    wake_line(entry);
    return;
  }
  if (blocked_by_fence(lease, groups.waiting.front())) {
    fence_blocked_.insert(entry.mark);
    raise_fence();
    return;
  }
  auto group = std::move(groups.waiting.front());
  groups.waiting.erase(groups.waiting.begin());
  start(entry, std::move(group));
}

void shard_actor::start(lease_entry& entry, event_group group) {
  if (group.history != history_row::none) {
    write_history(entry, std::move(group));
    return;
  }
  auto& lease = entry.awake();
  if (!needs_grant(lease, group)) {
    decide(entry, std::move(group), protocol::grant_record::confirms);
    return;
  }
  // Others' commits do not wait for the read, so the group belongs to no turn until it is back.
  groups_of(lease).deciding = std::move(group);
  tell(*context_, context_->journal, ask_grant{self_, entry.mark, entry.key(), lease.last_row});
}

bool shard_actor::needs_grant(const awake_lease& lease, const event_group& group) const {
  if (group.events.empty() || !protocol::is_live(lease.state->state)) return false;
  const auto chosen = policies_.find(lease.policy);
  if (chosen == policies_.end()) return false;
  return std::ranges::any_of(group.events, [&](const protocol::event& what) {
    return protocol::may_need_grant_record(*lease.state, *chosen->second, what);
  });
}

void shard_actor::grant_read(const grant_answer& said) {
  begin_turn();
  auto& entry = leases_.at(said.entry);
  if (const auto* found = std::get_if<stored_grant>(&said.result)) {
    auto& lease = entry.awake();
    const stored_grant ours{lease.state->gen, lease.state->held_by};
    auto group = take_deciding(lease);
    if (*found != ours) context_->counters->grants_contradicted.add();
    decide(entry, std::move(group),
           *found == ours ? protocol::grant_record::confirms : protocol::grant_record::contradicts);
  } else {
    // The lease's actor was not asked: there is nothing that it would have to undo.
    turn_away(entry, protocol::reason::store_unavailable);
  }
  send_answers();
  arm_timer();
}

std::shared_ptr<const protocol::policy> shard_actor::policy_of(protocol::policy_id id) const {
  static const auto defaults = std::make_shared<const protocol::policy>();
  const auto chosen = policies_.find(id);
  return chosen == policies_.end() ? defaults : chosen->second;
}

void shard_actor::decide(lease_entry& entry, event_group group, protocol::grant_record stored) {
  auto& lease = entry.awake();
  lease_work work;
  work.entry = entry.mark;
  work.stored = stored;
  work.stamp = group.stamp;
  work.fired_at = group.fired_at;
  work.events = std::move(group.events);  // they come back with the decision
  work.last_row = lease.last_row;
  work.group_began = lease.group_began;
  work.counted = group.counted;
  if (!refusals_.empty()) {
    if (auto seen = refusals_.seen_of(entry.mark, group.stamp); !seen.empty()) {
      work.refused = std::make_shared<const refusals_seen>(std::move(seen));
    }
  }
  work.floor = floors_[entry.store_shard];
  work.tenant = entry.tenant();
  work.policy_id = lease.policy;
  if (group.operation && group.operation->lock) {
    const auto& asked = group.operation->lock->policy;
    work.policy = policy_of(lease.policy);
    work.asked_id = protocol::id_of(asked);
    work.asked = std::make_shared<const protocol::policy>(asked);
    work.attachment = encode_lock(*group.operation->lock);
  } else if (!lease.state->known() && group.operation && group.operation->spec) {
    const auto& spec = *group.operation->spec;
    work.policy_id = protocol::id_of(spec.policy);
    work.policy = std::make_shared<const protocol::policy>(spec.policy);
    work.attachment = encode_job(spec);
  } else {
    work.policy = policy_of(lease.policy);
  }
  if (!lease.actor) {
    lease.actor = spawn<lease_actor, caf::lazy_init>(lease.state);
  }
  auto& groups = groups_of(lease);
  groups.deciding = std::move(group);
  groups.turn = first_turn_ + open_turns_.size() - 1;
  ++open_turns_.back();
  send(lease.actor, std::move(work));
}

void shard_actor::decided(lease_decided& message) {
  auto& entry = leases_.at(message.entry);
  auto& lease = entry.awake();
  const auto turn = lease.groups->turn;
  lease.groups->deciding->events = std::move(message.events);
  if (message.group.count == 0) {
    // A deadline that had moved, or refusals over their budget: nothing is to become durable.
    const auto group = take_deciding(lease);
    for (const auto& a : message.group.answers) {
      context_->counters->count(a.kind, a.decision, a.reason);
    }
    budget(entry, group, message.group);
    if (group.operation) {
      answer_operation(entry, group, message.group, *lease.state);
    } else if (group.session) {
      answer_frames(lease, group, message.group);
      hear_holder(entry, group, message.group);
    }
    send_answers();
    note_deadline(entry);
    start_next(entry);
    rest_or_forget(entry);
    arm_timer();
  } else {
    const auto& operation = lease.groups->deciding->operation;
    const auto* chosen = operation && operation->spec ? &operation->spec->policy
                         : operation && operation->lock && is_granted(message.group)
                             ? &operation->lock->policy
                             : nullptr;
    if (chosen != nullptr && !logged_policies_.contains(message.group.policy)) {
      logged_policies_.insert(message.group.policy);
      buffer_policies_.emplace_back(message.group.policy, *chosen);
    }
    note_dispatch(entry, message.group);
    buffer_bytes_ += message.group.rows.size();
    buffer_.push_back({entry.mark, std::move(message.group)});
  }
  end_of_turn(turn);
}

void shard_actor::end_of_turn(std::uint64_t turn) {
  --open_turns_[turn - first_turn_];
  bool ended = false;
  while (!open_turns_.empty() && open_turns_.front() == 0) {
    open_turns_.pop_front();
    ++first_turn_;
    ended = true;
  }
  if (ended || buffer_bytes_ >= options_->commit_bytes) flush();
}

void shard_actor::flush() {
  if (buffer_.empty() && buffer_dispatches_.empty()) return;
  append_rows append;
  append.back_to = self_;
  append.buffer = next_buffer_++;
  append.what.anchor = context_->clock->anchor();
  auto& flying = flying_[append.buffer];
  for (auto& [id, chosen] : buffer_policies_) {
    append.what.groups.push_back(
        protocol::encode_policy_row(chosen, append.what.anchor.coordinator_time));
    ++append.what.rows;
    flying.policies.push_back(id);
  }
  append.what.policies = std::exchange(buffer_policies_, {});
  append.what.groups.reserve(append.what.groups.size() + buffer_.size());
  for (auto& b : buffer_) {
    append.what.groups.push_back(std::move(b.group.rows));
    append.what.rows += b.group.count;
  }
  flying.opens = std::ranges::any_of(buffer_dispatches_, [](const auto& change) {
    return change.what == protocol::dispatch_change::kind::open;
  });
  append.what.dispatches = std::exchange(buffer_dispatches_, {});
  flying.processes = std::exchange(buffer_processes_, {});
  flying.groups = std::exchange(buffer_, {});
  buffer_bytes_ = 0;
  tell(*context_, context_->journal, std::move(append));
}

void shard_actor::journal_said(journal_answer& message) {
  begin_turn();
  auto node = flying_.extract(message.buffer);
  auto& flying = node.mapped();
  if (const auto* durable = std::get_if<committed>(&message.result)) {
    auto first = durable->first_row.value + static_cast<std::int64_t>(flying.policies.size());
    for (auto& [mark, group] : flying.groups) {
      const auto count = group.count;
      auto& entry = leases_.at(mark);
      if (entry.awake().groups->deciding->history == history_row::none) {
        commit(entry, group, {first});
      } else {
        history_durable(entry, {first});
      }
      first += count;
    }
    for (const auto& each : flying.processes) {
      answer_process(each, protocol::decision::accepted, protocol::reason::process_registered);
    }
    if (flying.opens && context_->dispatcher.who) {
      tell(*context_, context_->dispatcher, dispatches_opened{});
    }
  } else {
    for (const auto id : flying.policies) logged_policies_.erase(id);
    for (auto& [mark, group] : flying.groups) {
      auto& entry = leases_.at(mark);
      auto& lease = entry.awake();
      if (lease.groups->deciding->history != history_row::none) {
        history_failed(entry);
        continue;
      }
      tell(lease.actor, lease_undo{lease.state});
      turn_away(entry, protocol::reason::store_unavailable);
    }
    for (const auto& each : flying.processes) {
      answer_process(each, protocol::decision::rejected, protocol::reason::store_unavailable);
    }
  }
  send_answers();
  arm_timer();
}

void shard_actor::turn_away(lease_entry& entry, protocol::reason why) {
  auto& lease = entry.awake();
  const auto group = take_deciding(lease);
  const auto again = context_->clock->now() + options_->store_retry;
  if (group.is_deadline()) {
    entry.indexed_at = again;
    index_.enter(again, entry.mark);
  }
  for (const auto& frame : group.events) {
    if (!group.session || group.operation || frame.frame_id == 0) continue;
    protocol::frame_verdict verdict;
    verdict.answers = frame.frame_id;
    verdict.epoch = frame.session_epoch;
    verdict.reason = why;
    verdict.outcome = protocol::class_of(verdict.decision, why);
    verdict.retry_after = options_->store_retry;
    verdict.standing = standing_of(*lease.state, lease.last_row);
    answer_to(group.session, {0, verdict}, 1);
  }
  if (!group.counted.empty()) {
    alarm_at(again, [this, mark = entry.mark, counted = group.counted] {
      auto* const known = leases_.find(mark);
      if (known == nullptr) return;
      event_group repeated;
      repeated.stamp = context_->clock->now();
      repeated.counted = counted;
      enqueue_group(*known, std::move(repeated));
    });
  }
  if (group.operation) {
    give_back(*group.operation);
    uncount(*group.operation);
    refuse(*group.operation, why);
    if (is_offer(group)) queue_for(entry, job_not_offered{entry.key(), why, again});
    if (group.operation->tied) {
      const auto spec = lock_of(lease);
      alarm_at(again, [this, end = tie_closed{entry.key(), spec->tie.job, spec->tie.gen}] {
        end_tied_lock(end);
      });
    }
  }
  // Who is next in line would meet the same store.
  if (const auto line = lines_.find(entry.mark); line != lines_.end()) {
    line->second.closed_until = again;
    wake_line_at(entry.mark, again);
  }
  start_next(entry);
  rest_or_forget(entry);
}

void shard_actor::rest_or_forget(lease_entry& entry) {
  if (!entry.idle()) return;
  auto& lease = entry.awake();
  if (protocol::next_deadline(*lease.state) || !lease.state->deferred.empty()) return;
  if (lease.actor) {
    ask_to_exit(lease.actor);
    lease.actor = nullptr;
  }
  if (entry.known()) {
    // One that a conflict froze is held without a deadline.
    if (!protocol::is_live(lease.state->state)) entry.rest();
  } else if (!refusals_.knows(entry.mark) && !lines_.contains(entry.mark)) {
    leases_.erase(entry);
  }
}

void shard_actor::budget(const lease_entry& entry, const event_group& group,
                         const decision_group& out) {
  const bool was_empty = refusals_.empty();
  for (const auto& a : out.answers) {
    const bool refusal =
        a.decision == protocol::decision::rejected || a.decision == protocol::decision::ignored;
    if (!refusal || !protocol::is_frame(a.kind)) continue;
    const refusal_key key{a.gen, a.kind, a.reason};
    if (a.counted) {
      refusals_.count(entry.mark, key, a.decision, a.seq, a.content);
    } else {
      refusals_.note(entry.mark, key, group.stamp);
    }
  }
  if (was_empty && !refusals_.empty()) {
    alarm_at(context_->clock->now() + refusal_window, [this] { close_refusal_windows(); });
  }
}

void shard_actor::close_refusal_windows() {
  const auto now = context_->clock->now();
  for (auto& [mark, counted] : refusals_.close(now)) {
    auto* const entry = leases_.find(mark);
    if (entry == nullptr) continue;
    if (counted.empty()) {
      rest_or_forget(*entry);
      continue;
    }
    event_group group;
    group.stamp = now;
    group.counted = std::move(counted);
    enqueue_group(*entry, std::move(group));
  }
  if (!refusals_.empty()) {
    alarm_at(now + protocol::duration{refusal_window.ms / 4}, [this] { close_refusal_windows(); });
  }
}

}  // namespace leasehold::actors
