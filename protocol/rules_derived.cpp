// What the coordinator derives from time, from its own records and from proofs: no input of its own
// stands behind these rows, and none of them can be refused [L7, L9].
#include <algorithm>
#include <array>
#include <cassert>

#include "decision_table.hpp"
#include "rules_parts.hpp"

namespace leasehold::protocol::parts {
namespace {

// ---- expire ------------------------------------------------------------------------------------

enum class stage : std::uint8_t { offered, active, how_many };
enum class cancel_is : std::uint8_t { absent, asked, how_many };
/// What the policy says of a deadline that was missed; a lock is always free to be acquired again.
enum class policy_is : std::uint8_t { reoffer, fail, how_many };
/// Whether the losses (offered) or attempts (active) of a job are used up.
enum class budget_is : std::uint8_t { left, used_up, how_many };
enum class life_is : std::uint8_t { not_over, over, how_many };

using facts = tables::fact_space<stage, cancel_is, policy_is, budget_is, life_is>;

struct expire_row {
  rule_id rule;
  facts::box when;
  protocol::reason reason;
};

constexpr auto offered = facts::any.only(stage::offered);
constexpr auto offered_again = offered.only(policy_is::reoffer);
constexpr auto active = facts::any.only(stage::active);
constexpr auto wanted = active.only(cancel_is::absent);
constexpr auto failing = wanted.only(policy_is::fail);
constexpr auto again = wanted.only(policy_is::reoffer);
constexpr auto affordable = again.only(budget_is::left);

constexpr std::array table{
    expire_row{rule_id::expire_offered_fail, offered.only(policy_is::fail),
               reason::ack_deadline_missed},
    expire_row{rule_id::expire_offered_fail, offered_again.only(budget_is::used_up),
               reason::losses_exhausted},
    expire_row{rule_id::expire_offered, offered_again.only(budget_is::left),
               reason::ack_deadline_missed},
    expire_row{rule_id::expire_active_cancelled, active.only(cancel_is::asked),
               reason::cancel_unreconciled},
    expire_row{rule_id::expire_active_fail, failing.only(life_is::over),
               reason::max_lifetime_reached},
    expire_row{rule_id::expire_active_fail, failing.only(life_is::not_over), reason::lease_expired},
    expire_row{rule_id::expire_active_fail, again.only(budget_is::used_up),
               reason::attempts_exhausted},
    expire_row{rule_id::expire_active, affordable.only(life_is::over),
               reason::max_lifetime_reached},
    expire_row{rule_id::expire_active, affordable.only(life_is::not_over), reason::lease_expired},
};

static_assert(facts::partitioned_by(std::span<const expire_row>(table)),
              "every expiry meets exactly one row");

facts::one_case facts_of(const record& r, const policy& chosen) {
  const bool waiting = r.state == lease_state::offered;
  const auto on_miss = waiting ? chosen.on_ack_timeout : chosen.on_expiry;
  const bool fails = r.kind == lease_kind::job && on_miss == on_deadline::fail;
  const bool used_up = waiting ? next_loss_is_last(r, chosen) : attempts_used_up(r, chosen);
  return facts::make_case(
      waiting ? stage::offered : stage::active,
      r.cancel_requested_at ? cancel_is::asked : cancel_is::absent,
      fails ? policy_is::fail : policy_is::reoffer, used_up ? budget_is::used_up : budget_is::left,
      end_of_life(r, chosen) == r.expires_at ? life_is::over : life_is::not_over);
}

verdict decide_expire(const record& r, const policy& chosen) {
  const auto met = facts_of(r, chosen);
  for (const auto& row : table) {
    if (row.when.has(met)) {
      return {decision::applied, row.reason, row.rule, {.lease_expired = true}};
    }
  }
  assert(false && "the table is a partition");
  return {};
}

void apply_expire_offered(record& r, const policy& chosen, bool fails, instant deadline) {
  r.acked = ack_state::missed;
  lose(r, chosen, deadline);
  if (fails) {
    fail_without_result(r);
  } else {
    r.state = lease_state::expired;
  }
}

void apply_expire_active(record& r, const policy& chosen, rule_id rule, instant deadline) {
  add_unproven(r);
  const auto wait = r.kind == lease_kind::job ? backoff(chosen, r.attempt) : duration{0};
  r.next_offer_at = deadline + std::max(wait, chosen.lock_delay);
  if (rule == rule_id::expire_active_cancelled) {
    become_unresolved(r, chosen, deadline);
  } else if (rule == rule_id::expire_active_fail) {
    fail_without_result(r);
  } else {
    r.state = lease_state::expired;
  }
}

// ---- the others --------------------------------------------------------------------------------

void apply_activate(record& r, const policy& chosen, instant now) {
  r.state = lease_state::active;
  r.acquired_at = now;
  r.expires_at = now + term_of(chosen);
}

void apply_grace(record& r, const policy& chosen, instant now) {
  const auto end = grace_of(r, chosen, now);
  assert(end);
  if (!end) return;
  r.expires_at = *end;
  if (r.state == lease_state::offered) r.ack_deadline = *end;
  ++r.graces;
}

void apply_stop(record& r, const policy& chosen, generation stopped, instant now) {
  drop_unproven(r, stopped);
  if (r.state == lease_state::unresolved && r.unproven_count() == 0) {
    settle(r, lease_state::cancelled, outcome::cancelled, {});
  }
  grant_sooner_if_revoked(r, chosen, stopped, now);
}

}  // namespace

verdict decide_derived(const record& r, const policy& chosen, const event& what, instant) {
  const auto applied = [](reason why, rule_id rule) {
    return verdict{decision::applied, why, rule, {}};
  };
  switch (what.kind) {
    case event_kind::activate:
      return applied(reason::activated, rule_id::activate);
    case event_kind::expire:
      return decide_expire(r, chosen);
    case event_kind::reconcile_close:
      return applied(reason::reconcile_window_closed, chosen.on_unresolved == on_unresolved::fail
                                                          ? rule_id::window_closed_fail
                                                          : rule_id::window_closed_wait);
    case event_kind::recover:
      return applied(reason::recovery_grace, rule_id::grace);
    case event_kind::stop:
      return applied(reason::holder_reported_stop, rule_id::holder_stopped);
    case event_kind::resolve:
      return applied(reason::record_confirms_holder, rule_id::resolved_by_record);
    default:
      assert(false && "rows about the store are not judged");
      return {};
  }
}

void apply_derived(record& r, const policy& chosen, const event& what, const verdict& answer,
                   instant now) {
  switch (answer.rule) {
    case rule_id::activate:
      return apply_activate(r, chosen, now);
    case rule_id::expire_offered:
      return apply_expire_offered(r, chosen, false, now);
    case rule_id::expire_offered_fail:
      return apply_expire_offered(r, chosen, true, now);
    case rule_id::expire_active:
    case rule_id::expire_active_fail:
    case rule_id::expire_active_cancelled:
      return apply_expire_active(r, chosen, answer.rule, now);
    case rule_id::window_closed_fail:
      return fail_without_result(r);
    case rule_id::window_closed_wait:
      r.reconcile_window_over = true;
      return;
    case rule_id::grace:
      return apply_grace(r, chosen, now);
    case rule_id::holder_stopped:
      return apply_stop(r, chosen, what.gen, now);
    case rule_id::resolved_by_record:
      r.frozen = false;
      return;
    default:
      return;
  }
}

}  // namespace leasehold::protocol::parts
