#include "src/http_api_lock.hpp"

#include "src/lock_json.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;

/// PRINCIPAL/INSTANCE.
json::object owner_json(const std::string& holder) {
  const auto slash = holder.find('/');
  if (slash == std::string::npos) return {{"principal", holder}, {"instance", ""}};
  return {{"principal", holder.substr(0, slash)}, {"instance", holder.substr(slash + 1)}};
}

json::value tie_json(const actors::lock_tie& tie) {
  if (tie.job.empty()) return nullptr;
  return json::object{{"job", tie.job.value}, {"generation", tie.gen.value}};
}

}  // namespace

json::object lock_json(const actors::lease_view& lock) {
  const protocol::record& r = *lock.state;
  const actors::lock_spec& spec = *lock.lock;
  json::object metadata;
  for (const auto& [name, value] : spec.metadata) metadata[name] = value;
  return {{"key", r.job.value},
          {"lease_id", r.lease.value},
          {"tenant", lock.tenant.value},
          {"program", spec.name.program},
          {"target", to_target_json(spec.name.kind, spec.typed, spec.name.target)},
          {"workflow", spec.name.workflow},
          {"operation_class", spec.name.operation_class},
          {"state", protocol::word(r.state)},
          {"fencing_token", r.gen.value},
          {"generation", r.gen.value},
          {"holder", r.held_by.value},
          {"owner", owner_json(r.held_by.value)},
          {"issued_at", r.issued_at.ms},
          {"acquired_at", r.acquired_at.ms},
          {"renewed_at", r.renew_time.ms},
          {"expires_at", r.expires_at.ms},
          {"ttl_ms", spec.policy.lease_duration.ms},
          {"max_lifetime_ms", spec.policy.max_lifetime.ms},
          {"lock_delay_ms", spec.policy.lock_delay.ms},
          {"renew_sequence", r.renew_sequence.value},
          {"execution_id", spec.execution_id},
          {"trace_id", spec.trace_id},
          {"metadata", std::move(metadata)},
          {"tie", tie_json(spec.tie)},
          {"frozen", r.frozen},
          {"unproven", r.unproven_count()},
          {"next_offer_at", r.next_offer_at.ms},
          {"row", lock.row.value}};
}

}  // namespace leasehold::server
