// The upgrade of a worker's stream: subprotocol, readiness, quota, then a session.
#include "src/config_text.hpp"
#include "src/routes.hpp"
#include "src/session.hpp"

namespace leasehold::server {
namespace {

using protocol::reason;

upgrade_answer refused(const call_ptr& c, reason why, std::string detail = {}) {
  c->api->shared.counters->refuse(why);
  problem p;
  p.reason = why;
  p.detail = std::move(detail);
  p.request_id = c->request_id;
  p.trace_id = c->trace_id;
  return upgrade_refused{to_response(p)};
}

/// The first subprotocol offered that this coordinator speaks.
std::optional<protocol::encoding> choose_encoding(std::string_view offered) {
  for (const std::string& part : config_text::split(offered, ',')) {
    const std::size_t begin = part.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    const std::string name = part.substr(begin, part.find_last_not_of(" \t") - begin + 1);
    if (name == protocol::subprotocol_protobuf) return protocol::encoding::protobuf;
    if (name == protocol::subprotocol_json) return protocol::encoding::json;
  }
  return std::nullopt;
}

}  // namespace

upgrade_answer upgrade_stream(const call_ptr& c) {
  if (auto fault = c->query.fault()) return refused(c, fault->reason, fault->sentence);
  const auto how = choose_encoding(c->request.header("sec-websocket-protocol"));
  if (!how) {
    return refused(c, reason::malformed,
                   "Offer the subprotocol leasehold.v1.protobuf or leasehold.v1.json.");
  }
  // A store that takes no writes now is told by the answers; a worker may wait connected.
  const reason why = c->api->shared.unready();
  if (why == reason::draining || why == reason::not_ready) return refused(c, why);
  const auto chosen = c->api->shared.chosen->current();
  auto place = c->api->shared.sessions->enter(c->who.tenant.value, chosen->sessions_per_tenant);
  if (place == nullptr) {
    return refused(c, reason::rate_limited, "The tenant has as many sessions as it may have.");
  }
  upgrade_accepted out;
  out.subprotocol = *how == protocol::encoding::json ? protocol::subprotocol_json
                                                     : protocol::subprotocol_protobuf;
  out.message_limit = static_cast<std::size_t>(chosen->message_bytes);
  out.outbound_limit = static_cast<std::size_t>(chosen->outbound_bytes);
  out.text = *how == protocol::encoding::json;
  out.start = [c, how = *how, place = std::move(place)](std::shared_ptr<socket> on) {
    auto made = std::make_shared<session>(*c, how, place);
    made->start(std::move(on));
    return made;
  };
  return out;
}

}  // namespace leasehold::server
