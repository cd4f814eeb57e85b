// The actor of one job queue: which jobs may be offered, in which order, and to whom. It reserves a
// job and a slot and asks the lease's shard to offer; only what the shard says afterwards is true.
#pragma once

#include <boost/intrusive/set.hpp>
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
  ~queue_actor() override;

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
  void broken(const std::exception_ptr& what) override;

 private:
  // A queue may have a million jobs: what is kept of each is counted in bytes. The tenant is the
  // queue's, equal labels and holders are kept once, and a job stands in the one index that it
  // needs.
  enum class place_of_job : std::uint8_t { ready, waiting, offering, held };
  using holder_counts = std::map<protocol::holder, std::int64_t>;  ///< live leases of each
  using held_count = holder_counts::value_type;
  struct label_group;
  struct session;
  static constexpr auto no_slot = std::numeric_limits<std::uint32_t>::max();
  using hook =
      boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                        boost::intrusive::optimize_size<true>>;
  struct job {
    explicit job(std::string_view its_id) : id(its_id) {}

    hook among_all;
    hook among_like;  ///< while it is ready or waiting: in the index of those
    const lease_name id;
    union {
      label_group* group = nullptr;  ///< of its labels, while it is not held; none before its terms
      held_count* held_by;           ///< while it is held
    };
    session* of = nullptr;  ///< that it is being offered to, or that counts it in `uses`
    protocol::instant submitted_at;
    protocol::row_number since;
    protocol::instant due;         ///< not_before or next_offer_at, the later one
    protocol::instant not_after;   ///< 0: no end
    std::uint32_t slot = no_slot;  ///< where `uses` of its session has it
    std::int16_t priority = 0;     ///< higher first
    place_of_job place = place_of_job::waiting;
    bool due_by_not_before = false;
  };
  struct by_id {
    using type = std::string_view;
    type operator()(const job& j) const noexcept { return j.id.view(); }
  };
  /// Best first: priority, then age, then id.
  struct by_rank {
    bool operator()(const job& x, const job& y) const noexcept;
  };
  struct by_due {
    bool operator()(const job& x, const job& y) const noexcept;
  };
  using among_all = boost::intrusive::member_hook<job, hook, &job::among_all>;
  using among_like = boost::intrusive::member_hook<job, hook, &job::among_like>;
  using job_map = boost::intrusive::set<job, among_all, boost::intrusive::key_of_value<by_id>,
                                        boost::intrusive::constant_time_size<false>>;
  using ready_jobs = boost::intrusive::set<job, among_like, boost::intrusive::compare<by_rank>,
                                           boost::intrusive::constant_time_size<false>>;
  using waiting_jobs = boost::intrusive::set<job, among_like, boost::intrusive::compare<by_due>>;
  struct label_group {
    const protocol::labels* wanted = nullptr;
    ready_jobs ready;
    std::int64_t jobs = 0;  ///< that point here
  };
  /// What was offered to a session and not seen closed takes one of its slots each.
  struct session {
    session_ptr ref;
    protocol::labels has;
    protocol::sequence sequence;
    std::int64_t slots = 0;
    std::vector<job*> uses;
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
  void offer(job& j, session& to);
  void cancel_late(job& j);
  [[nodiscard]] shard_operation operation_on(const job& j) const;
  /// Most live leases of the queue; 0: no limit.
  [[nodiscard]] std::int64_t limit() const;

  // ---- queue_jobs.cpp: the jobs and their places
  /// Null when there is none.
  [[nodiscard]] job* find(std::string_view id);
  [[nodiscard]] const job* find(std::string_view id) const;
  std::pair<job&, bool> find_or_make(std::string_view id);
  void erase(job& j);
  void place_job(job& j);
  void unplace(job& j);
  void set_terms(job& j, const job_ready& terms);
  void leave_group(job& j);
  [[nodiscard]] protocol::instant due(const job& j) const;
  void use(session& s, job& j);
  void use(session& s, const protocol::lease_id& lease);
  static void free_slot(job& j);
  static void keep_as_stray(job& j);

  context_ptr context_;
  options_ptr options_;
  place shard_;
  queue_key key_;
  job_map jobs_;  ///< its own: what leaves it is deleted
  holder_counts holders_;
  std::map<protocol::labels, label_group> groups_;
  std::set<label_group*> ready_;  ///< the groups with a job that is ready
  waiting_jobs waiting_;
  std::map<session_id, session> sessions_;
  session_id last_served_ = 0;
  std::int64_t taken_ = 0;     ///< jobs offering or held
  std::int64_t offering_ = 0;  ///< of those: asked for, not yet answered
  protocol::instant woken_at_;
};

}  // namespace leasehold::actors
