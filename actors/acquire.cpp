#include "actors/acquire.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::actors {

shard_operation acquire_operation(acquire_request what, const actor_options& options,
                                  protocol::instant ingress) {
  shard_operation operation;
  operation.key = std::move(what.key);
  operation.ingress = ingress;
  auto& event = operation.what;
  event.kind = protocol::event_kind::acquire;
  event.lease = operation.key.lease;
  event.job = protocol::job_id{std::move(what.canonical)};
  event.from = std::move(what.holder);
  event.sent_at = what.sent_at;
  event.request = std::move(what.request);
  event.trace_id = what.spec.trace_id;
  operation.lock = std::make_shared<const lock_spec>(std::move(what.spec));
  if (what.wait.ms > 0) {
    operation.wait_until = ingress + std::min(what.wait, options.longest_wait);
  }
  operation.gone = std::move(what.gone);
  operation.most_locks = what.most_locks;
  return operation;
}

void send_acquire(const thread_context& from, shard_operation operation) {
  const auto& tie = operation.lock->tie;
  if (tie.job.empty()) {
    const auto& to = from.shard_for(operation.key);
    tell(from, to, std::move(operation));
    return;
  }
  tie_lock message;
  message.job = {operation.key.tenant, protocol::lease_id{tie.job.value}};
  message.gen = tie.gen;
  message.lock = operation.key;
  message.acquire = std::make_shared<shard_operation>(std::move(operation));
  const auto& to = from.shard_for(message.job);
  tell(from, to, std::move(message));
}

}  // namespace leasehold::actors
