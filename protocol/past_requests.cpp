#include "leasehold/protocol/past_requests.hpp"

#include <algorithm>

namespace leasehold::protocol {
namespace {

bool took_effect(const stored_row& row) {
  return row.answer.decision == decision::accepted || row.answer.decision == decision::applied;
}

bool is_remembered(const stored_row& row) {
  if (!row.has_input || row.input.request.empty() || !took_effect(row)) return false;
  switch (row.input.kind) {
    case event_kind::acquire:
    case event_kind::release:
    case event_kind::cancel:
    case event_kind::revoke:
    case event_kind::resolve:
    case event_kind::reconcile:
      return true;
    case event_kind::ack:
    case event_kind::decline:
    case event_kind::renew:
    case event_kind::progress:
    case event_kind::cancel_ack:
    case event_kind::result:
    case event_kind::submit:
    case event_kind::offer:
    case event_kind::withdraw:
    case event_kind::prove:
    case event_kind::recover:
    case event_kind::activate:
    case event_kind::expire:
    case event_kind::reconcile_close:
    case event_kind::stop:
    case event_kind::clock_anchored:
    case event_kind::policy:
    case event_kind::forget:
    case event_kind::base:
    case event_kind::counted:
    case event_kind::restore:
      return false;
  }
  return false;
}

bool is_grant(const stored_row& row) {
  return took_effect(row) &&
         (row.input.kind == event_kind::acquire || row.input.kind == event_kind::offer);
}

bool hides_what_was_before(const stored_row& row) {
  return row.input.kind == event_kind::base || row.input.kind == event_kind::forget;
}

}  // namespace

std::vector<past_request> requests_in(std::span<const stored_row> rows, generation newest) {
  std::vector<past_request> found;
  auto gen = newest;
  for (const auto& row : rows) {
    if (hides_what_was_before(row)) break;
    if (is_remembered(row)) {
      const auto& what = row.input;
      found.push_back({{what.request, what.kind, what.gen, what.from, what.ending,
                        what.unknown_outcome, what.detail, what.force, gen},
                       row.at});
    }
    if (!is_grant(row)) continue;
    if (row.floor.value != 0) break;
    --gen.value;
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace leasehold::protocol
