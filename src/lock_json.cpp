#include "src/lock_json.hpp"

#include "src/keys/normalise.hpp"

namespace leasehold::server {

namespace json = boost::json;

json::object to_target_json(protocol::target_kind kind, std::string_view typed,
                            std::string_view normalised) {
  return {{"kind", protocol::word(kind)}, {"typed", typed}, {"normalised", normalised}};
}

json::object to_key_json(const protocol::tenant_id& tenant, std::string_view typed_target,
                         const protocol::lock_name& normalised) {
  const std::string key = protocol::canonical_key(tenant, normalised);
  return {{"key", key},
          {"lease_id", keys::lock_lease_id(key).value},
          {"tenant", tenant.value},
          {"program", normalised.program},
          {"target", to_target_json(normalised.kind, typed_target, normalised.target)},
          {"workflow", normalised.workflow},
          {"operation_class", normalised.operation_class}};
}

}  // namespace leasehold::server
