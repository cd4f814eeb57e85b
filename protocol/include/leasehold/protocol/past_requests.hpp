// The requests that a lease's rows show as having taken effect: a record keeps the newest 64, the
// log has all.
#pragma once

#include <span>
#include <vector>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {

struct past_request {
  remembered_request what;
  instant at;  ///< when it took effect
  friend bool operator==(const past_request&, const past_request&) = default;
};

/// Of rows of one lease, the newest first and without a gap, where the lease had the generation
/// `newest` after the first of them; the oldest request first. The search ends at a row behind
/// which the generation cannot be told: a base row, a forgotten lease, a floor that was jumped
/// over.
std::vector<past_request> requests_in(std::span<const stored_row> rows, generation newest);

}  // namespace leasehold::protocol
