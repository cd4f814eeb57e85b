// Where a lease stands, as frames of the coordinator say it.
#pragma once

#include "leasehold/protocol/frame.hpp"
#include "leasehold/protocol/record.hpp"

namespace leasehold::actors {

inline protocol::lease_standing standing_of(const protocol::record& r, protocol::row_number row) {
  protocol::lease_standing s;
  s.lease = r.lease;
  s.gen = r.gen;
  s.row = row;
  s.state = r.state;
  s.expires_at = r.expires_at;
  s.renew_sequence = r.renew_sequence;
  s.progress_sequence = r.progress_sequence;
  s.cancel_requested = static_cast<bool>(r.cancel_requested_at);
  s.cancel_deadline = r.cancel_deadline;
  return s;
}

}  // namespace leasehold::actors
