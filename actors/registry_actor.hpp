// The actor that knows which session speaks for which holder: one at a time, the newest.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class registry_actor final : public coordinator_actor {
 public:
  registry_actor(caf::actor_config& config, context_ptr context)
      : coordinator_actor(config), context_(std::move(context)) {}

  /// For registry_query: the sessions of a tenant, in order of their holders.
  [[nodiscard]] std::vector<worker_view> workers(const protocol::tenant_id& tenant) const;

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override { sessions_.clear(); }

 private:
  using holder_key = std::pair<protocol::tenant_id, protocol::holder>;
  struct speaking {
    session_ptr session;
    worker_view view;
  };

  void claim(claim_holder& claim);
  /// False: the holder has no session.
  bool push(push_to_holder& message);

  context_ptr context_;
  std::map<holder_key, speaking> sessions_;
};

}  // namespace leasehold::actors
