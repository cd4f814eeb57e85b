// The routing table of the HTTP API, and what each route is served with.
#pragma once

#include <atomic>
#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "leasehold/actors/counters.hpp"
#include "leasehold/actors/gateway.hpp"
#include "leasehold/actors/store.hpp"
#include "src/credential.hpp"
#include "src/http_api_query.hpp"
#include "src/logging.hpp"
#include "src/options.hpp"
#include "src/principals.hpp"
#include "src/problem.hpp"
#include "src/rate_limits.hpp"
#include "src/store/read_pool.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

class evidence_reader;
class dispatch_census;

/// The options as of the last good reload; any thread.
class live_options {
 public:
  explicit live_options(options initial)
      : current_(std::make_shared<const options>(std::move(initial))) {}
  [[nodiscard]] std::shared_ptr<const options> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void replace(options with) {
    auto next = std::make_shared<const options>(std::move(with));
    const std::lock_guard lock(mutex_);
    current_ = std::move(next);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const options> current_;
};

/// What the threads' APIs share.
struct api_shared {
  std::shared_ptr<live_options> chosen;
  std::shared_ptr<principal_registry> principals;
  std::shared_ptr<actors::store> store;
  std::shared_ptr<actors::dispatch_store> dispatches;  ///< null: none are kept
  std::shared_ptr<dispatch_census> census;             ///< of them; null with them
  std::shared_ptr<storage::read_pool> reads;
  std::shared_ptr<rate_limits> rates;
  std::shared_ptr<tenant_quota> sessions;
  std::shared_ptr<evidence_reader> evidence;
  std::shared_ptr<log> lines;
  std::shared_ptr<actors::counters> counters;
  /// The page of /metrics.
  std::function<std::string()> metrics;
  /// Why nobody should send work here now (draining, not_ready, store_unavailable); none: ready.
  std::function<protocol::reason()> unready;
  /// Whether new connections are turned away.
  std::function<bool()> full;
};

/// What the API of one thread works with. `post` and `after` run a function on that thread; `post`
/// may be called from any.
struct api_context {
  api_shared shared;
  actors::gateway* gateway = nullptr;
  std::function<void(std::function<void()>)> post;
  std::function<void(protocol::duration, std::function<void()>)> after;
  credentialed_sockets sockets;
};

/// One request that was let through to its route. Lives until its reply is given.
struct call {
  std::shared_ptr<api_context> api;
  http_request request;
  std::shared_ptr<const std::atomic<bool>> gone;
  std::function<void(http_response)> reply;
  actors::principal who;  ///< of open routes: without a name
  credential_proof by;    ///< that it was authenticated by
  std::int64_t principals_version = 0;
  std::string id;  ///< the path's {id}
  query_reader query;
  std::string request_id;  ///< X-Request-Id, the body's request_id, or one made here
  std::string trace_id;    ///< traceparent, or empty

  /// For what outlives the call.
  [[nodiscard]] credential make_credential() const {
    return {api->shared.principals, who, by, principals_version};
  }
  [[nodiscard]] protocol::lease_key key() const { return {who.tenant, protocol::lease_id(id)}; }
  void refuse(protocol::reason why, std::string detail = {}) const;
  void refuse(problem what) const;
  void refuse(const input_fault& fault) const { refuse(fault.reason, fault.sentence); }
  void answer(int status, const boost::json::value& body) const;
};
using call_ptr = std::shared_ptr<call>;

/// Which roles may take a route; `open`: everybody, without a credential.
struct access {
  bool worker = false;
  bool client = false;
  bool operator_ = false;
  bool auditor = false;
  bool open = false;
  [[nodiscard]] bool lets(const actors::principal& who) const;
  /// The roles of which one is needed: "client or operator".
  [[nodiscard]] std::string words() const;
};

using upgrade_answer = std::variant<upgrade_refused, upgrade_accepted>;

struct route {
  std::string_view method;
  std::string_view pattern;
  access who;
  void (*serve)(const call_ptr&);  ///< null: an upgrade only
  upgrade_answer (*upgrade)(const call_ptr&) = nullptr;
};

/// In the order in which they are tried: a verb before the plain id.
std::span<const route> routes() noexcept;

// ---- what serves them, by file
void serve_submit(const call_ptr& c);
void serve_job(const call_ptr& c);
void serve_jobs(const call_ptr& c);
void serve_cancel(const call_ptr& c);
void serve_redrive(const call_ptr& c);
void serve_revoke(const call_ptr& c);
void serve_resolve(const call_ptr& c);
void serve_reconcile(const call_ptr& c);
void serve_key(const call_ptr& c);
void serve_acquire(const call_ptr& c);
void serve_renew_lock(const call_ptr& c);
void serve_release_lock(const call_ptr& c);
void serve_revoke_lock(const call_ptr& c);
void serve_resolve_lock(const call_ptr& c);
void serve_lock(const call_ptr& c);
void serve_locks(const call_ptr& c);
void serve_fence(const call_ptr& c);
void serve_lock_evidence(const call_ptr& c);
void serve_dispatches(const call_ptr& c);
void serve_dispatch(const call_ptr& c);
void serve_dispatch_retry(const call_ptr& c);
void serve_dispatch_resolve(const call_ptr& c);
void serve_openapi(const call_ptr& c);
void serve_why(const call_ptr& c);
void serve_workers(const call_ptr& c);
void serve_queues(const call_ptr& c);
void serve_job_evidence(const call_ptr& c);
void serve_evidence(const call_ptr& c);
void serve_head(const call_ptr& c);
void serve_health(const call_ptr& c);
void serve_ready(const call_ptr& c);
void serve_metrics(const call_ptr& c);
upgrade_answer upgrade_stream(const call_ptr& c);
upgrade_answer upgrade_events(const call_ptr& c);

/// Finds the job of the path for a caller that may use its queue, else refuses; `then` runs with
/// it.
void with_job(const call_ptr& c, std::function<void(const actors::lease_view&)> then);
/// The same for evidence: an auditor may see that of every queue of its tenant.
void with_audited_job(const call_ptr& c, std::function<void(const actors::lease_view&)> then);
/// The same for the evidence of a lock.
void with_audited_lock(
    const call_ptr& c,
    std::function<void(const protocol::lease_key&, const actors::lease_view&)> then);
/// Runs a read of the store beside the loop, then `then` on it; refuses when too many wait.
template <class Result>
void with_read(const call_ptr& c, std::function<Result()> read, std::function<void(Result)> then) {
  auto task = [c, read = std::move(read), then = std::move(then)] {
    auto result = std::make_shared<Result>(read());
    c->api->post([then, result] { then(std::move(*result)); });
  };
  if (!c->api->shared.reads->submit(std::move(task))) {
    c->refuse(protocol::reason::rate_limited, "Too many reads wait; ask again.");
  }
}

}  // namespace leasehold::server
