// The second half of the model: operations, and the changes that several events make.
#include <algorithm>

#include "tests/protocol/ladder_model.hpp"

namespace leasehold::ladder {

using namespace protocol;

namespace {

bool live(const record& lease) {
  return lease.state == lease_state::offered || lease.state == lease_state::active;
}

}  // namespace

// ---- operations --------------------------------------------------------------------------------

void model::operation(const event& what, instant now) {
  const answer given = judge_operation(lease_, chosen_, what, now);
  const bool was_offered = lease_.state == lease_state::offered;
  const bool takes_effect =
      given.decision == decision::accepted || given.decision == decision::applied;
  if (takes_effect) take_operation(what, given, now);
  write(what.kind, given, now);
  if (was_offered && lease_.state != lease_state::offered) judge_waiting(now);
}

void model::take_operation(const event& what, const answer& given, instant now) {
  const event_kind kind = what.kind;
  if (kind == event_kind::submit) {
    lease_.lease = what.lease;
    lease_.job = what.job;
    lease_.kind = lease_kind::job;
    lease_.state = lease_state::vacant;
    lease_.lease_duration = chosen_.lease_duration;
  }
  if (kind == event_kind::offer || kind == event_kind::acquire) grant(what, now);
  if (kind == event_kind::withdraw) {
    lease_.state = lease_state::vacant;
    lease_.acked = ack_state::withdrawn;
    lease_.next_offer_at = now;
  }
  if (kind == event_kind::cancel) cancel(given, now);
  if (kind == event_kind::revoke) revoke(what.force, now);
  if (kind == event_kind::resolve) {
    lease_.frozen = false;
    if (given.reason == reason::conflict_revoked && live(lease_)) revoke(false, now);
  }
  if (kind == event_kind::reconcile) reconcile(what);
  if (kind == event_kind::prove) prove(what, now);
  const bool remembers = kind == event_kind::acquire || kind == event_kind::cancel ||
                         kind == event_kind::revoke || kind == event_kind::resolve ||
                         kind == event_kind::reconcile;
  if (remembers) remember(what);
}

void model::grant(const event& what, instant now) {
  record next;
  next.lease = what.lease;
  next.job = lease_.state == lease_state::none ? what.job : lease_.job;
  next.kind = what.kind == event_kind::offer ? lease_kind::job : lease_kind::lock;
  next.gen = generation{lease_.gen.value + 1};
  next.held_by = what.from;
  next.issued_at = now;
  next.lease_duration = chosen_.lease_duration;
  next.attempt = lease_.attempt;
  next.losses = lease_.losses;
  next.unproven = lease_.unproven;
  next.unproven_nameless = lease_.unproven_nameless;
  next.next_offer_at = lease_.next_offer_at;
  next.reconcile_deadline = lease_.reconcile_deadline;
  next.requests = lease_.requests;
  if (what.kind == event_kind::offer) {
    next.state = lease_state::offered;
    next.ack_deadline = instant{now.ms + chosen_.ack_timeout.ms};
    next.expires_at = next.ack_deadline;
  } else {
    next.state = lease_state::active;
    next.acked = ack_state::accepted;
    next.acquired_at = now;
  }
  lease_ = next;
  if (lease_.state == lease_state::active) lease_.expires_at = end_of_authority(now);
}

void model::cancel(const answer& given, instant now) {
  lease_.cancel_requested_at = now;
  if (given.reason == reason::cancel_requested) {
    lease_.cancel_deadline = instant{now.ms + chosen_.cancel_grace.ms};
    lease_.expires_at = earlier(lease_.expires_at, lease_.cancel_deadline);
    return;
  }
  lease_.terminal_detail = "";
  if (given.reason == reason::cancel_unreconciled) {
    lease_.terminal_result = outcome::none;
    leave_unresolved(now);
  } else {
    lease_.terminal_result = outcome::cancelled;
    settle(lease_state::cancelled);
  }
}

void model::revoke(bool force, instant now) {
  const instant delayed{now.ms + chosen_.lock_delay.ms};
  if (!live(lease_)) {
    if (lease_.frozen) {
      lease_.frozen = false;
    } else {
      lease_.next_offer_at = delayed;
    }
    return;
  }
  lease_.frozen = false;
  if (lease_.state == lease_state::offered) {
    lease_.next_offer_at = now;
    lease_.state = lease_state::revoked;
    return;
  }
  make_unproven();
  if (lease_.kind == lease_kind::job) lease_.attempt -= 1;
  lease_.next_offer_at = force ? delayed : later(delayed, lease_.expires_at);
  if (lease_.cancel_requested_at.ms != 0) {
    leave_unresolved(now);
  } else {
    lease_.state = lease_state::revoked;
  }
}

void model::reconcile(const event& what) {
  lease_.unproven.clear();
  lease_.unproven_nameless = 0;
  lease_.terminal_result = what.ending;
  lease_.terminal_detail = what.detail;
  settle(what.ending == outcome::failed ? lease_state::failed : lease_state::cancelled);
}

void model::prove(const event& what, instant now) {
  forget_unproven(what.gen, now);
  if (lease_.state != lease_state::unresolved || lease_.unproven_count() > 0) return;
  lease_.terminal_result = outcome::cancelled;
  lease_.terminal_detail = "";
  settle(lease_state::cancelled);
}

// ---- parts -------------------------------------------------------------------------------------

void model::settle(lease_state how) {
  lease_.state = how;
  lease_.frozen = false;
}

void model::leave_unresolved(instant since) {
  lease_.state = lease_state::unresolved;
  lease_.reconcile_deadline = instant{since.ms + chosen_.reconcile_window.ms};
}

void model::make_unproven() {
  lease_.unproven.push_back({lease_.gen, lease_.held_by, lease_.last_sent});
  if (lease_.unproven.size() <= 16) return;
  lease_.unproven.erase(lease_.unproven.begin());
  lease_.unproven_nameless += 1;
}

void model::forget_unproven(generation gen, instant now) {
  std::erase_if(lease_.unproven, [&](const auto& u) { return u.gen == gen; });
  if (lease_.state == lease_state::revoked && gen == lease_.gen) {
    const instant delayed{now.ms + chosen_.lock_delay.ms};
    lease_.next_offer_at = earlier(lease_.next_offer_at, delayed);
  }
}

void model::remember(const event& what) {
  if (what.request.empty()) return;
  lease_.requests.push_back({what.request, what.kind, what.gen, what.from, what.ending,
                             what.unknown_outcome, what.detail, what.force, lease_.gen});
  if (lease_.requests.size() > 64) lease_.requests.erase(lease_.requests.begin());
}

instant model::end_of_authority(instant start) const {
  std::int64_t length = chosen_.lease_duration.ms;
  if (chosen_.max_lifetime.ms != 0) length = std::min(length, chosen_.max_lifetime.ms);
  return instant{start.ms + length};
}

std::int64_t model::backoff_ms(std::int64_t n) const {
  if (n < 1 || chosen_.retry_backoff.ms == 0) return 0;
  std::int64_t wait = chosen_.retry_backoff.ms;
  for (std::int64_t i = 1; i < n && wait < chosen_.retry_backoff_max.ms; ++i) wait *= 2;
  return std::min(wait, chosen_.retry_backoff_max.ms);
}

}  // namespace leasehold::ladder
