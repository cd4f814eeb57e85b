#include "tools/forced_revokes.hpp"

#include "tools/json_fields.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

/// What two requests with one request_id are compared by, apart from force (protocol.md 4, rule 3).
json::object request_of(const json::object& row) {
  json::object out;
  for (const std::string_view column :
       {"event", "frame_generation", "frame_holder", "frame_outcome", "frame_detail"}) {
    if (const auto* value = row.if_contains(column)) out[column] = *value;
  }
  return out;
}

/// Only force frees a lease before the deadline that its holder was told, or shortens the delay of
/// one that is revoked already.
bool shows_force(const json::object& row) {
  if (text_in(row, "reason") != "revoked") return false;
  if (text_in(row, "state_before") == "revoked") return true;
  return text_in(row, "state_before") == "active" &&
         number_in(row, "next_offer_at") < number_in(row, "expires_at");
}

}  // namespace

bool forced_revokes::tell(const json::object& row) {
  if (text_in(row, "event") != "revoke") return false;
  const auto id = text_in(row, "request_id");
  const auto reason = text_in(row, "reason");
  if (const auto known = requests_.find(id); known != requests_.end() && !id.empty()) {
    const auto& [request, force] = known->second;
    if (reason == "duplicate_request") return force;
    if (reason == "request_reused") return request == request_of(row) ? !force : force;
  }
  const bool force = shows_force(row);
  if (!id.empty() && text_in(row, "decision") == "applied")
    requests_[id] = {request_of(row), force};
  return force;
}

}  // namespace leasehold::tools
