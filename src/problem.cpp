#include "src/problem.hpp"

#include <algorithm>
#include <boost/json.hpp>

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::reason_class;

bool is_worth_a_retry(reason_class what) {
  return what == reason_class::retryable || what == reason_class::unknown_outcome ||
         what == reason_class::pending;
}

json::object to_json(const lease_brief& lease) {
  return {{"state", protocol::word(lease.state)},
          {"generation", lease.gen.value},
          {"expires_at", lease.expires_at.ms}};
}

}  // namespace

std::string problem_type(protocol::reason why) {
  return "urn:leasehold:reason:" + std::string(protocol::word(why));
}

http_response to_response(const problem& what) {
  const protocol::reason_entry* entry = protocol::find_reason(what.reason);
  if (entry == nullptr) entry = protocol::find_reason(protocol::reason::internal_error);
  const reason_class outcome = protocol::class_of(protocol::decision::rejected, entry->code);

  http_response out;
  out.status = entry->http_status;
  json::object body{{"type", problem_type(entry->code)},
                    {"title", entry->text},
                    {"status", entry->http_status},
                    {"detail", what.detail.empty() ? entry->text : std::string_view(what.detail)},
                    {"reason", entry->word},
                    {"class", protocol::word(outcome)},
                    {"request_id", what.request_id},
                    {"trace_id", what.trace_id}};
  if (what.lease) body["lease"] = to_json(*what.lease);
  out.headers = what.headers;
  if (!what.active.empty()) {
    body["active"] = what.active;
    // For who reads no body, as after a refused upgrade.
    out.headers.emplace_back("Leasehold-Active", what.active);
  }
  if (is_worth_a_retry(outcome)) {
    const std::int64_t ms = what.retry_after.ms > 0 ? what.retry_after.ms : 1000;
    out.headers.emplace_back("Retry-After", std::to_string((ms + 999) / 1000));
    body["retry_after_ms"] = ms;
  }
  if (out.status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"leasehold\"");
  out.headers.emplace_back("Content-Type", "application/problem+json");
  out.headers.emplace_back("Cache-Control", "no-store");
  out.body = json::serialize(body) + "\n";
  return out;
}

}  // namespace leasehold::server
