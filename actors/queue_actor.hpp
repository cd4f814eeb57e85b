// The actor of one job queue: which jobs may be offered, in which order, and to whom. It reserves a
// job and a slot and asks the lease's shard to offer; only what the shard says afterwards is true.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/lease_name.hpp"
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
  // A queue may have a million jobs: what is kept of each is counted in bytes. The tenant is the
  // queue's, equal labels and holders are kept once, and a job stands in the one index that it
  // needs.
  enum class place_of_job : std::uint8_t { ready, waiting, offering, held };
  using holder_counts = std::map<protocol::holder, std::int64_t>;  ///< live leases of each
  struct label_group;
  struct session;
  static constexpr auto no_slot = std::numeric_limits<std::uint32_t>::max();
  struct job {
    label_group* group = nullptr;     ///< of its labels; none while it is held
    session* of = nullptr;            ///< that it is being offered to, or that counts it in `uses`
    holder_counts::iterator held_by;  ///< while it is held
    protocol::instant submitted_at;
    protocol::row_number since;
    protocol::instant due;         ///< not_before or next_offer_at, the later one
    protocol::instant not_after;   ///< 0: no end
    std::uint32_t slot = no_slot;  ///< where `uses` of its session has it
    std::int16_t priority = 0;     ///< higher first
    place_of_job place = place_of_job::waiting;
    bool due_by_not_before = false;
  };
  using job_map = std::map<lease_name, job, std::less<>>;
  using job_ref = job_map::iterator;
  /// Best first: priority, then age, then id.
  struct by_rank {
    bool operator()(job_ref a, job_ref b) const noexcept;
  };
  struct by_due {
    bool operator()(job_ref a, job_ref b) const noexcept;
  };
  struct label_group {
    const protocol::labels* wanted = nullptr;
    std::set<job_ref, by_rank> ready;
    std::int64_t jobs = 0;  ///< that point here
  };
  /// What was offered to a session and not seen closed takes one of its slots each.
  struct session {
    session_ptr ref;
    protocol::labels has;
    protocol::sequence sequence;
    std::int64_t slots = 0;
    std::vector<job_ref> uses;
    /// Leases that it uses, too, though the queue has no such job or counts the job elsewhere. Only
    /// news that crossed on their way leave any, until the session's next credit.
    std::set<std::string, std::less<>> strays;
    std::int64_t offering = 0;  ///< asked for, not yet answered
    bool gone = false;
    [[nodiscard]] std::int64_t used() const noexcept {
      return static_cast<std::int64_t>(uses.size() + strays.size());
    }
  };

  // ---- queue_actor.cpp: what comes in
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
  void offering_over(job& j);
  void forget_if_done(session_id epoch);
  void wake_at_earliest();

  // ---- queue_match.cpp: who is offered what
  void match();
  session* free_session(const protocol::labels& wanted);
  void offer(job_ref j, session& to);
  void cancel_late(job_ref j);
  [[nodiscard]] shard_operation operation_on(job_ref j) const;
  /// Most live leases of the queue; 0: no limit.
  [[nodiscard]] std::int64_t limit() const;

  // ---- queue_jobs.cpp: the jobs and their places
  [[nodiscard]] job_ref find(const protocol::lease_id& lease);
  std::pair<job_ref, bool> find_or_make(const protocol::lease_id& lease);
  void erase(job_ref j);
  void place_job(job_ref j);
  void unplace(job_ref j);
  void set_terms(job& j, const job_ready& terms);
  void leave_group(job& j);
  [[nodiscard]] protocol::instant due(const job& j) const;
  void use(session& s, job_ref j);
  void use(session& s, const protocol::lease_id& lease);
  static void free_slot(job_ref j);
  static void keep_as_stray(job_ref j);

  context_ptr context_;
  options_ptr options_;
  place shard_;
  queue_key key_;
  job_map jobs_;
  holder_counts holders_;
  std::map<protocol::labels, label_group> groups_;
  std::set<label_group*> ready_;  ///< the groups with a job that is ready
  std::set<job_ref, by_due> waiting_;
  std::map<session_id, session> sessions_;
  session_id last_served_ = 0;
  std::int64_t taken_ = 0;     ///< jobs offering or held
  std::int64_t offering_ = 0;  ///< of those: asked for, not yet answered
  protocol::instant woken_at_;
};

}  // namespace leasehold::actors
