// The actor of one job queue: which jobs may be offered, in which order, and to whom. It reserves a
// job and a slot and asks the lease's shard to offer; only what the shard says afterwards is true.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

class queue_actor final : public coordinator_actor {
 public:
  queue_actor(caf::actor_config& config, context_ptr context, options_ptr options, place shard,
              queue_key key);

  // ---- for queue_query
  [[nodiscard]] queue_view view() const;
  /// Why a known, unsettled job of this queue is not offered now.
  [[nodiscard]] std::pair<std::string, std::string> why(const protocol::lease_key& job) const;
  /// Slots and leases of each session: (holder, slots, held).
  struct session_use {
    protocol::holder holder;
    std::int64_t slots = 0;
    std::int64_t held = 0;
  };
  [[nodiscard]] std::vector<session_use> sessions() const;

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override;

 private:
  enum class place_of_job : std::uint8_t { ready, waiting, offering, held };
  /// Best first: priority, then age, then id.
  using rank = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string>;
  struct job {
    job_ready what;
    place_of_job place = place_of_job::waiting;
    session_id reserved_by = 0;
    protocol::holder held_by;
  };
  struct session {
    session_ptr ref;
    protocol::labels has;
    protocol::sequence sequence;
    std::int64_t slots = 0;
    std::set<protocol::lease_key> uses;  ///< offered to it and not seen closed
    std::int64_t offering = 0;           ///< of those: asked for, not yet answered
    bool gone = false;
  };

  void on(job_ready& message);
  void on(job_held& message);
  void on(job_closed& message);
  void on(job_gone& message);
  void on(job_not_offered& message);
  void on(session_credit& message);
  void on(session_gone& message);
  void on(queue_wake& message);
  void on(options_changed& message);
  void on(queue_query& message);

  void place_job(job& j);
  void unplace(const job& j);
  void match();
  session* free_session(const protocol::labels& wanted);
  void offer(job& j, session& to);
  void offering_over(job& j);
  void forget_if_done(session_id epoch);
  void cancel_late(const job& j);
  void wake_at_earliest();
  /// Most live leases of the queue; 0: no limit.
  [[nodiscard]] std::int64_t limit() const;
  [[nodiscard]] rank rank_of(const job& j) const;
  [[nodiscard]] protocol::instant due(const job& j) const;

  context_ptr context_;
  options_ptr options_;
  place shard_;
  queue_key key_;
  std::map<protocol::lease_key, job> jobs_;
  std::map<protocol::labels, std::map<rank, protocol::lease_key>> ready_;
  std::set<std::pair<protocol::instant, protocol::lease_key>> waiting_;
  std::map<session_id, session> sessions_;
  session_id last_served_ = 0;
  std::int64_t taken_ = 0;  ///< jobs offering or held
  protocol::instant woken_at_;
};

}  // namespace leasehold::actors
