// Section 4 of the protocol page, rung by rung.
#include "tests/protocol/ladder.hpp"

namespace leasehold::ladder {

using namespace protocol;

namespace {

answer accepted(reason why) { return {decision::accepted, why, {}}; }
answer ignored(reason why) { return {decision::ignored, why, {}}; }
answer rejected(reason why) { return {decision::rejected, why, {}}; }

/// A refusal that marks progress frames as late.
answer turned_away(const event& frame, reason why, row_flags flags = {}) {
  if (frame.kind == event_kind::progress) flags.late_progress = true;
  return {decision::rejected, why, flags};
}

bool is_invalid(const event& frame) {
  if (frame.gen.value < 1) return true;
  if (frame.sent_at.ms < 1) return true;
  if (frame.from.value.empty()) return true;
  if (frame.kind == event_kind::renew || frame.kind == event_kind::progress) {
    if (frame.seq.value < 1) return true;
  }
  if (frame.kind == event_kind::result && frame.ending == outcome::none) return true;
  return false;
}

bool proves_a_stop(const record& lease, const event& frame) {
  if (frame.kind != event_kind::result && frame.kind != event_kind::release) return false;
  for (const unproven_generation& u : lease.unproven) {
    if (u.gen.value == frame.gen.value && u.from.value == frame.from.value) {
      return frame.sent_at.ms >= u.last_sent.ms;
    }
  }
  return false;
}

answer repeated_result(const record& lease, const event& frame) {
  if (lease.terminal_result == outcome::none) return rejected(reason::lease_settled);
  bool same = false;
  if (lease.reported) {
    same = lease.reported->ending == frame.ending && lease.reported->detail == frame.detail;
  } else {
    same = lease.terminal_result == frame.ending;
  }
  return same ? ignored(reason::duplicate_terminal) : rejected(reason::terminal_conflict);
}

answer judge_offered(const record& lease, const policy& chosen, const event& frame) {
  if (frame.kind == event_kind::ack) return accepted(reason::ack_accepted);
  if (frame.kind == event_kind::decline) {
    if (chosen.max_losses > 0 && lease.losses + 1 >= chosen.max_losses) {
      return accepted(reason::losses_exhausted);
    }
    return accepted(reason::offer_declined);
  }
  if (static_cast<std::int64_t>(lease.deferred.size()) >= chosen.defer_limit) {
    return turned_away(frame, reason::reorder_buffer_full);
  }
  return {decision::deferred, reason::awaiting_activation, {}};
}

answer judge_renew(const record& lease, const policy& chosen, const event& frame, instant now) {
  if (frame.seq.value == lease.renew_sequence.value) return ignored(reason::duplicate_renew);
  if (frame.seq.value < lease.renew_sequence.value) return ignored(reason::stale_sequence);
  const std::int64_t wanted = now.ms + lease.lease_duration.ms;
  const bool has_life = chosen.max_lifetime.ms != 0;
  const bool has_cancel = lease.cancel_requested_at.ms != 0;
  const std::int64_t life = lease.acquired_at.ms + chosen.max_lifetime.ms;
  const std::int64_t cancel = lease.cancel_deadline.ms;
  if (has_cancel && (!has_life || cancel <= life)) {
    if (cancel < wanted && cancel <= lease.expires_at.ms) return rejected(reason::cancel_pending);
  } else if (has_life) {
    if (life < wanted && life <= lease.expires_at.ms) return rejected(reason::max_lifetime_reached);
  }
  return accepted(reason::renewed);
}

answer judge_progress(const record& lease, const event& frame) {
  row_flags late;
  late.late_progress = true;
  if (lease.cancel_requested_at.ms != 0) {
    return {decision::ignored, reason::progress_after_cancel, late};
  }
  if (frame.seq.value == lease.progress_sequence.value) {
    if (frame.value == lease.progress_value) return ignored(reason::duplicate_progress);
    return rejected(reason::sequence_conflict);
  }
  if (frame.seq.value < lease.progress_sequence.value) {
    return {decision::ignored, reason::late_progress, late};
  }
  return accepted(reason::progress_recorded);
}

answer judge_stopped_as_asked(const record& lease) {
  if (lease.unproven.empty() && lease.unproven_nameless == 0) {
    return accepted(reason::cancel_completed);
  }
  return accepted(reason::cancel_unreconciled);
}

answer judge_release(const record& lease, const policy& chosen) {
  if (lease.cancel_requested_at.ms != 0) return judge_stopped_as_asked(lease);
  if (lease.kind == lease_kind::job && chosen.max_losses > 0 &&
      lease.losses + 1 >= chosen.max_losses) {
    return accepted(reason::losses_exhausted);
  }
  return accepted(reason::released);
}

answer judge_result(const record& lease, const policy& chosen, const event& frame) {
  const bool cancel = lease.cancel_requested_at.ms != 0;
  if (lease.kind == lease_kind::lock) return rejected(reason::not_a_job);
  if (frame.ending == outcome::cancelled) {
    if (!cancel) return rejected(reason::cancel_not_requested);
    return judge_stopped_as_asked(lease);
  }
  if (frame.ending == outcome::success) {
    return accepted(cancel ? reason::completed_despite_cancel : reason::completed);
  }
  if (frame.retryable && !cancel) {
    if (chosen.max_attempts > 0 && lease.attempt >= chosen.max_attempts) {
      return accepted(reason::attempts_exhausted);
    }
    return accepted(reason::retry_scheduled);
  }
  return accepted(reason::job_failed);
}

answer judge_active(const record& lease, const policy& chosen, const event& frame, instant now) {
  if (frame.kind == event_kind::ack) return ignored(reason::duplicate_ack);
  if (frame.kind == event_kind::decline) return rejected(reason::already_acked);
  if (frame.kind == event_kind::renew) return judge_renew(lease, chosen, frame, now);
  if (frame.kind == event_kind::progress) return judge_progress(lease, frame);
  if (frame.kind == event_kind::cancel_ack) {
    if (lease.cancel_requested_at.ms == 0) return rejected(reason::cancel_not_requested);
    if (lease.cancel_acked_at.ms != 0) return ignored(reason::duplicate_cancel_ack);
    return accepted(reason::cancel_acknowledged);
  }
  if (frame.kind == event_kind::release) return judge_release(lease, chosen);
  return judge_result(lease, chosen, frame);
}

/// Rules 9 to 13: the lease is not live, the generation current and the holder its own.
answer judge_closed(const record& lease, const event& frame) {
  const lease_state s = lease.state;
  const bool settled =
      s == lease_state::completed || s == lease_state::failed || s == lease_state::cancelled;
  if (frame.kind == event_kind::result) {
    if (settled || s == lease_state::retry_wait) return repeated_result(lease, frame);
    if (s == lease_state::unresolved && lease.terminal_result != outcome::none) {
      return repeated_result(lease, frame);
    }
  }
  if (settled) return turned_away(frame, reason::lease_settled);
  if (s == lease_state::retry_wait) return turned_away(frame, reason::generation_closed);
  if (s == lease_state::released && frame.kind == event_kind::release) {
    return ignored(reason::duplicate_release);
  }
  if (s == lease_state::declined && frame.kind == event_kind::decline) {
    return ignored(reason::duplicate_decline);
  }
  if (s == lease_state::vacant) return turned_away(frame, reason::offer_withdrawn);
  if (s == lease_state::declined) return turned_away(frame, reason::offer_declined);
  if (s == lease_state::released) return turned_away(frame, reason::lease_released);
  if (s == lease_state::revoked) return turned_away(frame, reason::lease_revoked);
  row_flags over;
  over.lease_expired = true;
  return turned_away(frame, reason::lease_expired, over);
}

}  // namespace

bool was_asked_before(const record& lease, const event& what, answer& out) {
  if (what.request.value.empty()) return false;
  for (const remembered_request& r : lease.requests) {
    if (r.id.value != what.request.value) continue;
    const bool same = r.kind == what.kind && r.from.value == what.from.value &&
                      r.gen.value == what.gen.value && r.ending == what.ending &&
                      r.unknown_outcome == what.unknown_outcome && r.detail == what.detail &&
                      r.force == what.force;
    out = same ? ignored(reason::duplicate_request) : rejected(reason::request_reused);
    return true;
  }
  return false;
}

answer judge_frame(const record& lease, const policy& chosen, const event& frame, instant now) {
  if (lease.state == lease_state::none) return rejected(reason::unknown_lease);  // 1
  if (is_invalid(frame)) return rejected(reason::invalid_frame);                 // 2
  answer repeated;                                                               // 3
  if (frame.kind == event_kind::release && was_asked_before(lease, frame, repeated)) {
    return repeated;
  }
  if (lease.state == lease_state::unresolved && proves_a_stop(lease, frame)) {  // 4
    const bool others = lease.unproven.size() > 1 || lease.unproven_nameless > 0;
    return accepted(others ? reason::reconciled_in_part : reason::reconciled);
  }
  if (frame.gen.value > lease.gen.value) return rejected(reason::unknown_generation);  // 5
  row_flags flags;
  if (frame.gen.value < lease.gen.value) {  // 6
    flags.stale_generation = true;
    return turned_away(frame, reason::stale_generation, flags);
  }
  const bool live = lease.state == lease_state::offered || lease.state == lease_state::active;
  if (frame.from.value != lease.held_by.value) {
    if (!live) return turned_away(frame, reason::holder_mismatch);  // 8
    flags.ownership_conflict = true;                                // 7
    return {decision::rejected, reason::ownership_conflict, flags};
  }
  if (!live) return judge_closed(lease, frame);  // 9 to 13
  if (lease.frozen) {                            // 14
    flags.ownership_conflict = true;
    return turned_away(frame, reason::lease_frozen, flags);
  }
  if (frame.sent_at.ms > now.ms + chosen.max_clock_skew.ms) {  // 15
    return turned_away(frame, reason::timestamp_in_future);
  }
  if (frame.sent_at.ms < lease.issued_at.ms - chosen.max_clock_skew.ms) {  // 16
    return turned_away(frame, reason::timestamp_before_issue);
  }
  if (lease.state == lease_state::offered) return judge_offered(lease, chosen, frame);
  return judge_active(lease, chosen, frame, now);
}

}  // namespace leasehold::ladder
