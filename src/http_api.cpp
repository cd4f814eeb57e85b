#include "src/http_api.hpp"

#include <algorithm>
#include <exception>

#include "src/request_ids.hpp"
#include "src/session.hpp"

namespace leasehold::server {
namespace {

using protocol::reason;

struct found_route {
  const route* way = nullptr;
  std::string id;
  std::string methods;  ///< that the path takes, when this one is not among them
};

found_route find_route(const request_target& target, std::string_view method) {
  found_route out;
  for (const route& r : routes()) {
    auto id = match_path(target, r.pattern);
    if (!id) continue;
    if (r.method == method) return {&r, std::move(*id), {}};
    if (out.methods.find(r.method) == std::string::npos) {
      out.methods += (out.methods.empty() ? "" : ", ") + std::string(r.method);
    }
  }
  return out;
}

bool may_come_from(const http_request& request, const options& chosen) {
  const std::string_view origin = request.header("origin");
  return origin.empty() ||
         std::ranges::find(chosen.allowed_origins, origin) != chosen.allowed_origins.end();
}

bool is_local(const std::string& peer) {
  return peer.starts_with("127.") || peer == "::1" || peer.starts_with("::ffff:127.");
}

/// Fills in who is speaking; false when nobody that is known. A client certificate is enough where
/// it names a principal; with a token both have to name the same one, so that neither lends its
/// rights to the other.
bool authenticate(call& c, std::string& why) {
  const std::string_view header = c.request.header("authorization");
  const auto& registry = *c.api->shared.principals;
  // The version comes first: a reload in between only means one look more.
  c.principals_version = registry.version();
  const auto known = registry.current();
  const principal_entry* entry = known->find_by_certificate(c.request.certificate);
  if (entry != nullptr) c.by.certificate = entry->certificate;
  if (!header.empty()) {
    const auto token = bearer_token(header);
    const principal_entry* owner = token ? known->find_by_token(*token) : nullptr;
    if (owner == nullptr) return false;
    if (entry != nullptr && entry != owner) {
      why = "The token and the client certificate name different principals.";
      return false;
    }
    entry = owner;
    c.by.token = hash_token(*token);
  }
  if (entry == nullptr) return false;
  c.who = entry->who;
  return true;
}

call_ptr make_call(const std::shared_ptr<api_context>& api, http_request request,
                   std::function<void(http_response)> reply) {
  auto c = std::make_shared<call>();
  c->api = api;
  c->request = std::move(request);
  c->reply = std::move(reply);
  auto ids = ids_of(c->request);
  c->request_id = ids.request_id.empty() ? random_hex(16) : std::move(ids.request_id);
  c->trace_id = std::move(ids.trace_id);
  return c;
}

/// Counts refusals and logs the request once it is answered. Neither holds anything of the body,
/// the query or a header.
std::function<void(http_response)> watched(std::shared_ptr<api_context> api, std::string method,
                                           std::function<void(http_response)> reply) {
  return [api = std::move(api), method = std::move(method),
          reply = std::move(reply)](http_response response) {
    api->shared.lines->write(log_level::debug, "request answered",
                             {{"method", method}, {"status", response.status}});
    reply(std::move(response));
  };
}

/// Lets an answer out while this is the active coordinator. Whoever has lost the store meanwhile
/// does not know what is true, nor what became of what was asked for.
std::function<void(http_response)> gated(const call_ptr& c) {
  const bool reads = c->request.method == "GET" || c->request.method == "HEAD";
  return [api = c->api, asked = std::weak_ptr<call>(c), reads,
          reply = std::move(c->reply)](http_response response) {
    if (api->may_answer()) return reply(std::move(response));
    problem p = silence_of(*api->shared.role);
    if (!reads) p.reason = reason::unknown_outcome;
    if (const auto still = asked.lock()) {
      p.request_id = still->request_id;
      p.trace_id = still->trace_id;
    }
    api->shared.counters->refuse(p.reason);
    reply(to_response(p));
  };
}

void fail(const call_ptr& c, const std::exception& what) {
  c->api->shared.lines->write(log_level::error, "request failed", {{"what", what.what()}});
  c->refuse(reason::internal_error);
}

}  // namespace

const route* http_api::admit(const call_ptr& c, bool upgrading) {
  const auto refuse = [&](reason why, std::string detail = {}) {
    api_->shared.counters->refuse(why);
    c->refuse(why, std::move(detail));
    return nullptr;
  };
  auto target = parse_target(c->request.target);
  if (!target) return refuse(reason::malformed, "The path or query cannot be read.");
  auto found = find_route(*target, c->request.method);
  if (found.way == nullptr) {
    if (found.methods.empty()) return refuse(reason::no_such_route);
    api_->shared.counters->refuse(reason::method_not_allowed);
    problem p;
    p.reason = reason::method_not_allowed;
    p.headers = {{"Allow", found.methods}};
    c->refuse(std::move(p));
    return nullptr;
  }
  const route& way = *found.way;
  c->id = std::move(found.id);
  c->query = query_reader(std::move(target->parameters));

  const auto chosen = api_->shared.chosen->current();
  if (!may_come_from(c->request, *chosen)) {
    return refuse(reason::forbidden, "This Origin is not allowed.");
  }
  // Before the credential: whoever asks the wrong one learns where the right one is.
  if (!way.of_standby && !api_->may_answer()) {
    problem p = silence_of(*api_->shared.role);
    api_->shared.counters->refuse(p.reason);
    c->refuse(std::move(p));
    return nullptr;
  }
  const bool open = way.who.open || (way.serve == serve_metrics && chosen->metrics_on_loopback &&
                                     is_local(c->request.peer));
  if (!open) {
    std::string why;
    if (!authenticate(*c, why)) return refuse(reason::unauthenticated, std::move(why));
    if (!way.who.lets(c->who)) {
      return refuse(reason::forbidden,
                    "The credential lacks the role for this: " + way.who.words() + ".");
    }
    // A standby has no clock of the coordinator; all that it serves behind a credential is metrics.
    const auto wait = api_->gateway == nullptr
                          ? protocol::duration{}
                          : api_->shared.rates->take(c->who.name, c->who.requests_per_second,
                                                     api_->gateway->now());
    if (wait.ms > 0) {
      api_->shared.counters->refuse(reason::rate_limited);
      problem p;
      p.reason = reason::rate_limited;
      p.retry_after = wait;
      c->refuse(std::move(p));
      return nullptr;
    }
  }
  if (upgrading != (way.upgrade != nullptr)) {
    return refuse(reason::malformed, upgrading ? "This path takes no WebSocket."
                                               : "This path takes a WebSocket upgrade only.");
  }
  return &way;
}

void http_api::handle(http_request request, std::shared_ptr<const std::atomic<bool>> gone,
                      std::function<void(http_response)> reply) {
  std::string method = request.method;
  auto c = make_call(api_, std::move(request), watched(api_, std::move(method), std::move(reply)));
  c->gone = std::move(gone);
  const route* way = admit(c, false);
  if (way == nullptr) return;
  if (!way->of_standby) c->reply = gated(c);
  try {
    way->serve(c);
  } catch (const std::exception& what) {
    fail(c, what);
  }
}

upgrade_answer http_api::upgrade(const http_request& request) {
  std::optional<http_response> refusal;
  auto c = make_call(api_, request, [&](http_response response) { refusal = std::move(response); });
  const route* way = admit(c, true);
  if (way == nullptr) return upgrade_refused{std::move(*refusal)};
  upgrade_answer answer = way->upgrade(c);
  c->reply = nullptr;
  return answer;
}

}  // namespace leasehold::server
