#include "leasehold/protocol/past_requests.hpp"

#include <algorithm>
#include <array>

namespace leasehold::protocol {
namespace {

bool took_effect(const stored_row& row) {
  return row.answer.decision == decision::accepted || row.answer.decision == decision::applied;
}

/// The events whose requests a record remembers.
constexpr std::array remembered_kinds{event_kind::acquire, event_kind::release,
                                      event_kind::cancel,  event_kind::revoke,
                                      event_kind::resolve, event_kind::reconcile};

bool is_remembered(const stored_row& row) {
  return row.has_input && !row.input.request.empty() && took_effect(row) &&
         std::ranges::find(remembered_kinds, row.input.kind) != remembered_kinds.end();
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
