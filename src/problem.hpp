// The one shape of a refusal over HTTP: RFC 9457 problem+json, filled from reason.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/record.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// What a caller that may see the lease learns about it beside the refusal.
struct lease_brief {
  protocol::lease_state state = protocol::lease_state::none;
  protocol::generation gen;
  protocol::instant expires_at;
};

struct problem {
  protocol::reason reason = protocol::reason::internal_error;
  std::string detail;  ///< one sentence about this case; empty: the reason's own text
  std::string request_id;
  std::string trace_id;
  std::optional<lease_brief> lease;
  protocol::duration retry_after;  ///< 0: one second, where the reason is worth a retry
  std::vector<std::pair<std::string, std::string>> headers;  ///< more of them, such as Allow
  std::string active;  ///< of a standby: where the active coordinator is reached; empty: not told
};

/// `urn:leasehold:reason:WORD`.
std::string problem_type(protocol::reason why);

http_response to_response(const problem& what);

}  // namespace leasehold::server
