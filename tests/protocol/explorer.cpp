#include "tests/protocol/explorer.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <limits>
#include <set>
#include <sstream>

namespace leasehold {

using namespace protocol;

namespace {

/// Writes every field that the rules can see, one after the other. Instants are written as their
/// distance from now: the rules do not know what time it is, only how far things are apart (a
/// property of its own, ShiftingTheClockShiftsEveryInstantAndNothingElse).
class serialization {
 public:
  serialization(std::vector<std::int64_t>& out, instant now) : out_(out), now_(now) {
    out_.clear();
  }

  void number(std::int64_t n) { out_.push_back(n); }
  void time(instant at) {
    number(at.ms == 0 ? std::numeric_limits<std::int64_t>::min() : at.ms - now_.ms);
  }
  void text(const std::string& s) {
    number(static_cast<std::int64_t>(s.size()));
    for (const char c : s) number(c);
  }

 private:
  std::vector<std::int64_t>& out_;
  instant now_;
};

void write(serialization& out, const event& frame) {
  out.number(static_cast<int>(frame.kind));
  out.number(frame.gen.value);
  out.text(frame.from.value);
  out.number(frame.seq.value);
  out.number(frame.sent_at.ms);
  out.text(frame.value);
  out.number(static_cast<int>(frame.ending));
  out.number(frame.retryable ? 1 : 0);
}

void write_generation(serialization& out, const record& r) {
  out.number(static_cast<int>(r.state));
  out.number(r.gen.value);
  out.text(r.held_by.value);
  for (const instant at : {r.issued_at, r.acquired_at, r.expires_at, r.ack_deadline, r.renew_time,
                           r.cancel_requested_at, r.cancel_acked_at, r.cancel_deadline,
                           r.next_offer_at, r.reconcile_deadline}) {
    out.time(at);
  }
  out.number(r.last_sent.ms);
  out.number(static_cast<int>(r.acked));
  out.number(r.renew_sequence.value);
  out.number(r.progress_sequence.value);
  out.text(r.progress_value);
  out.number(static_cast<int>(r.terminal_result));
  out.text(r.terminal_detail);
  out.number(r.reported ? 1 + static_cast<int>(r.reported->ending) : 0);
}

void write(serialization& out, const record& r) {
  write_generation(out, r);
  out.number(r.attempt);
  out.number(r.losses);
  out.number(r.frozen ? 1 : 0);
  out.number(r.graces);
  out.number(r.reconcile_window_over ? 1 : 0);
  out.number(r.unproven_nameless);
  out.number(static_cast<std::int64_t>(r.unproven.size()));
  for (const unproven_generation& u : r.unproven) {
    out.number(u.gen.value);
    out.text(u.from.value);
    out.number(u.last_sent.ms);
  }
  for (const deferred_frame& d : r.deferred) write(out, d.frame);
}

/// When all frames were sent, early or late by less than the skew that the walk allows.
constexpr instant all_sent_at{1'000};

/// Every frame of two generations and two holders, in sequences 1 and 2 and with every outcome.
std::vector<event> every_frame() {
  std::vector<event> out;
  for (const std::int64_t gen : {1, 2}) {
    for (const char* from : {"a", "b"}) {
      event frame;
      frame.lease = lease_id{"L"};
      frame.gen = generation{gen};
      frame.from = holder{from};
      frame.sent_at = all_sent_at;
      for (const auto kind :
           {event_kind::ack, event_kind::decline, event_kind::cancel_ack, event_kind::release}) {
        frame.kind = kind;
        out.push_back(frame);
      }
      frame.kind = event_kind::result;
      for (const outcome how : {outcome::success, outcome::failed, outcome::cancelled}) {
        frame.ending = how;
        out.push_back(frame);
      }
      frame.ending = outcome::failed;
      frame.retryable = true;
      out.push_back(frame);
      frame.ending = outcome::none;
      frame.retryable = false;
      for (const std::int64_t seq : {1, 2}) {
        frame.seq = sequence{seq};
        frame.kind = event_kind::renew;
        out.push_back(frame);
        frame.kind = event_kind::progress;
        out.push_back(frame);
      }
    }
  }
  return out;
}

event operation(event_kind kind, const char* from = "") {
  event what;
  what.kind = kind;
  what.lease = lease_id{"L"};
  what.from = holder{from};
  return what;
}

}  // namespace

explorer::explorer(const policy& chosen) : chosen_(chosen), frames_(every_frame()) {
  by_state_.resize(static_cast<std::size_t>(lease_state::cancelled) + 1);
}

std::int64_t explorer::states_in(lease_state s) const {
  return by_state_[static_cast<std::size_t>(s)];
}

void explorer::walk(const budget& left) {
  state start{record{}, left, instant{1'000}};
  first_time(start);
  visit(start);
}

bool explorer::first_time(const state& s) {
  serialization out(words_, s.now);
  write(out, s.lease);
  for (const int n : {s.left.grants, s.left.frames, s.left.cancels, s.left.revokes, s.left.others,
                      s.left.recoveries}) {
    out.number(n);
  }
  const XXH128_hash_t hash = XXH3_128bits(words_.data(), words_.size() * sizeof words_[0]);
  return seen_.insert(hash_128{hash.low64, hash.high64});
}

void explorer::visit(const state& from) {
  ++by_state_[static_cast<std::size_t>(from.lease.state)];
  let_time_pass(from);
  operations(from);
  recover(from);
  frames(from);
}

/// One tick before, at and after each deadline that is still to come.
void explorer::let_time_pass(const state& from) {
  std::set<instant> moments;
  const std::optional<instant> due = next_deadline(from.lease);
  const instant next_offer =
      is_grantable(from.lease.state) && from.left.grants > 0 ? from.lease.next_offer_at : instant{};
  for (const instant deadline : {due.value_or(instant{}), next_offer}) {
    for (const std::int64_t beside : {-1, 0, 1}) {
      const instant at{deadline.ms + beside};
      if (deadline.ms != 0 && at > from.now) moments.insert(at);
    }
  }
  for (const instant at : moments) {
    begin(from, from.left, at);
    expire_due(next_.lease, chosen_, at, watch_);
    go_on(operation(event_kind::expire));
  }
}

void explorer::operations(const state& from) {
  if (from.left.grants > 0) {
    budget left = from.left;
    --left.grants;
    try_event(from, operation(event_kind::offer, "a"), left);
    // The two names mean the same until one of them was used.
    if (from.lease.gen.value > 0) try_event(from, operation(event_kind::offer, "b"), left);
  }
  if (from.lease.state == lease_state::none) return;
  if (from.left.cancels > 0) {
    budget left = from.left;
    --left.cancels;
    try_event(from, operation(event_kind::cancel), left);
  }
  if (from.left.revokes > 0) {
    budget left = from.left;
    --left.revokes;
    event revoke = operation(event_kind::revoke);
    for (const bool force : {false, true}) {
      revoke.force = force;
      try_event(from, revoke, left);
    }
  }
  if (from.left.others > 0) other_operations(from);
}

/// What operators and the dispatcher do besides.
void explorer::other_operations(const state& from) {
  budget left = from.left;
  --left.others;
  for (const char* who : {"", "a", "b"}) {
    try_event(from, operation(event_kind::resolve, who), left);
  }
  for (const outcome how : {outcome::failed, outcome::cancelled}) {
    event reconcile = operation(event_kind::reconcile);
    reconcile.ending = how;
    try_event(from, reconcile, left);
  }
  for (const std::int64_t gen : {1, 2}) {
    event prove = operation(event_kind::prove);
    prove.gen = generation{gen};
    try_event(from, prove, left);
  }
  try_event(from, operation(event_kind::withdraw), left);
}

void explorer::recover(const state& from) {
  if (from.left.recoveries == 0 || from.lease.state == lease_state::none) return;
  budget left = from.left;
  --left.recoveries;
  begin(from, left, from.now);
  recover_due(next_.lease, chosen_, from.now, watch_);
  recover_grace(next_.lease, chosen_, from.now, watch_);
  expire_due(next_.lease, chosen_, from.now, watch_);
  go_on(operation(event_kind::recover));
}

void explorer::frames(const state& from) {
  if (from.left.frames == 0 || from.lease.state == lease_state::none) return;
  budget left = from.left;
  --left.frames;
  for (const event& frame : frames_) {
    if (frame.gen > from.lease.gen && frame.from != from.lease.held_by) continue;
    try_event(from, frame, left);
    if (!complaint_.empty()) return;
  }
}

void explorer::try_event(const state& from, const event& what, const budget& left) {
  begin(from, left, from.now);
  step(next_.lease, chosen_, what, from.now, watch_);
  go_on(what);
}

void explorer::begin(const state& from, const budget& left, instant now) {
  next_.lease = from.lease;
  next_.left = left;
  next_.now = now;
  watch_.start(from.lease);
}

void explorer::go_on(const event& what) {
  if (!complaint_.empty()) return;
  ++transitions_;
  watch_.finish(next_.lease);
  const bool ok = watch_.ok();
  if (ok && !first_time(next_)) return;
  path_.push_back(moment{what, next_.now});
  if (ok) {
    visit(state(next_));
  } else {
    std::ostringstream out;
    out << watch_.complaint() << " Reached by:\n";
    for (const moment& m : path_) out << "  " << m << "\n";
    complaint_ = out.str();
  }
  path_.pop_back();
}

}  // namespace leasehold
