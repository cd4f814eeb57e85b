// What an answer to an operation changes.
#include <algorithm>

#include "mutation.hpp"
#include "rules_parts.hpp"

namespace leasehold::protocol::parts {
namespace {

void become_known(record& r, const policy& chosen, const event& what) {
  if (r.known()) return;
  const bool lock = what.kind == event_kind::acquire;
  r.lease = what.lease;
  r.job = what.job.empty() ? job_id{what.lease.value} : what.job;
  r.kind = lock ? lease_kind::lock : lease_kind::job;
  r.state = lease_state::vacant;
  r.lease_duration = chosen.lease_duration;
}

/// A new generation: what belonged to the one before is forgotten, what is unproven is not.
void grant(record& r, const policy& chosen, const event& what, instant now, generation floor) {
  become_known(r, chosen, what);
  // M5: one above the highest generation that is still known, and not above the forgotten ones.
  const generation highest = mutated(5) ? r.gen : std::max(r.gen, floor);
  r.gen = generation{highest.value + 1};
  r.held_by = what.from;
  r.issued_at = now;
  r.acquired_at = instant{};
  r.lease_duration = chosen.lease_duration;
  r.acked = ack_state::none;
  r.renew_sequence = sequence{};
  r.renew_time = instant{};
  r.progress_sequence = sequence{};
  r.progress_value.clear();
  r.cancel_requested_at = r.cancel_acked_at = r.cancel_deadline = instant{};
  r.terminal_result = outcome::none;
  r.terminal_detail.clear();
  r.reported.reset();
  r.last_sent = instant{};
  r.graces = 0;
}

void apply_offer(record& r, const policy& chosen, const event& what, instant now,
                 generation floor) {
  grant(r, chosen, what, now, floor);
  r.state = lease_state::offered;
  r.ack_deadline = r.expires_at = now + chosen.ack_timeout;
}

// The acquirer's request is its ACK.
void apply_acquire(record& r, const policy& chosen, const event& what, instant now,
                   generation floor) {
  grant(r, chosen, what, now, floor);
  r.state = lease_state::active;
  r.acquired_at = now;
  r.expires_at = now + term_of(chosen);
  r.ack_deadline = instant{};
  r.acked = ack_state::accepted;
  remember(r, what);
}

void apply_withdraw(record& r, instant now) {
  r.state = lease_state::vacant;
  r.acked = ack_state::withdrawn;
  r.next_offer_at = now;
}

void apply_cancel(record& r, const policy& chosen, const event& what, rule_id rule, instant now) {
  r.cancel_requested_at = now;
  if (rule == rule_id::cancel_active) {
    r.cancel_deadline = now + chosen.cancel_grace;
    r.expires_at = earlier(r.expires_at, r.cancel_deadline);
  } else if (rule == rule_id::cancel_unproven) {
    r.terminal_result = outcome::none;
    r.terminal_detail.clear();
    become_unresolved(r, chosen, now);
  } else {
    settle(r, lease_state::cancelled, outcome::cancelled, {});
  }
  remember(r, what);
}

void revoke_offered(record& r, instant now) {
  r.frozen = false;
  r.state = lease_state::revoked;
  r.next_offer_at = now;
}

// Without force nobody else is granted before the old holder's own deadline; with it only the
// fencing token protects.
void revoke_active(record& r, const policy& chosen, bool force, instant now) {
  r.frozen = false;
  add_unproven(r);
  if (r.kind == lease_kind::job) --r.attempt;
  r.next_offer_at = now + chosen.lock_delay;
  if (!force) r.next_offer_at = later(r.next_offer_at, r.expires_at);
  if (r.cancel_requested_at) {
    become_unresolved(r, chosen, now);
  } else {
    r.state = lease_state::revoked;
  }
}

void resolve_by_revoking(record& r, const policy& chosen, instant now) {
  r.frozen = false;
  if (r.state == lease_state::offered) {
    revoke_offered(r, now);
  } else if (is_live(r.state)) {
    revoke_active(r, chosen, false, now);
  }
}

void apply_reconcile(record& r, const event& what) {
  r.unproven.clear();
  r.unproven_nameless = 0;
  const bool failed = what.ending == outcome::failed;
  settle(r, failed ? lease_state::failed : lease_state::cancelled, what.ending, what.detail);
}

}  // namespace

void apply_operation(record& r, const policy& chosen, const event& what, const verdict& answer,
                     instant now, generation floor) {
  switch (answer.rule) {
    case rule_id::submit_new:
      return become_known(r, chosen, what);
    case rule_id::grant_offer:
      return apply_offer(r, chosen, what, now, floor);
    case rule_id::grant_acquire:
      return apply_acquire(r, chosen, what, now, floor);
    case rule_id::withdraw_offered:
      return apply_withdraw(r, now);
    case rule_id::cancel_active:
    case rule_id::cancel_unproven:
    case rule_id::cancel_free:
      return apply_cancel(r, chosen, what, answer.rule, now);
    case rule_id::revoke_conflict:
    case rule_id::resolve_confirmed:
      r.frozen = false;
      return remember(r, what);
    case rule_id::revoke_sooner:
      r.next_offer_at = now + chosen.lock_delay;
      return remember(r, what);
    case rule_id::revoke_offered:
      revoke_offered(r, now);
      return remember(r, what);
    case rule_id::revoke_active:
      revoke_active(r, chosen, what.force, now);
      return remember(r, what);
    case rule_id::resolve_revoked:
      resolve_by_revoking(r, chosen, now);
      return remember(r, what);
    case rule_id::reconcile_stated:
      apply_reconcile(r, what);
      return remember(r, what);
    case rule_id::prove_last:
      drop_unproven(r, what.gen);
      return settle(r, lease_state::cancelled, outcome::cancelled, {});
    case rule_id::prove_one:
      drop_unproven(r, what.gen);
      return grant_sooner_if_revoked(r, chosen, what.gen, now);
    default:
      return;  // Every other rule refuses or ignores, and changes nothing.
  }
}

}  // namespace leasehold::protocol::parts
