// Section 5 of the protocol page, rung by rung.
#include "tests/protocol/ladder.hpp"

namespace leasehold::ladder {

using namespace protocol;

namespace {

answer accepted(reason why) { return {decision::accepted, why, {}}; }
answer applied(reason why) { return {decision::applied, why, {}}; }
answer ignored(reason why) { return {decision::ignored, why, {}}; }
answer rejected(reason why) { return {decision::rejected, why, {}}; }

answer in_conflict(reason why) {
  answer out = rejected(why);
  out.flags.ownership_conflict = true;
  return out;
}

bool live(const record& lease) {
  return lease.state == lease_state::offered || lease.state == lease_state::active;
}

bool settled(const record& lease) {
  return lease.state == lease_state::completed || lease.state == lease_state::failed ||
         lease.state == lease_state::cancelled;
}

bool anything_unproven(const record& lease) {
  return !lease.unproven.empty() || lease.unproven_nameless > 0;
}

bool only_for_jobs(event_kind kind) {
  return kind == event_kind::offer || kind == event_kind::submit || kind == event_kind::withdraw ||
         kind == event_kind::cancel || kind == event_kind::reconcile || kind == event_kind::prove;
}

bool has_request_id(event_kind kind) {
  return kind == event_kind::acquire || kind == event_kind::cancel || kind == event_kind::revoke ||
         kind == event_kind::resolve || kind == event_kind::reconcile;
}

answer judge_grant(const record& lease, instant now, answer granted) {
  if (lease.frozen) return in_conflict(reason::lease_frozen);
  if (live(lease)) return rejected(reason::already_held);
  if (settled(lease) || lease.state == lease_state::unresolved) {
    return rejected(reason::lease_settled);
  }
  if (now.ms < lease.next_offer_at.ms) return rejected(reason::retry_not_due);
  if (lease.gen.value >= max_number) return rejected(reason::generation_exhausted);
  return granted;
}

answer judge_cancel(const record& lease) {
  if (settled(lease)) return rejected(reason::lease_settled);
  if (lease.cancel_requested_at.ms != 0) return ignored(reason::duplicate_cancel);
  if (lease.state == lease_state::active) return accepted(reason::cancel_requested);
  if (anything_unproven(lease)) return accepted(reason::cancel_unreconciled);
  if (lease.state == lease_state::offered) return accepted(reason::offer_withdrawn);
  return accepted(reason::cancelled_before_grant);
}

answer judge_revoke(const record& lease, const policy& chosen, const event& what, instant now) {
  if (live(lease)) return applied(reason::revoked);
  if (lease.frozen) return applied(reason::conflict_revoked);
  if (lease.state == lease_state::revoked && what.force &&
      lease.next_offer_at.ms > now.ms + chosen.lock_delay.ms) {
    return applied(reason::revoked);
  }
  return ignored(reason::not_held);
}

answer judge_resolve(const record& lease, const event& what) {
  if (!lease.frozen) return ignored(reason::no_conflict);
  if (what.from.value.empty()) return applied(reason::conflict_revoked);
  if (what.from.value != lease.held_by.value) return in_conflict(reason::holder_mismatch);
  return applied(reason::conflict_resolved);
}

answer judge_reconcile(const record& lease, const event& what) {
  if (what.ending != outcome::failed && what.ending != outcome::cancelled) {
    return rejected(reason::invalid_frame);
  }
  if (lease.state != lease_state::unresolved) return rejected(reason::not_unresolved);
  return applied(reason::reconciled_by_operator);
}

answer judge_prove(const record& lease, const event& what) {
  bool named = false;
  for (const unproven_generation& u : lease.unproven)
    named = named || u.gen.value == what.gen.value;
  if (!named) return ignored(reason::not_unproven);
  const bool last = lease.unproven.size() == 1 && lease.unproven_nameless == 0;
  if (lease.state == lease_state::unresolved && last) return applied(reason::reconciled_by_proof);
  return applied(reason::stop_proven);
}

answer judge_known(const record& lease, const policy& chosen, const event& what, instant now) {
  switch (what.kind) {
    case event_kind::submit:
      return ignored(reason::duplicate_request);
    case event_kind::offer:
      return judge_grant(lease, now, applied(reason::offered));
    case event_kind::acquire:
      return judge_grant(lease, now, accepted(reason::acquired));
    case event_kind::withdraw:
      if (lease.state != lease_state::offered) return ignored(reason::not_offered);
      return applied(reason::offer_undeliverable);
    case event_kind::cancel:
      return judge_cancel(lease);
    case event_kind::revoke:
      return judge_revoke(lease, chosen, what, now);
    case event_kind::resolve:
      return judge_resolve(lease, what);
    case event_kind::reconcile:
      return judge_reconcile(lease, what);
    case event_kind::prove:
      return judge_prove(lease, what);
    case event_kind::ack:
    case event_kind::decline:
    case event_kind::renew:
    case event_kind::progress:
    case event_kind::cancel_ack:
    case event_kind::result:
    case event_kind::release:
    case event_kind::recover:
    case event_kind::activate:
    case event_kind::expire:
    case event_kind::reconcile_close:
    case event_kind::stop:
    case event_kind::clock_anchored:
    case event_kind::policy:
    case event_kind::forget:
    case event_kind::base:
    case event_kind::counted:
    case event_kind::restore:
      break;
  }
  return {};
}

}  // namespace

answer judge_operation(const record& lease, const policy& chosen, const event& what, instant now) {
  const bool grant = what.kind == event_kind::offer || what.kind == event_kind::acquire;
  if (lease.state == lease_state::none) {
    if (what.kind == event_kind::submit) return accepted(reason::submitted);
    if (!grant) return rejected(reason::unknown_lease);
    if (what.from.value.empty()) return rejected(reason::invalid_frame);
    return what.kind == event_kind::offer ? applied(reason::offered) : accepted(reason::acquired);
  }
  answer repeated;
  if (has_request_id(what.kind) && was_asked_before(lease, what, repeated)) return repeated;
  if (lease.kind == lease_kind::lock && only_for_jobs(what.kind)) {
    return rejected(reason::not_a_job);
  }
  if (lease.kind == lease_kind::job && what.kind == event_kind::acquire) {
    return rejected(reason::not_a_lock);
  }
  if (grant && what.from.value.empty()) return rejected(reason::invalid_frame);
  return judge_known(lease, chosen, what, now);
}

}  // namespace leasehold::ladder
