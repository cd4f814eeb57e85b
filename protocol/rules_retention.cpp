// What may be forgotten, and what a restored backup cannot know.
#include "leasehold/protocol/rules.hpp"

namespace leasehold::protocol {

bool may_be_forgotten(const record& r, instant now) noexcept {
  if (r.kind == lease_kind::job) return is_settled(r.state);
  return r.kind == lease_kind::lock && is_grantable(r.state) && !r.frozen && r.next_offer_at <= now;
}

bool restore_record(record& r, instant grants_from) noexcept {
  if (!r.known() || is_settled(r.state)) return false;
  if (r.kind == lease_kind::job) ++r.unproven_nameless;
  r.next_offer_at = later(r.next_offer_at, grants_from);
  return true;
}

}  // namespace leasehold::protocol
