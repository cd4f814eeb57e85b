// What must hold of every lease after every row.
#include "leasehold/protocol/record.hpp"

#include <algorithm>

namespace leasehold::protocol {
namespace {

bool unproven_is_in_order(const record& r) {
  const bool sorted = std::is_sorted(r.unproven.begin(), r.unproven.end(),
                                     [](const auto& a, const auto& b) { return a.gen < b.gen; });
  const bool below = std::all_of(r.unproven.begin(), r.unproven.end(), [&r](const auto& open) {
    return open.gen < r.gen || (open.gen == r.gen && !is_live(r.state));
  });
  return sorted && below && r.unproven.size() <= named_unproven && r.unproven_nameless >= 0;
}

bool unknown_is_empty(const record& r) { return r.known() || r == record{}; }

bool holder_fits(const record& r) { return (r.gen.value == 0) == r.held_by.empty(); }

bool offer_fits(const record& r) {
  if (r.state != lease_state::offered) return true;
  return r.ack_deadline == r.expires_at && !r.acquired_at && r.acked == ack_state::none &&
         r.kind == lease_kind::job && !r.cancel_requested_at;
}

/// Frames that overtook the ACK are judged right after the row that activates or closes the
/// generation; while they wait, the generation has taken nothing yet.
bool waiting_fits(const record& r) {
  const bool untouched = r.renew_sequence.value == 0 && r.progress_sequence.value == 0 &&
                         !r.cancel_acked_at && !r.reported;
  return r.deferred.empty() || untouched;
}

bool authority_fits(const record& r) {
  if (r.state != lease_state::active) return true;
  const bool capped = !r.cancel_requested_at || r.expires_at <= r.cancel_deadline;
  return r.acquired_at && r.acked == ack_state::accepted && capped;
}

bool cancel_is_remembered(const record& r) {
  if (r.cancel_acked_at && !r.cancel_requested_at) return false;
  if (r.state == lease_state::cancelled) return r.terminal_result == outcome::cancelled;
  return r.state != lease_state::unresolved || r.cancel_requested_at;
}

bool unresolved_has_a_cause(const record& r) {
  return r.state != lease_state::unresolved || r.unproven_count() > 0;
}

bool counts_fit(const record& r) {
  return r.attempt >= 0 && r.losses >= 0 && r.graces >= 0 && r.graces <= most_graces &&
         r.gen.value >= 0 && r.gen.value <= highest_generation &&
         r.requests.size() <= remembered_requests && (r.kind == lease_kind::job || r.attempt == 0);
}

}  // namespace

std::optional<std::string_view> broken_invariant(const record& r) {
  if (!unknown_is_empty(r)) return "an unknown lease has no fields";
  if (!counts_fit(r)) return "counts stay within their bounds";
  if (!holder_fits(r)) return "a granted lease has a holder, an ungranted one has none";
  if (!unproven_is_in_order(r)) return "unproven generations are ended ones, oldest first";
  if (!offer_fits(r)) return "an offer has one deadline and nothing of an authority";
  if (!waiting_fits(r)) return "frames wait only until their generation is active or closed";
  if (!authority_fits(r)) return "authority was ACKed, and ends by the cancel deadline";
  if (!cancel_is_remembered(r)) return "a cancel is never lost";
  if (!unresolved_has_a_cause(r)) return "an unresolved lease has something unproven";
  if (is_settled(r.state) && r.frozen) return "a settled lease has no open conflict";
  return std::nullopt;
}

}  // namespace leasehold::protocol
