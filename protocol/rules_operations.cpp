// How operations of clients, operators and the coordinator are judged, as one table of disjoint
// rows [L5, L9, L12].
#include <algorithm>
#include <array>
#include <cassert>

#include "decision_table.hpp"
#include "rules_parts.hpp"

namespace leasehold::protocol::parts {
namespace {

enum class op_is : std::uint8_t {
  submit,
  offer,
  withdraw,
  acquire,
  cancel,
  revoke,
  resolve,
  reconcile,
  prove,
  how_many,
};
/// Whether the lease is known, and of the kind that the operation is for.
enum class target_is : std::uint8_t { unknown, right_kind, wrong_kind, how_many };
/// `free`: vacant, declined, expired, released, retry_wait; revoked is grantable too.
enum class stage : std::uint8_t { free, offered, active, revoked, unresolved, settled, how_many };
enum class named_holder : std::uint8_t { nobody, recorded, other, how_many };
enum class conflict_is : std::uint8_t { closed, open, how_many };
enum class grant_is : std::uint8_t { due, early, how_many };
enum class next_generation : std::uint8_t { possible, exhausted, how_many };
enum class cancel_is : std::uint8_t { absent, asked, how_many };
/// Whether any generation may still be at work.
enum class work_is : std::uint8_t { proven, unproven, how_many };
/// What a proof about the named generation would leave unproven.
enum class proof_is : std::uint8_t { of_none, of_one, of_the_last, how_many };
/// Whether force makes a revoked lease grantable sooner than it is.
enum class force_is : std::uint8_t { idle, sooner, how_many };
enum class stated_end : std::uint8_t { possible, impossible, how_many };

using facts =
    tables::fact_space<op_is, target_is, request_is, stage, named_holder, conflict_is, grant_is,
                       next_generation, cancel_is, work_is, proof_is, force_is, stated_end>;

struct operation_row {
  rule_id rule;
  facts::box when;
  protocol::decision decision;
  protocol::reason reason;
  bool conflict_flag = false;
};

using enum decision;

// Each name below is what is left of the cases after the rules before it.
constexpr auto fresh = facts::any.only(request_is::fresh);
constexpr auto wrong_kind = fresh.only(target_is::wrong_kind);
constexpr auto fitting = fresh.except(target_is::wrong_kind);
constexpr auto known = fresh.only(target_is::right_kind);

constexpr auto submit = fitting.only(op_is::submit);
constexpr auto grant = fitting.only(op_is::offer, op_is::acquire);
constexpr auto named_grant = grant.except(named_holder::nobody);
constexpr auto calm_grant = named_grant.only(conflict_is::closed);
constexpr auto free_grant = calm_grant.only(stage::free, stage::revoked);
constexpr auto due_grant = free_grant.only(grant_is::due);
constexpr auto possible_grant = due_grant.only(next_generation::possible);

constexpr auto withdraw = known.only(op_is::withdraw);

constexpr auto cancel = known.only(op_is::cancel);
constexpr auto first_cancel = cancel.except(stage::settled).only(cancel_is::absent);
constexpr auto idle_cancel = first_cancel.except(stage::active);
constexpr auto proven_cancel = idle_cancel.only(work_is::proven);

constexpr auto revoke = known.only(op_is::revoke);
constexpr auto revoke_idle = revoke.except(stage::offered, stage::active);
constexpr auto revoke_calm = revoke_idle.only(conflict_is::closed);

constexpr auto resolve = known.only(op_is::resolve);
constexpr auto resolve_open = resolve.only(conflict_is::open);

constexpr auto reconcile = known.only(op_is::reconcile);
constexpr auto stated = reconcile.only(stated_end::possible);

constexpr auto prove = known.only(op_is::prove);

constexpr std::array table{
    operation_row{rule_id::repeated_request, facts::any.only(request_is::same), ignored,
                  reason::duplicate_request},
    operation_row{rule_id::repeated_request, facts::any.only(request_is::other), rejected,
                  reason::request_reused},
    operation_row{rule_id::operation_wrong_kind, wrong_kind.except(op_is::acquire), rejected,
                  reason::not_a_job},
    operation_row{rule_id::operation_wrong_kind, wrong_kind.only(op_is::acquire), rejected,
                  reason::not_a_lock},
    operation_row{
        rule_id::operation_unknown_lease,
        fresh.only(target_is::unknown).except(op_is::submit, op_is::offer, op_is::acquire),
        rejected, reason::unknown_lease},

    operation_row{rule_id::submit_new, submit.only(target_is::unknown), accepted,
                  reason::submitted},
    operation_row{rule_id::submit_known, submit.only(target_is::right_kind), ignored,
                  reason::duplicate_request},

    operation_row{rule_id::grant_nobody, grant.only(named_holder::nobody), rejected,
                  reason::invalid_frame},
    operation_row{rule_id::grant_frozen, named_grant.only(conflict_is::open), rejected,
                  reason::lease_frozen, true},
    operation_row{rule_id::grant_held, calm_grant.only(stage::offered, stage::active), rejected,
                  reason::already_held},
    operation_row{rule_id::grant_settled, calm_grant.only(stage::settled, stage::unresolved),
                  rejected, reason::lease_settled},
    operation_row{rule_id::grant_early, free_grant.only(grant_is::early), rejected,
                  reason::retry_not_due},
    operation_row{rule_id::grant_exhausted, due_grant.only(next_generation::exhausted), rejected,
                  reason::generation_exhausted},
    operation_row{rule_id::grant_offer, possible_grant.only(op_is::offer), applied,
                  reason::offered},
    operation_row{rule_id::grant_acquire, possible_grant.only(op_is::acquire), accepted,
                  reason::acquired},

    operation_row{rule_id::withdraw_not_offered, withdraw.except(stage::offered), ignored,
                  reason::not_offered},
    operation_row{rule_id::withdraw_offered, withdraw.only(stage::offered), applied,
                  reason::offer_undeliverable},

    operation_row{rule_id::cancel_settled, cancel.only(stage::settled), rejected,
                  reason::lease_settled},
    operation_row{rule_id::cancel_duplicate, cancel.except(stage::settled).only(cancel_is::asked),
                  ignored, reason::duplicate_cancel},
    operation_row{rule_id::cancel_active, first_cancel.only(stage::active), accepted,
                  reason::cancel_requested},
    operation_row{rule_id::cancel_unproven, idle_cancel.only(work_is::unproven), accepted,
                  reason::cancel_unreconciled},
    operation_row{rule_id::cancel_free, proven_cancel.only(stage::offered), accepted,
                  reason::offer_withdrawn},
    operation_row{rule_id::cancel_free, proven_cancel.except(stage::offered), accepted,
                  reason::cancelled_before_grant},

    operation_row{rule_id::revoke_conflict, revoke_idle.only(conflict_is::open), applied,
                  reason::conflict_revoked},
    operation_row{rule_id::revoke_sooner, revoke_calm.only(stage::revoked).only(force_is::sooner),
                  applied, reason::revoked},
    operation_row{rule_id::revoke_not_held, revoke_calm.only(stage::revoked).only(force_is::idle),
                  ignored, reason::not_held},
    operation_row{rule_id::revoke_not_held, revoke_calm.except(stage::revoked), ignored,
                  reason::not_held},
    operation_row{rule_id::revoke_offered, revoke.only(stage::offered), applied, reason::revoked},
    operation_row{rule_id::revoke_active, revoke.only(stage::active), applied, reason::revoked},

    operation_row{rule_id::resolve_no_conflict, resolve.only(conflict_is::closed), ignored,
                  reason::no_conflict},
    operation_row{rule_id::resolve_mismatch, resolve_open.only(named_holder::other), rejected,
                  reason::holder_mismatch, true},
    operation_row{rule_id::resolve_confirmed, resolve_open.only(named_holder::recorded), applied,
                  reason::conflict_resolved},
    operation_row{rule_id::resolve_revoked, resolve_open.only(named_holder::nobody), applied,
                  reason::conflict_revoked},

    operation_row{rule_id::reconcile_invalid, reconcile.only(stated_end::impossible), rejected,
                  reason::invalid_frame},
    operation_row{rule_id::reconcile_not_unresolved, stated.except(stage::unresolved), rejected,
                  reason::not_unresolved},
    operation_row{rule_id::reconcile_stated, stated.only(stage::unresolved), applied,
                  reason::reconciled_by_operator},

    operation_row{rule_id::prove_not_unproven, prove.only(proof_is::of_none), ignored,
                  reason::not_unproven},
    operation_row{rule_id::prove_last, prove.only(proof_is::of_the_last).only(stage::unresolved),
                  applied, reason::reconciled_by_proof},
    operation_row{rule_id::prove_one, prove.only(proof_is::of_the_last).except(stage::unresolved),
                  applied, reason::stop_proven},
    operation_row{rule_id::prove_one, prove.only(proof_is::of_one), applied, reason::stop_proven},
};

static_assert(facts::partitioned_by(std::span<const operation_row>(table)),
              "every case of an operation meets exactly one row");

constexpr op_is op_of(event_kind kind) noexcept {
  return op_is{
      static_cast<std::uint8_t>(static_cast<int>(kind) - static_cast<int>(event_kind::submit))};
}
static_assert(
    op_of(event_kind::offer) == op_is::offer && op_of(event_kind::withdraw) == op_is::withdraw &&
    op_of(event_kind::acquire) == op_is::acquire && op_of(event_kind::cancel) == op_is::cancel &&
    op_of(event_kind::revoke) == op_is::revoke && op_of(event_kind::resolve) == op_is::resolve &&
    op_of(event_kind::reconcile) == op_is::reconcile && op_of(event_kind::prove) == op_is::prove);

target_is target_of(const record& r, event_kind kind) noexcept {
  if (!r.known()) return target_is::unknown;
  if (kind == event_kind::revoke || kind == event_kind::resolve) return target_is::right_kind;
  const auto wanted = kind == event_kind::acquire ? lease_kind::lock : lease_kind::job;
  return r.kind == wanted ? target_is::right_kind : target_is::wrong_kind;
}

// Only these are recognised by their request_id; the coordinator repeats its own as it likes.
bool bears_request(event_kind kind) noexcept {
  return kind == event_kind::acquire || kind == event_kind::cancel || kind == event_kind::revoke ||
         kind == event_kind::resolve || kind == event_kind::reconcile;
}

stage stage_of(lease_state s) noexcept {
  switch (s) {
    case lease_state::none:
    case lease_state::vacant:
    case lease_state::declined:
    case lease_state::expired:
    case lease_state::released:
    case lease_state::retry_wait:
      return stage::free;
    case lease_state::offered:
      return stage::offered;
    case lease_state::acked:
    case lease_state::active:
      return stage::active;
    case lease_state::revoked:
      return stage::revoked;
    case lease_state::unresolved:
      return stage::unresolved;
    case lease_state::completed:
    case lease_state::failed:
    case lease_state::cancelled:
      return stage::settled;
  }
  return stage::free;
}

named_holder holder_of(const record& r, const event& what) noexcept {
  if (what.from.empty()) return named_holder::nobody;
  return what.from == r.held_by ? named_holder::recorded : named_holder::other;
}

proof_is proof_of(const record& r, const event& what) noexcept {
  if (find_unproven(r, what.gen) == nullptr) return proof_is::of_none;
  return r.unproven_count() > 1 ? proof_is::of_one : proof_is::of_the_last;
}

facts::one_case facts_of(const record& r, const policy& chosen, const event& what, instant now,
                         generation floor) {
  const bool sooner = what.force && r.next_offer_at > now + chosen.lock_delay;
  const bool stateable = what.ending == outcome::failed || what.ending == outcome::cancelled;
  const bool last_generation = std::max(r.gen, floor).value >= highest_generation;
  return facts::make_case(op_of(what.kind), target_of(r, what.kind),
                          bears_request(what.kind) ? compare_request(r, what) : request_is::fresh,
                          stage_of(r.state), holder_of(r, what),
                          r.frozen ? conflict_is::open : conflict_is::closed,
                          now < r.next_offer_at ? grant_is::early : grant_is::due,
                          last_generation ? next_generation::exhausted : next_generation::possible,
                          r.cancel_requested_at ? cancel_is::asked : cancel_is::absent,
                          r.unproven_count() > 0 ? work_is::unproven : work_is::proven,
                          proof_of(r, what), sooner ? force_is::sooner : force_is::idle,
                          stateable ? stated_end::possible : stated_end::impossible);
}

}  // namespace

verdict decide_operation(const record& r, const policy& chosen, const event& what, instant now,
                         generation floor) {
  const auto met = facts_of(r, chosen, what, now, floor);
  for (const auto& row : table) {
    if (!row.when.has(met)) continue;
    return {row.decision, row.reason, row.rule, {.ownership_conflict = row.conflict_flag}};
  }
  assert(false && "the table is a partition");
  return {};
}

}  // namespace leasehold::protocol::parts
