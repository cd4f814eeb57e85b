// One event and everything that follows from it, row by row. Live traffic, recovery, replay and
// verify all come through here.
#include "leasehold/protocol/rules.hpp"
#include "mutation.hpp"
#include "rules_parts.hpp"

namespace leasehold::protocol {
namespace {

/// What stays the same while one event and its consequences are judged.
struct scene {
  record& lease;
  const policy& chosen;
  instant now;
  row_sink& rows;
  generation floor;
  grant_record stored = grant_record::confirms;
};

/// Judges one of the coordinator's own events; its row has no input.
void derive(scene& s, const event& what, bool follows) {
  const auto before = s.lease.state;
  const auto answer = parts::decide_derived(s.lease, s.chosen, what, s.now);
  apply(s.lease, s.chosen, what, answer, s.now);
  s.rows.on_row({s.now, what.kind, origin::coordinator, nullptr, before, answer, follows, {}, {}},
                s.lease);
}

event own_event(event_kind kind, generation gen = {}) {
  event what;
  what.kind = kind;
  what.gen = gen;
  return what;
}

/// A frame that proves that its generation's work stopped counts even where it is refused (7b).
void count_proof_of_stopping(scene& s, const event& what, const verdict& answer) {
  if (s.lease.unproven.empty()) return;
  if (answer.rule == rule_id::invalid || answer.rule == rule_id::reconciling_report) return;
  if (parts::find_stopped(s.lease, what) == nullptr) return;
  derive(s, own_event(event_kind::stop, what.gen), true);
}

void judge(scene& s, const event& what, const deferred_frame* deferred);

/// The frames that waited for the ACK, once the lease is active or the generation closed.
void judge_deferred(scene& s) {
  if (s.lease.deferred.empty() || s.lease.state == lease_state::offered) return;
  for (const auto& waiting : parts::take_deferred(s.lease)) judge(s, waiting.frame, &waiting);
}

/// A grant of a lease that is not known makes it vacant first.
lease_state state_before(const record& r, const event& what, const verdict& answer) {
  if (r.known() || what.kind == event_kind::submit) return r.state;
  return answer.decision == decision::rejected ? lease_state::none : lease_state::vacant;
}

/// The floor is evidence where a grant was judged by it.
generation floor_of(const scene& s, const event& what) {
  const bool grants = what.kind == event_kind::offer || what.kind == event_kind::acquire;
  return grants && s.floor > s.lease.gen ? s.floor : generation{};
}

void judge(scene& s, const event& what, const deferred_frame* deferred) {
  const auto answer = decide(s.lease, s.chosen, what, s.now, s.floor);
  const auto before = state_before(s.lease, what, answer);
  const auto floor = floor_of(s, what);
  apply(s.lease, s.chosen, what, answer, s.now, s.floor);
  s.rows.on_row({s.now, what.kind, origin_of(what.kind), &what, before, answer, deferred != nullptr,
                 deferred == nullptr ? row_number{} : deferred->row, floor},
                s.lease);

  if (answer.rule == rule_id::ack_offered) derive(s, own_event(event_kind::activate), true);
  if (answer.rule == rule_id::other_holder_live && resolves_conflict(s.chosen, s.stored)) {
    derive(s, own_event(event_kind::resolve), true);
  }
  count_proof_of_stopping(s, what, answer);
  judge_deferred(s);
}

/// Applies the one deadline that the lease waits for.
void pass_deadline(record& r, const policy& chosen, instant deadline, row_sink& rows) {
  scene s{r, chosen, deadline, rows, {}};
  derive(s, own_event(is_live(r.state) ? event_kind::expire : event_kind::reconcile_close), false);
  judge_deferred(s);
}

/// With outage_expiry extend a live lease gets its grace before its deadline is looked at.
bool is_spared(const record& r, const policy& chosen) noexcept {
  return chosen.outage_expiry == outage_expiry::extend && is_live(r.state) &&
         r.graces < most_graces;
}

}  // namespace

void expire_due(record& r, const policy& chosen, instant now, row_sink& rows) {
  if (mutated(2)) now = now - duration{1};  // M2: a deadline that comes at now has not passed
  for (auto due = next_deadline(r); due && *due <= now; due = next_deadline(r)) {
    pass_deadline(r, chosen, *due, rows);
  }
}

void step(record& r, const policy& chosen, const event& what, instant now, row_sink& rows,
          generation floor, grant_record stored) {
  // M13: deadlines overtake the frames that were read before them.
  expire_due(r, chosen, mutated(13) ? now + duration{1} : now, rows);
  scene s{r, chosen, now, rows, floor, stored};
  judge(s, what, nullptr);
}

bool resolves_conflict(const policy& chosen, grant_record stored) noexcept {
  return chosen.on_conflict == on_conflict::resolve_by_record && stored == grant_record::confirms;
}

bool may_need_grant_record(const record& r, const policy& chosen, const event& what) noexcept {
  return is_live(r.state) && chosen.on_conflict == on_conflict::resolve_by_record &&
         is_frame(what.kind) && what.gen == r.gen && what.from != r.held_by;
}

void recover_due(record& r, const policy& chosen, instant now, row_sink& rows) {
  if (!is_spared(r, chosen)) expire_due(r, chosen, now, rows);
}

void recover_grace(record& r, const policy& chosen, instant now, row_sink& rows) {
  if (!parts::grace_of(r, chosen, now)) return;
  scene s{r, chosen, now, rows, {}};
  derive(s, own_event(event_kind::recover), false);
}

}  // namespace leasehold::protocol
