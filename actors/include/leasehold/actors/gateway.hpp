// The way into the coordinator from outside its actors: what sessions and the HTTP API call. One
// gateway per thread; its calls are made on that thread and their replies come back on it, after
// the commit that makes them true. No call blocks or throws.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/actors/job.hpp"
#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/codec.hpp"
#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/frame.hpp"
#include "leasehold/protocol/reason.hpp"

namespace leasehold::actors {

enum class role : std::uint8_t { worker, client, operator_, auditor };

/// Who is speaking: from the principals file, by credential.
struct principal {
  std::string name;
  protocol::tenant_id tenant;
  std::vector<role> roles;
  std::vector<std::string> queues;       ///< that it may use; "*" for all
  std::vector<std::string> programs;     ///< whose locks it may use; "*" for all
  std::int64_t max_leases = 10000;       ///< held at once over all its sessions
  std::int64_t requests_per_second = 0;  ///< 0: no limit

  [[nodiscard]] bool has(role wanted) const;
  [[nodiscard]] bool may_use_queue(std::string_view queue) const;
  [[nodiscard]] bool may_use_program(std::string_view program) const;
};

/// Where a session's answers go; implemented by the socket. Called by the session's actor, one call
/// after the other: on the session's thread where that runs its actors, on any thread where a
/// scheduler with several workers does. There a gateway is not called from inside these calls, but
/// from what they post to the session's thread.
class outbound {
 public:
  virtual ~outbound() = default;
  /// Queues frames as one message. Past the session's bound the socket closes itself with 4002.
  virtual void send(std::span<const protocol::coordinator_frame> frames) = 0;
  virtual void close(protocol::close_code code, std::string_view why) = 0;
  /// True: stop reading until called with false (too many frames in flight).
  virtual void pause_reading(bool paused) = 0;
};

using session_id = std::int64_t;  ///< unique in the process; the session's epoch

/// The answer to an operation.
struct answer {
  protocol::decision decision = protocol::decision::rejected;
  protocol::reason reason = protocol::reason::none;
  std::optional<lease_view> lease;  ///< where the caller may see it
  protocol::duration retry_after;
  bool created = false;  ///< a new job: 201
  /// acquire: the generation that the request was answered with, also when it was repeated; 0:
  /// none.
  protocol::generation granted;
};

struct submit_request {
  protocol::tenant_id tenant;
  std::optional<protocol::job_id> job;  ///< else made
  job_spec spec;
};

/// Takes a lock if it is free, or waits in line for it.
struct acquire_request {
  protocol::lease_key key;
  std::string canonical;  ///< the canonical key
  protocol::holder holder;
  protocol::instant sent_at;
  protocol::request_id request;
  lock_spec spec;
  protocol::duration wait;           ///< 0: it does not wait
  std::int64_t most_locks = 10'000;  ///< that the principal may hold at once
  std::function<bool()> gone;        ///< whether nobody waits any more; any thread; may be empty
};

struct job_filter {
  protocol::tenant_id tenant;
  std::optional<std::string> queue;
  std::optional<protocol::lease_state> state;
  protocol::labels labels;
};

struct job_page {
  std::vector<lease_view> jobs;  ///< ordered by job id
  std::string next;              ///< page token; empty at the end
};

struct lock_filter {
  protocol::tenant_id tenant;
  std::optional<std::string> owner;  ///< a principal, or PRINCIPAL/INSTANCE
  std::optional<std::pair<protocol::target_kind, std::string>> target;  ///< normalised
  std::optional<std::string> program;
  std::optional<protocol::lease_state> state;
};

struct lock_page {
  std::vector<lease_view> locks;  ///< ordered by lease id
  std::string next;               ///< page token; empty at the end. A page may be short before it
};

/// What a fencing token is measured by.
struct fence_view {
  protocol::generation live;      ///< whose time runs now; 0: nobody's
  protocol::generation observed;  ///< the highest that was ever granted, or may have been
  std::string program;            ///< of the lock; empty: it is not known
};

struct worker_view {
  protocol::tenant_id tenant;
  protocol::holder holder;
  session_id epoch = 0;
  std::string client;
  std::map<std::string, std::int64_t> slots;  ///< by queue
  std::map<std::string, std::int64_t> held;
  protocol::instant connected_at;
};

struct queue_view {
  protocol::tenant_id tenant;
  std::string queue;
  std::int64_t ready = 0;    ///< may be offered now
  std::int64_t waiting = 0;  ///< for not_before or a backoff
  std::int64_t offered = 0;  ///< the grant is being committed
  std::int64_t held = 0;     ///< live: offered or active
  std::int64_t workers = 0;
  std::int64_t free_slots = 0;
  protocol::instant oldest;  ///< when the oldest ready job was submitted; 0: none
  std::int64_t limit = 0;    ///< most live leases; 0: none
};

/// Why a job is not offered now, in one word and one sentence.
struct why_view {
  lease_view job;
  std::string word;  ///< settled, held, not_before, backoff, frozen, unresolved, no_worker,
                     ///< no_matching_labels, no_credit, queue_limit, behind
  std::string sentence;
};

class gateway {
 public:
  virtual ~gateway() = default;

  // ---- worker sessions
  virtual session_id open_session(const principal& who, std::shared_ptr<outbound> sink) = 0;
  /// All frames of one message, with the one stamp of its ingress, which is read from now() in the
  /// same turn of the thread: deadlines queue behind it.
  virtual void deliver(session_id session,
                       protocol::decoded_message<protocol::worker_frame> message,
                       protocol::instant ingress) = 0;
  virtual void close_session(session_id session) = 0;

  // ---- operations
  virtual void submit(submit_request what, std::function<void(answer)> reply) = 0;
  /// cancel, revoke, resolve, reconcile; renew and release of a lock.
  virtual void operate(protocol::lease_key key, protocol::event what,
                       std::function<void(answer)> reply) = 0;

  /// The reply comes once the lock is granted, refused, or the wait is over.
  virtual void acquire(acquire_request what, std::function<void(answer)> reply) = 0;

  // ---- queries; nothing when unknown in that tenant
  virtual void find_lease(protocol::lease_key key,
                          std::function<void(std::optional<lease_view>)> reply) = 0;
  /// As find_lease, but only once the job is settled or `until` has come.
  virtual void await_settled(protocol::lease_key key, protocol::instant until,
                             std::function<void(std::optional<lease_view>)> reply) = 0;
  /// As find_lease, but only once `gen` is not the live generation any more, or `until` has come.
  /// Without a generation: of the one that is live now, or once one is.
  virtual void await_change(protocol::lease_key key, std::optional<protocol::generation> gen,
                            protocol::instant until,
                            std::function<void(std::optional<lease_view>)> reply) = 0;
  virtual void list_locks(lock_filter filter, std::string page_token, std::size_t page_size,
                          std::function<void(lock_page)> reply) = 0;
  virtual void find_fence(protocol::lease_key key, std::function<void(fence_view)> reply) = 0;
  virtual void list_jobs(job_filter filter, std::string page_token, std::size_t page_size,
                         std::function<void(job_page)> reply) = 0;
  virtual void why(protocol::lease_key key, std::function<void(std::optional<why_view>)> reply) = 0;
  virtual void workers(protocol::tenant_id tenant,
                       std::function<void(std::vector<worker_view>)> reply) = 0;
  virtual void queues(protocol::tenant_id tenant,
                      std::function<void(std::vector<queue_view>)> reply) = 0;

  // ---- committed rows, live. `on_rows` hears of new durable rows up to `last`; it reads them from
  // the store itself, at its own pace (http_api's event reader).
  virtual std::int64_t watch(std::function<void(protocol::row_number last)> on_rows) = 0;
  virtual void unwatch(std::int64_t watch) = 0;

  virtual protocol::instant now() const = 0;
};

/// Counters that the server exports; updated by the actors, read by anybody.
struct counters;

}  // namespace leasehold::actors
