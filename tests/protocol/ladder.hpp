// The rules a second time, as a plain ladder of ifs written from the protocol page and from nothing
// else: what the table of the library decides is compared with it.
#pragma once

#include "leasehold/protocol/rules.hpp"

namespace leasehold::ladder {

/// A verdict without the row of the table that gave it.
struct answer {
  protocol::decision decision = protocol::decision::rejected;
  protocol::reason reason = protocol::reason::none;
  protocol::row_flags flags;
  friend bool operator==(const answer&, const answer&) = default;
};

/// Section 4: a frame of a worker, judged at `now`.
answer judge_frame(const protocol::record& lease, const protocol::policy& chosen,
                   const protocol::event& frame, protocol::instant now);

/// Section 5: what clients, operators and the coordinator do.
answer judge_operation(const protocol::record& lease, const protocol::policy& chosen,
                       const protocol::event& what, protocol::instant now);

/// Rule 3: whether a remembered request decides, and how.
bool was_asked_before(const protocol::record& lease, const protocol::event& what, answer& out);

}  // namespace leasehold::ladder
