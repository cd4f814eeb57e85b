#include "src/routes.hpp"

#include <algorithm>
#include <array>

namespace leasehold::server {
namespace {

constexpr access client{.client = true};
constexpr access client_or_operator{.client = true, .operator_ = true};
constexpr access operators{.operator_ = true};
constexpr access readers{.worker = true, .client = true, .operator_ = true};
constexpr access evidence_of_a_job{.client = true, .operator_ = true, .auditor = true};
constexpr access auditors{.operator_ = true, .auditor = true};
constexpr access holders{.worker = true, .client = true};
constexpr access workers{.worker = true};
constexpr access everybody{.open = true};

constexpr std::array<route, 34> table{{
    {"POST", "/v1/jobs", client, serve_submit},
    {"GET", "/v1/jobs", client_or_operator, serve_jobs},
    {"POST", "/v1/jobs/{id}:cancel", client_or_operator, serve_cancel},
    {"POST", "/v1/jobs/{id}:redrive", client_or_operator, serve_redrive},
    {"POST", "/v1/jobs/{id}:revoke", operators, serve_revoke},
    {"POST", "/v1/jobs/{id}:resolve", operators, serve_resolve},
    {"POST", "/v1/jobs/{id}:reconcile", operators, serve_reconcile},
    {"GET", "/v1/jobs/{id}:why", client_or_operator, serve_why},
    {"GET", "/v1/jobs/{id}/evidence", evidence_of_a_job, serve_job_evidence},
    {"GET", "/v1/jobs/{id}", readers, serve_job},
    {"POST", "/v1/keys:normalize", readers, serve_key},
    {"POST", "/v1/locks:acquire", holders, serve_acquire},
    {"POST", "/v1/locks:renew", holders, serve_renew_lock},
    {"POST", "/v1/locks:release", holders, serve_release_lock},
    {"POST", "/v1/locks:revoke", operators, serve_revoke_lock},
    {"POST", "/v1/locks:resolve", operators, serve_resolve_lock},
    {"GET", "/v1/locks", readers, serve_locks},
    {"GET", "/v1/locks/{id}/evidence", evidence_of_a_job, serve_lock_evidence},
    {"GET", "/v1/locks/{id}", readers, serve_lock},
    {"GET", "/v1/fences/{id}", readers, serve_fence},
    {"GET", "/v1/dispatches", auditors, serve_dispatches},
    {"POST", "/v1/dispatches/{id}:retry", operators, serve_dispatch_retry},
    {"POST", "/v1/dispatches/{id}:resolve", operators, serve_dispatch_resolve},
    {"GET", "/v1/dispatches/{id}", auditors, serve_dispatch},
    {"GET", "/v1/openapi.json", everybody, serve_openapi},
    {"GET", "/v1/workers", client_or_operator, serve_workers},
    {"GET", "/v1/queues", client_or_operator, serve_queues},
    {"GET", "/v1/evidence", auditors, serve_evidence},
    {"GET", "/v1/head", auditors, serve_head},
    {"GET", "/v1/events", auditors, nullptr, upgrade_events},
    {"GET", "/v1/stream", workers, nullptr, upgrade_stream},
    {"GET", "/metrics", auditors, serve_metrics},
    {"GET", "/healthz", everybody, serve_health},
    {"GET", "/readyz", everybody, serve_ready},
}};

}  // namespace

std::span<const route> routes() noexcept { return table; }

bool access::lets(const actors::principal& caller) const {
  using actors::role;
  return open || (worker && caller.has(role::worker)) || (client && caller.has(role::client)) ||
         (operator_ && caller.has(role::operator_)) || (auditor && caller.has(role::auditor));
}

std::string access::words() const {
  using actors::role;
  std::string out;
  for (const auto& [wanted, which] : {std::pair{worker, role::worker},
                                      {client, role::client},
                                      {operator_, role::operator_},
                                      {auditor, role::auditor}}) {
    if (wanted) out += (out.empty() ? "" : " or ") + std::string(word(which));
  }
  return out;
}

void call::refuse(problem what) const {
  what.request_id = request_id;
  what.trace_id = trace_id;
  reply(to_response(what));
}

void call::refuse(protocol::reason why, std::string detail) const {
  problem what;
  what.reason = why;
  what.detail = std::move(detail);
  refuse(std::move(what));
}

void call::answer(int status, const boost::json::value& body) const {
  http_response out;
  out.status = status;
  out.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  out.body = boost::json::serialize(body) + "\n";
  reply(std::move(out));
}

static void with_job_if(const call_ptr& c, bool any_queue,
                        std::function<void(const actors::lease_view&)> then) {
  if (!is_id(c->id)) {
    c->refuse(protocol::reason::unknown_lease);
    return;
  }
  c->api->gateway->find_lease(c->key(), [c, any_queue, then = std::move(then)](
                                            const std::optional<actors::lease_view>& found) {
    if (!found || found->spec == nullptr) {
      c->refuse(protocol::reason::unknown_lease);
    } else if (!any_queue && !c->who.may_use_queue(found->spec->queue)) {
      c->refuse(protocol::reason::forbidden, "This queue is not granted to the credential.");
    } else {
      then(*found);
    }
  });
}

void with_job(const call_ptr& c, std::function<void(const actors::lease_view&)> then) {
  with_job_if(c, false, std::move(then));
}

void with_audited_job(const call_ptr& c, std::function<void(const actors::lease_view&)> then) {
  with_job_if(c, c->who.has(actors::role::auditor), std::move(then));
}

}  // namespace leasehold::server
