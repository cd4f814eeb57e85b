#include "tests/protocol/ladder_cases.hpp"

#include <sstream>

namespace leasehold::ladder {

using namespace protocol;

namespace {

std::string text(decision what, reason why, const row_flags& flags) {
  std::string out = std::string(word(what)) + " " + std::string(word(why));
  if (flags.stale_generation) out += " +stale_generation";
  if (flags.late_progress) out += " +late_progress";
  if (flags.lease_expired) out += " +lease_expired";
  if (flags.ownership_conflict) out += " +ownership_conflict";
  return out;
}

std::string text(const record& lease, const policy& chosen, const event& what) {
  std::ostringstream out;
  out << word(lease.kind) << ' ' << word(lease.state) << " generation " << lease.gen.value
      << " frozen " << lease.frozen << " cancel " << lease.cancel_requested_at.ms << '/'
      << lease.cancel_deadline.ms << " terminal " << terminal_word(lease.terminal_result)
      << " reported " << lease.reported.has_value() << " unproven " << lease.unproven_count()
      << " expires " << lease.expires_at.ms << " next offer " << lease.next_offer_at.ms
      << " attempt " << lease.attempt << '/' << chosen.max_attempts << " losses " << lease.losses
      << '/' << chosen.max_losses << " waiting " << lease.deferred.size() << '/'
      << chosen.defer_limit << " lifetime " << chosen.max_lifetime.ms << " | " << word(what.kind)
      << " generation " << what.gen.value << " by '" << what.from.value << "' sequence "
      << what.seq.value << " value '" << what.value << "' sent " << what.sent_at.ms << " outcome '"
      << word(what.ending) << "' detail '" << what.detail << "' retryable " << what.retryable
      << " force " << what.force << " request '" << what.request.value << "'";
  return out.str();
}

}  // namespace

policy usual_policy() {
  policy chosen;
  chosen.ack_timeout = duration{1'500};
  chosen.lease_duration = duration{1'000};
  chosen.max_clock_skew = duration{skew_ms};
  chosen.cancel_grace = duration{800};
  chosen.lock_delay = duration{100};
  chosen.defer_limit = 2;
  return chosen;
}

record lease_in(lease_state state, lease_kind kind) {
  record lease;
  lease.state = state;
  if (state == lease_state::none) return lease;
  lease.lease = lease_id{"L"};
  lease.job = job_id{"J"};
  lease.kind = kind;
  lease.gen = generation{3};
  lease.held_by = holder{"a"};
  lease.issued_at = instant{issued_ms};
  lease.lease_duration = duration{1'000};
  lease.attempt = kind == lease_kind::job ? 1 : 0;
  lease.ack_deadline = instant{issued_ms + 1'500};
  if (state == lease_state::offered) {
    lease.expires_at = lease.ack_deadline;
    lease.attempt = 0;
    return lease;
  }
  lease.acked = ack_state::accepted;
  lease.acquired_at = instant{issued_ms + 100};
  lease.expires_at = instant{10'500};
  lease.renew_sequence = sequence{5};
  lease.renew_time = instant{9'500};
  lease.progress_sequence = sequence{5};
  lease.progress_value = "half";
  if (!is_live(state)) lease.expires_at = instant{9'900};
  if (state == lease_state::unresolved) {
    lease.cancel_requested_at = instant{9'700};
    lease.cancel_deadline = instant{9'900};
    lease.reconcile_deadline = instant{60'000};
  }
  return lease;
}

event frame_of(event_kind kind) {
  event frame;
  frame.kind = kind;
  frame.lease = lease_id{"L"};
  frame.gen = generation{3};
  frame.from = holder{"a"};
  frame.sent_at = instant{judged_at.ms - 10};
  if (kind == event_kind::renew || kind == event_kind::progress) frame.seq = sequence{6};
  if (kind == event_kind::result) frame.ending = outcome::success;
  return frame;
}

remembered_request asked(const char* id, event_kind kind, std::int64_t gen, const char* from) {
  remembered_request out;
  out.id = request_id{id};
  out.kind = kind;
  out.gen = generation{gen};
  out.from = holder{from};
  return out;
}

void set_unproven(record& lease, int variant) {
  const unproven_generation older{generation{1}, holder{"b"}, instant{last_sent_ms}};
  const unproven_generation current{generation{3}, holder{"a"}, instant{last_sent_ms}};
  lease.unproven.clear();
  lease.unproven_nameless = 0;
  if (variant == 1 || variant == 2 || variant == 3) lease.unproven.push_back(older);
  if (variant == 2 || variant == 4) lease.unproven.push_back(current);
  if (variant == 3) lease.unproven_nameless = 1;
}

void set_ending(record& lease, int variant) {
  lease.terminal_result = outcome::none;
  lease.reported.reset();
  if (variant == 1) lease.terminal_result = outcome::success;
  if (variant == 2) {
    lease.terminal_result = outcome::failed;
    lease.reported = reported_result{outcome::failed, "d"};
  }
  if (variant == 3) {
    lease.terminal_result = outcome::cancelled;
    lease.reported = reported_result{outcome::cancelled, ""};
  }
}

void comparison::frame(const record& lease, const policy& chosen, const event& frame) {
  compare(lease, chosen, frame, judge_frame(lease, chosen, frame, judged_at));
}

void comparison::operation(const record& lease, const policy& chosen, const event& what) {
  compare(lease, chosen, what, judge_operation(lease, chosen, what, judged_at));
}

void comparison::compare(const record& lease, const policy& chosen, const event& what,
                         const answer& wanted) {
  ++judged_;
  reasons_.insert(wanted.reason);
  const verdict got = decide(lease, chosen, what, judged_at);
  if (got.decision == wanted.decision && got.reason == wanted.reason && got.flags == wanted.flags) {
    return;
  }
  if (++named_ > 5) return;
  differences_ += text(lease, chosen, what) +
                  "\n  rules:  " + text(got.decision, got.reason, got.flags) +
                  "\n  ladder: " + text(wanted.decision, wanted.reason, wanted.flags) + "\n";
}

std::set<std::string> comparison::reasons() const {
  std::set<std::string> out;
  for (const reason why : reasons_) out.emplace(word(why));
  return out;
}

}  // namespace leasehold::ladder
