#include "tests/protocol/ladder_model.hpp"

#include <algorithm>
#include <ostream>

namespace leasehold::ladder {

using namespace protocol;

namespace {

answer by_coordinator(reason why) { return {decision::applied, why, {}}; }

bool live(const record& lease) {
  return lease.state == lease_state::offered || lease.state == lease_state::active;
}

int place_of(event_kind kind) {
  if (kind == event_kind::renew) return 0;
  if (kind == event_kind::progress) return 1;
  if (kind == event_kind::cancel_ack) return 2;
  if (kind == event_kind::result) return 3;
  return 4;
}

bool waits_before(const deferred_frame& a, const deferred_frame& b) {
  const int left = place_of(a.frame.kind);
  const int right = place_of(b.frame.kind);
  if (left != right) return left < right;
  if (a.frame.seq != b.frame.seq) return a.frame.seq < b.frame.seq;
  return a.frame.sent_at < b.frame.sent_at;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const model_row& r) {
  return out << r.at.ms << " " << word(r.kind) << ": " << word(r.given.decision) << " "
             << word(r.given.reason) << " -> " << word(r.after);
}

void model::write(event_kind kind, const answer& given, instant at) {
  rows_.push_back(model_row{at, kind, given, lease_.state});
}

// ---- deadlines ---------------------------------------------------------------------------------

bool model::one_deadline(instant now, bool but_not_live) {
  if (live(lease_)) {
    if (but_not_live && lease_.graces < 3) return false;
    if (lease_.expires_at > now) return false;
    const instant at = lease_.expires_at;
    if (lease_.state == lease_state::offered) {
      expire_offer(at);
    } else {
      expire_authority(at);
    }
    return true;
  }
  if (lease_.state != lease_state::unresolved || lease_.reconcile_window_over) return false;
  if (lease_.reconcile_deadline > now) return false;
  close_window(lease_.reconcile_deadline);
  return true;
}

void model::expire_due(instant now) {
  while (one_deadline(now, false)) {
  }
}

void model::expire_offer(instant at) {
  answer given = by_coordinator(reason::ack_deadline_missed);
  given.flags.lease_expired = true;
  lease_.acked = ack_state::missed;
  lease_.losses += 1;
  lease_.next_offer_at = instant{at.ms + backoff_ms(lease_.losses)};
  if (chosen_.on_ack_timeout == on_deadline::fail) {
    settle(lease_state::failed);
  } else if (chosen_.max_losses > 0 && lease_.losses >= chosen_.max_losses) {
    given.reason = reason::losses_exhausted;
    settle(lease_state::failed);
  } else {
    lease_.state = lease_state::expired;
  }
  write(event_kind::expire, given, at);
  judge_waiting(at);
}

void model::expire_authority(instant at) {
  const bool job = lease_.kind == lease_kind::job;
  const bool by_lifetime = chosen_.max_lifetime.ms != 0 &&
                           lease_.expires_at.ms == lease_.acquired_at.ms + chosen_.max_lifetime.ms;
  answer given = by_coordinator(by_lifetime ? reason::max_lifetime_reached : reason::lease_expired);
  given.flags.lease_expired = true;
  make_unproven();
  const std::int64_t wait = job ? backoff_ms(lease_.attempt) : 0;
  lease_.next_offer_at = instant{at.ms + std::max(wait, chosen_.lock_delay.ms)};
  if (lease_.cancel_requested_at.ms != 0) {
    given.reason = reason::cancel_unreconciled;
    leave_unresolved(at);
  } else if (job && chosen_.on_expiry == on_deadline::fail) {
    settle(lease_state::failed);
  } else if (job && chosen_.max_attempts > 0 && lease_.attempt >= chosen_.max_attempts) {
    given.reason = reason::attempts_exhausted;
    settle(lease_state::failed);
  } else {
    lease_.state = lease_state::expired;
  }
  write(event_kind::expire, given, at);
}

void model::close_window(instant at) {
  if (chosen_.on_unresolved == on_unresolved::fail) {
    settle(lease_state::failed);
  } else {
    lease_.reconcile_window_over = true;
  }
  write(event_kind::reconcile_close, by_coordinator(reason::reconcile_window_closed), at);
}

void model::recover(instant now) {
  while (one_deadline(now, chosen_.outage_expiry == outage_expiry::extend)) {
  }
  if (live(lease_) && lease_.graces < 3) {
    const bool active = lease_.state == lease_state::active;
    std::int64_t grace = chosen_.recovery_grace.ms;
    if (active) grace = std::min(grace, lease_.lease_duration.ms);
    std::int64_t wanted = now.ms + grace;
    if (active && chosen_.max_lifetime.ms != 0) {
      wanted = std::min(wanted, lease_.acquired_at.ms + chosen_.max_lifetime.ms);
    }
    if (lease_.cancel_requested_at.ms != 0) wanted = std::min(wanted, lease_.cancel_deadline.ms);
    if (wanted > lease_.expires_at.ms && wanted > now.ms) {
      lease_.expires_at = instant{wanted};
      if (!active) lease_.ack_deadline = instant{wanted};
      lease_.graces += 1;
      write(event_kind::recover, by_coordinator(reason::recovery_grace), now);
    }
  }
  expire_due(now);
}

// ---- frames ------------------------------------------------------------------------------------

void model::step(const event& what, instant now) {
  expire_due(now);
  if (is_frame(what.kind)) {
    frame(what, now);
  } else {
    operation(what, now);
  }
}

void model::frame(const event& what, instant now) {
  const answer given = judge_frame(lease_, chosen_, what, now);
  bool stops = false;
  if (what.kind == event_kind::result || what.kind == event_kind::release) {
    for (const unproven_generation& u : lease_.unproven) {
      if (u.gen == what.gen && u.from == what.from && what.sent_at >= u.last_sent) stops = true;
    }
  }
  if (given.reason == reason::ownership_conflict) lease_.frozen = true;
  if (given.decision == decision::deferred) lease_.deferred.push_back(deferred_frame{what, {}});
  const bool reconciles =
      given.reason == reason::reconciled || given.reason == reason::reconciled_in_part;
  if (reconciles) {
    take_report(what, given);
  } else if (given.decision == decision::accepted) {
    take_accepted(what, given, now);
  }
  write(what.kind, given, now);
  if (given.reason == reason::ownership_conflict &&
      chosen_.on_conflict == on_conflict::resolve_by_record) {
    lease_.frozen = false;
    write(event_kind::resolve, by_coordinator(reason::record_confirms_holder), now);
  }
  if (stops && !reconciles && given.reason != reason::invalid_frame) prove_stop(what, now);
  if (given.reason == reason::ack_accepted) activate(now);
  const bool closed_an_offer =
      what.kind == event_kind::decline && given.decision == decision::accepted;
  if (closed_an_offer) judge_waiting(now);
}

void model::take_accepted(const event& what, const answer& given, instant now) {
  if (what.kind == event_kind::ack) {
    lease_.state = lease_state::acked;
    lease_.acked = ack_state::accepted;
    if (lease_.kind == lease_kind::job) lease_.attempt += 1;
  } else if (what.kind == event_kind::decline) {
    lease_.acked = ack_state::declined;
    lease_.losses += 1;
    lease_.next_offer_at = instant{now.ms + backoff_ms(lease_.losses)};
    lease_.state = lease_state::declined;
    if (given.reason == reason::losses_exhausted) settle(lease_state::failed);
  } else if (what.kind == event_kind::renew) {
    take_renew(what, now);
  } else if (what.kind == event_kind::progress) {
    lease_.progress_sequence = what.seq;
    lease_.progress_value = what.value;
    lease_.last_sent = later(lease_.last_sent, what.sent_at);
  } else if (what.kind == event_kind::cancel_ack) {
    lease_.cancel_acked_at = now;
  } else if (what.kind == event_kind::release) {
    take_release(what, given, now);
  } else {
    take_result(what, given, now);
  }
}

void model::take_renew(const event& what, instant now) {
  std::int64_t wanted = now.ms + lease_.lease_duration.ms;
  if (chosen_.max_lifetime.ms != 0) {
    wanted = std::min(wanted, lease_.acquired_at.ms + chosen_.max_lifetime.ms);
  }
  if (lease_.cancel_requested_at.ms != 0) wanted = std::min(wanted, lease_.cancel_deadline.ms);
  lease_.renew_sequence = what.seq;
  lease_.renew_time = now;
  lease_.expires_at = instant{std::max(lease_.expires_at.ms, wanted)};
  lease_.last_sent = later(lease_.last_sent, what.sent_at);
}

void model::take_release(const event& what, const answer& given, instant now) {
  remember(what);
  if (lease_.cancel_requested_at.ms != 0) {
    lease_.terminal_detail = "";
    end_as_cancelled(given, now);
    return;
  }
  lease_.state = lease_state::released;
  if (lease_.kind == lease_kind::lock) {
    lease_.next_offer_at = now;
    return;
  }
  lease_.attempt -= 1;
  lease_.losses += 1;
  lease_.next_offer_at = instant{now.ms + backoff_ms(lease_.losses)};
  if (given.reason == reason::losses_exhausted) settle(lease_state::failed);
}

void model::take_result(const event& what, const answer& given, instant now) {
  lease_.reported = reported_result{what.ending, what.detail};
  lease_.terminal_detail = what.detail;
  if (what.ending == outcome::cancelled) {
    end_as_cancelled(given, now);
    return;
  }
  lease_.terminal_result = what.ending;
  if (what.ending == outcome::success) {
    settle(lease_state::completed);
  } else if (given.reason == reason::retry_scheduled) {
    lease_.state = lease_state::retry_wait;
    lease_.next_offer_at = instant{now.ms + backoff_ms(lease_.attempt)};
  } else {
    settle(lease_state::failed);
  }
}

void model::end_as_cancelled(const answer& given, instant now) {
  lease_.terminal_result = outcome::cancelled;
  if (given.reason == reason::cancel_completed) {
    settle(lease_state::cancelled);
  } else {
    leave_unresolved(now);
  }
}

void model::take_report(const event& what, const answer& given) {
  std::erase_if(lease_.unproven, [&](const auto& u) { return u.gen == what.gen; });
  const bool result = what.kind == event_kind::result;
  if (!result) remember(what);
  if (result && what.gen == lease_.gen) {
    lease_.reported = reported_result{what.ending, what.detail};
  }
  if (given.reason == reason::reconciled_in_part) return;
  const bool failed = result && what.ending == outcome::failed;
  lease_.terminal_result = failed ? outcome::failed : outcome::cancelled;
  lease_.terminal_detail = result ? what.detail : "";
  settle(failed ? lease_state::failed : lease_state::cancelled);
}

void model::prove_stop(const event& what, instant now) {
  forget_unproven(what.gen, now);
  if (lease_.state == lease_state::unresolved && lease_.unproven_count() == 0) {
    lease_.terminal_result = outcome::cancelled;
    lease_.terminal_detail = "";
    settle(lease_state::cancelled);
  }
  write(event_kind::stop, by_coordinator(reason::holder_reported_stop), now);
}

void model::activate(instant now) {
  lease_.state = lease_state::active;
  lease_.acquired_at = now;
  lease_.expires_at = end_of_authority(now);
  write(event_kind::activate, by_coordinator(reason::activated), now);
  judge_waiting(now);
}

void model::judge_waiting(instant now) {
  std::vector<deferred_frame> waiting = lease_.deferred.take();
  std::stable_sort(waiting.begin(), waiting.end(), waits_before);
  for (const deferred_frame& d : waiting) frame(d.frame, now);
}

}  // namespace leasehold::ladder
