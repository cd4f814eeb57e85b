// What an answer to a worker's frame changes.
#include "mutation.hpp"
#include "rules_parts.hpp"

namespace leasehold::protocol::parts {
namespace {

void apply_ack(record& r) {
  r.state = lease_state::acked;
  r.acked = ack_state::accepted;
  if (r.kind == lease_kind::job) ++r.attempt;
}

void apply_decline(record& r, const policy& chosen, instant now, bool last) {
  r.acked = ack_state::declined;
  lose(r, chosen, now);
  if (last) {
    fail_without_result(r);
  } else {
    r.state = lease_state::declined;
  }
}

void apply_renew(record& r, const policy& chosen, const event& what, instant now) {
  r.expires_at = renewal_of(r, chosen, now).expires_at;
  r.renew_sequence = what.seq;
  r.renew_time = now;
  r.last_sent = later(r.last_sent, what.sent_at);
}

void apply_progress(record& r, const event& what) {
  r.progress_sequence = what.seq;
  r.progress_value = what.value;
  r.last_sent = later(r.last_sent, what.sent_at);
}

void apply_release_of_lock(record& r, const event& what, instant now) {
  r.state = lease_state::released;
  r.next_offer_at = now;
  remember(r, what);
}

// Handing a job back costs no attempt; that it happens without end is what max_losses bounds.
void apply_release_of_job(record& r, const policy& chosen, const event& what, instant now,
                          bool last) {
  --r.attempt;
  lose(r, chosen, now);
  if (last) {
    fail_without_result(r);
  } else {
    r.state = lease_state::released;
  }
  remember(r, what);
}

void report(record& r, const event& what) {
  r.reported = reported_result{what.ending, what.detail};
}

void apply_result(record& r, const event& what, lease_state end) {
  report(r, what);
  settle(r, end, what.ending, what.detail);
}

void apply_retry(record& r, const policy& chosen, const event& what, instant now) {
  report(r, what);
  r.terminal_result = what.ending;
  r.terminal_detail = what.detail;
  r.state = lease_state::retry_wait;
  r.next_offer_at = now + backoff(chosen, r.attempt);
}

// The holder stopped as asked, but an older generation may still be at work.
void apply_unreconciled(record& r, const policy& chosen, const std::string& detail, instant now) {
  r.terminal_result = outcome::cancelled;
  r.terminal_detail = detail;
  become_unresolved(r, chosen, now);
}

void apply_reconciling_report(record& r, const event& what, bool last) {
  const bool is_result = what.kind == event_kind::result;
  drop_unproven(r, what.gen);
  if (is_result && what.gen == r.gen) report(r, what);
  if (!is_result) remember(r, what);
  if (!last) return;
  const bool failed = is_result && what.ending == outcome::failed;
  settle(r, failed ? lease_state::failed : lease_state::cancelled,
         failed ? outcome::failed : outcome::cancelled, is_result ? what.detail : std::string{});
}

}  // namespace

void apply_frame(record& r, const policy& chosen, const event& what, const verdict& answer,
                 instant now) {
  switch (answer.rule) {
    case rule_id::reconciling_report:
      return apply_reconciling_report(r, what, answer.reason == reason::reconciled);
    case rule_id::other_holder_live:
      r.frozen = true;
      return;
    case rule_id::ack_offered:
      return apply_ack(r);
    case rule_id::decline_offered:
      return apply_decline(r, chosen, now, false);
    case rule_id::decline_exhausted:
      return apply_decline(r, chosen, now, true);
    case rule_id::early_deferred:
      r.deferred.push_back({what, row_number{}});
      return;
    case rule_id::renew_duplicate:  // M15: duplicates extend the deadline.
      if (mutated(15)) r.expires_at = renewal_of(r, chosen, now).expires_at;
      return;
    case rule_id::renew_newer:
      return apply_renew(r, chosen, what, now);
    case rule_id::progress_newer:
      return apply_progress(r, what);
    case rule_id::cancel_ack_first:
      r.cancel_acked_at = now;
      return;
    case rule_id::release_lock:
      return apply_release_of_lock(r, what, now);
    case rule_id::release_job:
      return apply_release_of_job(r, chosen, what, now, false);
    case rule_id::release_exhausted:
      return apply_release_of_job(r, chosen, what, now, true);
    case rule_id::release_cancelled:
      settle(r, lease_state::cancelled, outcome::cancelled, {});
      return remember(r, what);
    case rule_id::release_unreconciled:
      apply_unreconciled(r, chosen, {}, now);
      return remember(r, what);
    case rule_id::result_success:
      return apply_result(r, what, lease_state::completed);
    case rule_id::result_cancelled:
      return apply_result(r, what, lease_state::cancelled);
    case rule_id::result_unreconciled:
      report(r, what);
      return apply_unreconciled(r, chosen, what.detail, now);
    case rule_id::result_retry:
      return apply_retry(r, chosen, what, now);
    case rule_id::result_exhausted:
    case rule_id::result_failed:
      return apply_result(r, what, lease_state::failed);
    default:
      return;  // Every other rule refuses or ignores, and changes nothing.
  }
}

}  // namespace leasehold::protocol::parts
