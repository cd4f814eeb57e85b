// What a cancel means for those who make work stop: dispatches are opened and closed in the commit of
// the rows that say so, the process of an attempt is registered, its holder is asked to stop, and
// what was proven to have ended becomes a row (cancellation-dispatch.md).
#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"
#include "actors/standing.hpp"

namespace leasehold::actors {

namespace {

using protocol::lease_state;
using protocol::reason;

/// What a change takes of a commit buffer, about.
constexpr std::size_t change_bytes = 256;

const protocol::unproven_generation* unproven_of(const protocol::record& r,
                                                 protocol::generation gen) {
  const auto found = std::ranges::find_if(r.unproven, [&](const auto& u) { return u.gen == gen; });
  return found == r.unproven.end() ? nullptr : &*found;
}

bool is_live_as(const protocol::record& r, protocol::generation gen) {
  return protocol::is_live(r.state) && r.gen == gen;
}

/// Why a generation that is not live has no process that is to be known.
reason why_over(lease_state state) {
  switch (state) {
    case lease_state::vacant:
      return reason::offer_withdrawn;
    case lease_state::declined:
      return reason::offer_declined;
    case lease_state::released:
      return reason::lease_released;
    case lease_state::revoked:
      return reason::lease_revoked;
    case lease_state::retry_wait:
      return reason::generation_closed;
    case lease_state::completed:
    case lease_state::failed:
    case lease_state::cancelled:
      return reason::lease_settled;
    case lease_state::expired:
    case lease_state::unresolved:
      return reason::lease_expired;
    case lease_state::none:
      return reason::unknown_lease;
    case lease_state::offered:
    case lease_state::acked:
    case lease_state::active:
      break;
  }
  return reason::none;
}

}  // namespace

void shard_actor::note_dispatch(const lease_entry& entry, const decision_group& decided) {
  if (!context_->keeps_dispatches) return;
  auto change = protocol::dispatch_change_of(entry.tenant(), *entry.if_awake()->state,
                                             *decided.after, decided.last_at);
  if (!change) return;
  buffer_bytes_ += change_bytes;
  buffer_dispatches_.push_back(std::move(*change));
}

// ---- the process of an attempt

reason shard_actor::why_not_known(const protocol::record& r, const process_named& message) {
  const auto& what = message.what;
  if (r.kind != protocol::lease_kind::job) return reason::not_a_job;
  if (what.gen > r.gen) return reason::unknown_generation;
  if (what.gen < r.gen) return reason::stale_generation;
  if (what.from != r.held_by) return reason::holder_mismatch;
  if (const auto over = why_over(r.state); over != reason::none) return over;
  return message.ingress < r.expires_at ? reason::none : reason::lease_expired;
}

/// Judged by what is durable: whatever is being decided now, a handle is bound to its attempt and
/// says nothing about another.
void shard_actor::take_process(process_named& message) {
  const auto* entry = find({message.session->tenant, message.what.lease});
  auto why = reason::unknown_lease;
  if (!context_->keeps_dispatches) {
    why = reason::unsupported_frame;
  } else if (entry != nullptr) {
    why = may_use(*message.session->who, *entry) ? why_not_known(*entry->state(), message)
                                                 : reason::forbidden;
  }
  if (why != reason::none) {
    context_->counters->refuse(why);
    answer_process(message, protocol::decision::rejected, why);
    send_answers();
    return;
  }
  begin_turn();
  const auto turn = first_turn_ + open_turns_.size() - 1;
  ++open_turns_.back();
  protocol::dispatch_change change;
  change.what = protocol::dispatch_change::kind::handle;
  change.key = entry->key();
  change.gen = message.what.gen;
  change.at = message.ingress;
  change.process = std::move(message.what.process);
  message.what.process = {};
  buffer_bytes_ += change_bytes;
  buffer_dispatches_.push_back(std::move(change));
  buffer_processes_.push_back(std::move(message));
  end_of_turn(turn);
}

void shard_actor::answer_process(const process_named& message, protocol::decision what,
                                 reason why) {
  protocol::frame_verdict verdict;
  verdict.answers = message.frame_id;
  verdict.epoch = message.session->epoch;
  verdict.decision = what;
  verdict.reason = why;
  verdict.outcome = protocol::class_of(what, why);
  if (verdict.outcome == protocol::reason_class::retryable) {
    verdict.retry_after = options_->store_retry;
  }
  verdict.standing.lease = message.what.lease;
  if (const auto* entry = find({message.session->tenant, message.what.lease});
      entry != nullptr && why != reason::forbidden) {
    const auto facts = entry->facts();
    verdict.standing = standing_of(*facts.state, facts.last_row);
  }
  answer_to(message.session, {0, std::move(verdict)}, 1);
}

// ---- the holder of an attempt

void shard_actor::ask_the_holder(const ask_holder& message) {
  const auto* entry = find(message.key);
  const auto facts = entry != nullptr ? entry->facts() : lease_facts{};
  const auto* state = facts.state.get();
  const bool lives = state != nullptr && is_live_as(*state, message.gen);
  const auto* unproven = state != nullptr ? unproven_of(*state, message.gen) : nullptr;
  const bool is_over = !lives && unproven == nullptr;
  if (is_over || (state->gen == message.gen && state->cancel_acked_at)) {
    tell(*context_, message.back_to, holder_heard{message.ask});
    return;
  }
  auto standing = standing_of(*state, facts.last_row);
  if (state->gen != message.gen) {
    // It is told of its own generation and of nothing that is a later holder's.
    standing.gen = message.gen;
    standing.state = lease_state::unresolved;
    standing.renew_sequence = standing.progress_sequence = {};
  }
  const auto& holder = lives ? state->held_by : unproven->from;
  holder_waiters_[entry->mark].push_back({message.ask, message.back_to, message.gen, holder});
  push_to_holder notice{message.key.tenant, holder, {}};
  notice.frames.push_back({0, protocol::cancel_notice{std::move(standing)}});
  tell(*context_, context_->registry, ask_to_push{std::move(notice), message.back_to, message.ask});
}

void shard_actor::no_more_asking(const stop_asking& message) {
  const auto* entry = leases_.find(message.key);
  const auto waiters =
      entry != nullptr ? holder_waiters_.find(entry->mark) : holder_waiters_.end();
  if (waiters == holder_waiters_.end()) return;
  std::erase_if(waiters->second, [&](const auto& each) { return each.ask == message.ask; });
  if (waiters->second.empty()) holder_waiters_.erase(waiters);
}

void shard_actor::hear_holder(const lease_entry& entry, const event_group& group,
                              const decision_group& out) {
  const auto waiters = holder_waiters_.find(entry.mark);
  if (waiters == holder_waiters_.end()) return;
  const auto& state = *entry.if_awake()->state;
  std::erase_if(waiters->second, [&](const holder_waiter& each) {
    const bool is_over = !is_live_as(state, each.gen) && unproven_of(state, each.gen) == nullptr;
    // Whatever it was judged to be: the holder has heard of the cancel.
    const bool acknowledged =
        group.session && group.session->holder == each.holder &&
        std::ranges::any_of(out.answers, [&](const frame_answer& a) {
          return a.kind == protocol::event_kind::cancel_ack && a.gen == each.gen;
        });
    if (is_over || acknowledged) tell(*context_, each.back_to, holder_heard{each.ask});
    return is_over || acknowledged;
  });
  if (waiters->second.empty()) holder_waiters_.erase(waiters);
}

// ---- proof

void shard_actor::take_proof(const prove_gone& message) {
  const auto* entry = find(message.key);
  // An attempt that is live is given again once its time is over; one that is being decided may
  // have ended by then.
  if (entry == nullptr || !entry->idle() || unproven_of(*entry->state(), message.gen) == nullptr) {
    return;
  }
  shard_operation operation;
  operation.key = message.key;
  operation.ingress = context_->clock->now();
  operation.what.kind = protocol::event_kind::prove;
  operation.what.lease = message.key.lease;
  operation.what.gen = message.gen;
  take_operation(operation);
}

}  // namespace leasehold::actors
