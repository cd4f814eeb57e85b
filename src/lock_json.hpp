// How a lock's name is shown: by the API, and by `leasehold key` without one.
#pragma once

#include <boost/json.hpp>
#include <string_view>

#include "leasehold/protocol/lock_key.hpp"

namespace leasehold::server {

/// {"kind", "typed", "normalised"}: what somebody typed beside what is locked.
boost::json::object to_target_json(protocol::target_kind kind, std::string_view typed,
                                   std::string_view normalised);

/// {"key", "lease_id", "tenant", "program", "target", "workflow", "operation_class"}.
boost::json::object to_key_json(const protocol::tenant_id& tenant, std::string_view typed_target,
                                const protocol::lock_name& normalised);

}  // namespace leasehold::server
