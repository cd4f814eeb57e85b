// Requests that came before, and that the record of their lease remembers no more.
#include <utility>

#include "actors/shard_actor.hpp"

namespace leasehold::actors {

bool shard_actor::asks_log(shard_operation& operation) {
  const auto* entry = find(operation.key);
  if (entry == nullptr || operation.what.request.empty()) return false;
  const auto now = operation.ingress;
  if (!older_requests_.needs_log(entry->mark, now)) return false;
  const auto facts = entry->facts();
  if (remembered(*facts.state, operation.what.request) != nullptr) return false;
  auto& waiting = awaiting_log_[entry->mark];
  if (waiting.size() >= options_->waiting_groups) {
    refuse(operation, protocol::reason::rate_limited);
    return true;
  }
  if (waiting.empty()) {
    tell(*context_, context_->journal,
         ask_requests{self_, entry->mark, entry->key(), facts.last_row, facts.state->gen,
                      now - older_requests::kept});
  }
  waiting.push_back(std::move(operation));
  return true;
}

void shard_actor::requests_read(const requests_answer& said) {
  auto waiting = awaiting_log_.extract(said.entry);
  if (waiting.empty()) return;
  const auto* found = std::get_if<std::vector<protocol::past_request>>(&said.result);
  // It may have been forgotten meanwhile.
  const auto* entry = leases_.find(said.entry);
  if (found != nullptr && entry != nullptr) {
    older_requests_.take_log(said.entry, *entry->state(), *found, context_->clock->now());
  }
  for (auto& operation : waiting.mapped()) {
    if (found != nullptr) {
      take_operation(operation);
    } else {
      refuse(operation, protocol::reason::store_unavailable);
    }
  }
  send_answers();
}

bool shard_actor::answer_old_request(shard_operation& operation) {
  const auto* entry = find(operation.key);
  if (entry == nullptr || operation.what.request.empty()) return false;
  const auto* repeated =
      older_requests_.find(entry->mark, operation.what.request, operation.ingress);
  if (repeated == nullptr) return false;
  if (!protocol::is_repeat(*repeated, operation.what)) {
    refuse(operation, protocol::reason::request_reused);
    return true;
  }
  frame_answer said;
  said.kind = operation.what.kind;
  said.decision = protocol::decision::ignored;
  said.reason = protocol::reason::duplicate_request;
  context_->counters->refuse(said.reason);
  answer_request(*entry, operation, said, {}, repeated->answered);
  return true;
}

}  // namespace leasehold::actors
