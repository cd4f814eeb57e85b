// decide and apply: each kind of event to the part that judges it.
#include "leasehold/protocol/rules.hpp"

#include "rules_parts.hpp"

namespace leasehold::protocol {
namespace {

constexpr bool is_operation(event_kind kind) noexcept {
  return kind >= event_kind::submit && kind <= event_kind::prove;
}

}  // namespace

verdict decide(const record& before, const policy& chosen, const event& what, instant now,
               generation floor) {
  if (is_frame(what.kind)) return parts::decide_frame(before, chosen, what, now);
  if (is_operation(what.kind)) return parts::decide_operation(before, chosen, what, now, floor);
  return parts::decide_derived(before, chosen, what, now);
}

void apply(record& target, const policy& chosen, const event& what, const verdict& answer,
           instant now, generation floor) {
  if (is_frame(what.kind)) return parts::apply_frame(target, chosen, what, answer, now);
  // The coordinator's own resolve (7a) bears the kind of the operator's.
  if (is_operation(what.kind) && answer.rule != rule_id::resolved_by_record) {
    return parts::apply_operation(target, chosen, what, answer, now, floor);
  }
  parts::apply_derived(target, chosen, what, answer, now);
}

std::optional<instant> next_deadline(const record& r) noexcept {
  if (is_live(r.state)) return r.expires_at;
  if (r.state == lease_state::unresolved && !r.reconcile_window_over) return r.reconcile_deadline;
  return std::nullopt;
}

}  // namespace leasehold::protocol
