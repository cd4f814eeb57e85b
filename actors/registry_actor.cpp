#include "actors/registry_actor.hpp"

namespace leasehold::actors {

actor_behavior registry_actor::make_behavior() {
  return {
      [this](claim_holder& message) { claim(message); },
      [this](const leave_holder& message) {
        const auto it = sessions_.find({message.session->tenant, message.session->holder});
        if (it != sessions_.end() && it->second.session->epoch == message.session->epoch) {
          sessions_.erase(it);
        }
      },
      // Nobody there: the holder hears of it when it comes back (Welcome).
      [this](push_to_holder& message) { push(message); },
      [this](ask_to_push& message) {
        if (!push(message.what)) tell(*context_, message.back_to, holder_absent{message.ask});
      },
      [this](registry_query& query) { query.ask(*this); },
  };
}

bool registry_actor::push(push_to_holder& message) {
  const auto it = sessions_.find({message.tenant, message.holder});
  if (it == sessions_.end()) return false;
  tell(*context_, it->second.session->where, outbound_frames{std::move(message.frames), 0});
  return true;
}

void registry_actor::claim(claim_holder& message) {
  auto& current = sessions_[{message.session->tenant, message.session->holder}];
  // The newest session speaks, however the two claims overtook each other.
  if (current.session && current.session->epoch > message.session->epoch) {
    tell(*context_, message.session->where, session_superseded{});
    return;
  }
  if (current.session && current.session->epoch != message.session->epoch) {
    context_->counters->sessions_superseded.add();
    tell(*context_, current.session->where, session_superseded{});
  }
  current.session = message.session;
  current.view = std::move(message.view);
  tell(*context_, message.session->where, session_claimed{});
}

std::vector<worker_view> registry_actor::workers(const protocol::tenant_id& tenant) const {
  std::vector<worker_view> found;
  for (auto it = sessions_.lower_bound({tenant, {}});
       it != sessions_.end() && it->first.first == tenant; ++it) {
    found.push_back(it->second.view);
  }
  return found;
}

}  // namespace leasehold::actors
