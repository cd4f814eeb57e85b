// The actor that dispatches cancels: it runs the supervisor of the stream stage, and those of other
// stages whose controllers it was given, asks holders to stop through the shards and the registry,
// and gives what was proven to have ended to the lease's shard (cancellation-dispatch.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leasehold/actors/coordinator.hpp"
#include "leasehold/actors/dispatch.hpp"
#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class dispatcher_actor final : public coordinator_actor {
 public:
  /// `where` outlives every actor; it is asked nothing more once this one has ended.
  dispatcher_actor(caf::actor_config& config, context_ptr context, dispatch_store& where,
                   const dispatch_means& means);
  ~dispatcher_actor() override;

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override;
  void broken(const std::exception_ptr& what) override;

 private:
  class turn_timer;
  /// One stage: its supervisor and what repeats its cycles.
  struct stage_run {
    std::shared_ptr<dispatch_supervisor> supervisor;
    std::shared_ptr<turn_timer> timer;
    std::unique_ptr<dispatch_runner> runner;
  };
  struct waiting_ask {
    protocol::lease_key key;
    std::function<void(protocol::dispatch_result)> done;
  };

  void run_stage(protocol::dispatch_stage stage, std::shared_ptr<execution_controller> by);
  [[nodiscard]] dispatch_strand make_strand() const;
  void cycle_ended(std::size_t which, const dispatch_cycle& did);
  void failed(const store_error& error);
  void stop();

  // ---- the stream: the holder is asked to stop
  void act(dispatch_act& message);
  [[nodiscard]] protocol::duration window_of(const protocol::dispatch_record& record) const;
  void answer(std::int64_t ask, protocol::dispatch_result what, bool shard_still_waits);

  // ---- proof: what is gone becomes a row of its lease
  void look_for_exited();
  void give_proof(const exited_found& found);

  context_ptr context_;
  options_ptr options_;
  place self_;
  std::shared_ptr<dispatch_store> store_;  ///< does not own it
  dispatch_means means_;
  std::string owner_;
  std::vector<stage_run> stages_;
  bool stopped_ = false;
  std::map<std::int64_t, waiting_ask> asks_;
  std::int64_t last_ask_ = 0;
  bool looks_for_exited_ = false;
  protocol::instant exited_since_;  ///< where the next look begins; 0: at the oldest
  bool in_trouble_ = false;
  protocol::instant trouble_told_;
};

}  // namespace leasehold::actors
