#include "tests/protocol/property_watch.hpp"

#include <algorithm>

namespace leasehold {

using namespace protocol;

namespace {

bool took_effect(const row& what) {
  return what.answer.decision == decision::accepted || what.answer.decision == decision::applied;
}

bool is_reconciliation(reason why) {
  return why == reason::reconciled || why == reason::reconciled_in_part;
}

bool is_grant(const row& what) {
  return took_effect(what) && (what.kind == event_kind::offer || what.kind == event_kind::acquire);
}

bool is_a_request(const row& what, event_kind kind) {
  return what.kind == kind && took_effect(what);
}

bool names_current(const record& lease) {
  return std::any_of(lease.unproven.begin(), lease.unproven.end(),
                     [&](const unproven_generation& u) { return u.gen == lease.gen; });
}

}  // namespace

void safety_watch::standing::take(const record& lease) {
  state = lease.state;
  gen = lease.gen;
  held_by = lease.held_by;
  issued_at = lease.issued_at;
  acquired_at = lease.acquired_at;
  expires_at = lease.expires_at;
  renew_sequence = lease.renew_sequence;
  progress_sequence = lease.progress_sequence;
  progress_value = lease.progress_value;
  cancel_requested_at = lease.cancel_requested_at;
  cancel_deadline = lease.cancel_deadline;
  last_sent = lease.last_sent;
  terminal_result = lease.terminal_result;
  terminal_detail = lease.terminal_detail;
  next_offer_at = lease.next_offer_at;
  reconcile_deadline = lease.reconcile_deadline;
  attempt = lease.attempt;
  losses = lease.losses;
  unproven = lease.unproven_count();
  deferred = lease.deferred.size();
  frozen = lease.frozen;
}

bool safety_watch::standing::same_but_deferred_and_frozen(const record& lease) const {
  return state == lease.state && gen == lease.gen && held_by == lease.held_by &&
         issued_at == lease.issued_at && acquired_at == lease.acquired_at &&
         expires_at == lease.expires_at && renew_sequence == lease.renew_sequence &&
         progress_sequence == lease.progress_sequence && progress_value == lease.progress_value &&
         cancel_requested_at == lease.cancel_requested_at &&
         cancel_deadline == lease.cancel_deadline && last_sent == lease.last_sent &&
         terminal_result == lease.terminal_result && terminal_detail == lease.terminal_detail &&
         next_offer_at == lease.next_offer_at && reconcile_deadline == lease.reconcile_deadline &&
         attempt == lease.attempt && losses == lease.losses && unproven == lease.unproven_count();
}

void safety_watch::start(const record& lease) {
  before_.take(lease);
  complaint_.clear();
}

void safety_watch::on_row(const row& what, const record& after) {
  if (!ok()) return;
  check_shape(what, after);
  check_generation(what, after);
  check_acceptance(what, after);
  check_path(what, after);
  check_deadlines(what, after);
  check_sequences(what, after);
  check_cancel(what, after);
  check_unproven(what, after);
  check_freeze(what, after);
  check_settled(what, after);
  before_.take(after);
}

void safety_watch::finish(const record& lease) {
  if (!ok()) return;
  if (lease.state == lease_state::acked) complaint_ = "An event left a lease acked.";
  if (!lease.deferred.empty() && lease.state != lease_state::offered) {
    complaint_ = "An event left frames waiting for a generation that is no offer.";
  }
}

void safety_watch::require(bool holds, const char* sentence, const row& what) {
  if (holds || !ok()) return;
  complaint_ = std::string(sentence) + " [row " + std::string(word(what.kind)) + ": " +
               std::string(word(what.answer.decision)) + " " +
               std::string(word(what.answer.reason)) + " at " + std::to_string(what.at.ms) +
               ", before: " + std::string(word(before_.state)) + " generation " +
               std::to_string(before_.gen.value) + "]";
}

void safety_watch::check_shape(const row& what, const record& after) {
  const bool made_by_grant = before_.state == lease_state::none && is_grant(what);
  require(what.state_before == (made_by_grant ? lease_state::vacant : before_.state),
          "A row names another state before than there was.", what);
  if (const auto broken = broken_invariant(after)) {
    require(false, std::string(*broken).c_str(), what);
  }
  if (!took_effect(what)) {
    require(before_.same_but_deferred_and_frozen(after), "A refusal changed the lease.", what);
    const bool waits = what.answer.decision == decision::deferred;
    require(after.deferred.size() == before_.deferred + (waits ? 1U : 0U) ||
                after.deferred.size() < before_.deferred,
            "A frame waits that was not deferred.", what);
  }
}

void safety_watch::check_generation(const row& what, const record& after) {
  if (!is_grant(what)) {
    require(after.gen == before_.gen, "The generation moved without a grant.", what);
    require(after.held_by == before_.held_by, "The holder changed without a grant.", what);
    require(after.issued_at == before_.issued_at, "issued_at moved without a grant.", what);
    return;
  }
  require(after.gen.value > before_.gen.value, "A grant did not raise the generation.", what);
  require(!is_live(before_.state), "A held lease was granted again.", what);
  require(before_.state == lease_state::none || is_grantable(before_.state),
          "A lease was granted from a state that is not grantable.", what);
  require(!before_.frozen, "A frozen lease was granted.", what);
  require(what.at >= before_.next_offer_at, "A lease was granted before next_offer_at.", what);
  require(before_.cancel_requested_at.ms == 0, "A cancelled job was granted again.", what);
  require(after.held_by == what.input->from, "A grant names another holder than asked.", what);
  require(after.renew_sequence.value == 0 && after.progress_sequence.value == 0 &&
              after.progress_value.empty() && after.cancel_requested_at.ms == 0 &&
              after.cancel_acked_at.ms == 0 && after.cancel_deadline.ms == 0 &&
              after.terminal_result == outcome::none && !after.reported && after.graces == 0 &&
              after.last_sent.ms == 0 && after.deferred.empty(),
          "A grant kept something of the generation before.", what);
}

void safety_watch::check_acceptance(const row& what, const record& after) {
  if (!is_frame(what.kind) || !took_effect(what)) return;
  if (is_reconciliation(what.answer.reason)) {
    require(before_.state == lease_state::unresolved, "A report reconciled an open lease.", what);
    return;
  }
  require(what.input->gen == before_.gen, "A frame of another generation was accepted.", what);
  require(what.input->from == before_.held_by, "A frame of another holder was accepted.", what);
  require(is_live(before_.state), "A frame revived a closed generation.", what);
  require(!before_.frozen, "A frozen lease accepted a frame.", what);
  require(what.at < before_.expires_at, "A frame was accepted at or after its deadline.", what);
  require(after.frozen == before_.frozen, "An accepted frame changed the freeze.", what);
}

void safety_watch::check_path(const row& what, const record& after) {
  if (after.state == before_.state) return;
  const bool by_result = what.kind == event_kind::result && took_effect(what);
  if (after.state == lease_state::acked) {
    require(before_.state == lease_state::offered && what.kind == event_kind::ack,
            "A lease became acked without an ACK of its offer.", what);
  }
  if (after.state == lease_state::active) {
    require((before_.state == lease_state::acked && what.kind == event_kind::activate) ||
                is_a_request(what, event_kind::acquire),
            "A lease became active without an ACK.", what);
  }
  if (after.state == lease_state::completed) {
    require(
        by_result && before_.state == lease_state::active && what.input->ending == outcome::success,
        "A job completed without an accepted result.", what);
  }
  if (after.state == lease_state::retry_wait) {
    require(by_result && before_.state == lease_state::active, "A retry without a result.", what);
  }
  if (after.state == lease_state::expired) {
    require(what.kind == event_kind::expire, "A lease expired without its deadline.", what);
  }
}

void safety_watch::check_deadlines(const row& what, const record& after) {
  const bool moved = after.expires_at != before_.expires_at;
  if (moved && !is_grant(what) && !is_a_request(what, event_kind::activate)) {
    const bool later = after.expires_at > before_.expires_at;
    require(is_live(before_.state), "The deadline of a closed generation moved.", what);
    require(
        !later || is_a_request(what, event_kind::renew) || is_a_request(what, event_kind::recover),
        "Authority was extended by something else than a renew or a grace.", what);
    require(later || is_a_request(what, event_kind::cancel),
            "Authority was shortened by something else than a cancel.", what);
    require(before_.cancel_requested_at.ms == 0 || after.expires_at <= before_.cancel_deadline,
            "Authority outlives the cancel deadline.", what);
  }
  if (what.kind == event_kind::expire) {
    require(what.at == before_.expires_at, "An expiry is not dated at its deadline.", what);
    require(what.answer.flags.lease_expired, "An expire row lacks its flag.", what);
  }
  if (what.kind == event_kind::reconcile_close) {
    require(what.at == before_.reconcile_deadline, "A window closed at another time.", what);
  }
  const bool by_operator =
      is_a_request(what, event_kind::revoke) || is_a_request(what, event_kind::resolve);
  if (by_operator && before_.state == lease_state::active && !is_live(after.state) &&
      !what.input->force) {
    require(after.next_offer_at >= before_.expires_at,
            "A revoke without force lets the next holder in before the old deadline.", what);
  }
  const bool told = is_a_request(what, event_kind::stop) || is_a_request(what, event_kind::prove) ||
                    is_a_request(what, event_kind::revoke);
  if (before_.state == lease_state::revoked && after.state == lease_state::revoked && !told) {
    require(after.next_offer_at >= before_.next_offer_at,
            "A revoked lease is free earlier than it was said.", what);
  }
}

void safety_watch::check_sequences(const row& what, const record& after) {
  if (is_grant(what)) return;
  require(after.renew_sequence >= before_.renew_sequence, "renew_sequence went back.", what);
  require(after.progress_sequence >= before_.progress_sequence, "Progress went back.", what);
  require(after.last_sent >= before_.last_sent, "last_sent went back.", what);
  if (after.renew_sequence != before_.renew_sequence) {
    require(is_a_request(what, event_kind::renew), "renew_sequence moved without a renew.", what);
  }
  if (after.progress_sequence != before_.progress_sequence ||
      after.progress_value != before_.progress_value) {
    require(is_a_request(what, event_kind::progress) &&
                after.progress_sequence > before_.progress_sequence,
            "Progress changed without a newer progress frame.", what);
  }
}

void safety_watch::check_cancel(const row& what, const record& after) {
  if (before_.cancel_requested_at.ms != 0) {
    require(after.cancel_requested_at == before_.cancel_requested_at, "A cancel was lost.", what);
  }
  if (after.cancel_requested_at.ms != 0) {
    require(after.state == lease_state::active || after.state == lease_state::unresolved ||
                is_settled(after.state),
            "A lease with a cancel can be granted again.", what);
  }
  if (after.state == lease_state::cancelled && before_.state != lease_state::cancelled) {
    require(after.unproven_count() == 0, "cancelled was claimed while work is unproven.", what);
    require(after.cancel_requested_at.ms != 0, "cancelled without a cancel.", what);
  }
  if (after.state == lease_state::unresolved) {
    require(after.cancel_requested_at.ms != 0, "unresolved without a cancel.", what);
  }
}

void safety_watch::check_unproven(const row& what, const record& after) {
  const bool ended_from_outside = what.kind == event_kind::expire ||
                                  what.kind == event_kind::revoke ||
                                  what.kind == event_kind::resolve;
  if (before_.state == lease_state::active && ended_from_outside && !is_live(after.state)) {
    require(names_current(after), "A generation ended from outside and is not unproven.", what);
    require(after.unproven_count() == before_.unproven + 1, "An unproven one got lost.", what);
    return;
  }
  require(after.unproven_count() <= before_.unproven, "unproven grew for no reason.", what);
  if (after.unproven_count() == before_.unproven) return;
  require(took_effect(what) &&
              (is_reconciliation(what.answer.reason) || what.kind == event_kind::stop ||
               what.kind == event_kind::prove || what.kind == event_kind::reconcile),
          "A generation is unproven no more although nobody spoke for it.", what);
}

void safety_watch::check_freeze(const row& what, const record& after) {
  if (after.frozen && !before_.frozen) {
    require(what.answer.reason == reason::ownership_conflict, "Frozen without a conflict.", what);
  }
  if (!after.frozen && before_.frozen) {
    require(is_a_request(what, event_kind::resolve) || is_a_request(what, event_kind::revoke) ||
                is_settled(after.state),
            "A conflict was closed by nobody.", what);
  }
  require(!(after.frozen && is_settled(after.state)), "A settled lease is frozen.", what);
}

void safety_watch::check_settled(const row& what, const record& after) {
  if (!is_settled(before_.state)) return;
  const std::int64_t unproven = before_.unproven;
  before_.unproven = after.unproven_count();  // a former holder may still prove that it stopped
  require(before_.same_but_deferred_and_frozen(after), "Something changed a settled lease.", what);
  before_.unproven = unproven;
}

}  // namespace leasehold
