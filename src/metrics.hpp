// The page of /metrics: the counters of the coordinator in Prometheus' text form.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "leasehold/actors/counters.hpp"
#include "src/active_role.hpp"
#include "src/logging.hpp"
#include "src/net_limits.hpp"

namespace leasehold::server {

/// Adds up what the counters say now. Labels are words of the protocol, so their number is bounded.
/// `lines`: whose dropped lines are told, or null; `net`: what the listener counted, or null;
/// `role`: of this process towards its store, or null.
std::string metrics_page(const std::vector<std::shared_ptr<const actors::counters>>& from,
                         const log* lines, const net_counters* net = nullptr,
                         std::int64_t certificate_expires_s = 0, const active_role* role = nullptr);

}  // namespace leasehold::server
