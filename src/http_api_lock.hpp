// How locks are shown as JSON.
#pragma once

#include <boost/json.hpp>

#include "leasehold/actors/gateway.hpp"

namespace leasehold::server {

/// A lock as its holder, its owner's colleagues and operators see it; `lock.lock` is there.
boost::json::object lock_json(const actors::lease_view& lock);

}  // namespace leasehold::server
