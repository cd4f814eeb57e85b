// The actor of one thread that serves the store's shards of that thread: it knows every lease
// there, resting or as an actor, keeps events of one lease apart in the order of their stamps,
// fills the commit buffer, and tells the world what became true.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/deadline_index.hpp"
#include "actors/lease_actor.hpp"
#include "actors/lease_table.hpp"
#include "actors/lock_line.hpp"
#include "actors/older_requests.hpp"
#include "leasehold/actors/messages.hpp"

namespace leasehold::actors {

/// Whether the group is an acquire that was accepted.
inline bool is_granted(const decision_group& out) {
  return !out.answers.empty() && out.answers.front().kind == protocol::event_kind::acquire &&
         out.answers.front().decision == protocol::decision::accepted;
}

/// Whether the group is the offer of a job to a session.
inline bool is_offer(const event_group& group) {
  return group.operation && group.operation->what.kind == protocol::event_kind::offer;
}

/// What the record remembers of a request; null: nothing.
const protocol::remembered_request* remembered(const protocol::record& r,
                                               const protocol::request_id& id);

/// The job that a request names by itself. A job with a name of its own is noted there, too, so
/// that a request is known wherever its job lives.
protocol::lease_key job_of_request(const protocol::tenant_id& tenant,
                                   const protocol::request_id& request);

class shard_actor final : public coordinator_actor {
 public:
  shard_actor(caf::actor_config& config, context_ptr context);
  ~shard_actor() override;

  // ---- for shard_query: committed state, read inside this actor
  [[nodiscard]] const lease_entry* find(const protocol::lease_key& key) const;
  /// The jobs of a tenant after `after` in order of their ids, as long as `take` wants more.
  void each_job(const protocol::tenant_id& tenant, const std::string& after,
                const std::function<bool(const lease_entry&)>& take) const;
  /// The queues of a tenant that live on this thread.
  [[nodiscard]] std::vector<std::string> queues_of(const protocol::tenant_id& tenant) const;
  [[nodiscard]] lease_view view_of(const lease_entry& entry) const;
  [[nodiscard]] const thread_context& context() const noexcept { return *context_; }
  /// The locks of a tenant after `after` in order of their lease ids, as long as `take` wants more.
  void each_lock(const protocol::tenant_id& tenant, const std::string& after,
                 const std::function<bool(const lease_entry&)>& take) const;
  [[nodiscard]] fence_view fence_of(const protocol::lease_key& key) const;
  using view_reply = std::function<void(std::optional<lease_view>)>;
  using record_test = std::function<bool(const protocol::record&)>;
  /// Calls `then` once the record is as `wanted` or `until` has come.
  void await(const protocol::lease_key& key, protocol::instant until, record_test wanted,
             view_reply then);

  /// Forwards a submit that names its job, unless its request was used for another job.
  void claim_request(shard_operation& operation);
  /// Notes what a job was submitted with, or that it came to nothing.
  void note_request(const protocol::lease_key& by_request, const protocol::lease_id& job);
  void drop_request(const protocol::lease_key& by_request, const protocol::lease_id& job);

 protected:
  actor_behavior make_behavior() override;
  void on_exit() override;
  void broken(const std::exception_ptr& what) override;

 private:
  // ---- shard_actor.cpp: what comes in
  void take_frames(shard_frames& message);
  void take_operation(shard_operation& operation);
  void change(const options_changed& message);
  void resume_each(resume_leases& message);
  /// Null: it is no job.
  [[nodiscard]] std::shared_ptr<const job_spec> spec_of(const lease_facts& facts) const;
  [[nodiscard]] std::shared_ptr<const protocol::policy> policy_of(protocol::policy_id id) const;
  [[nodiscard]] const std::string* kept_name(const std::string& name);
  /// Null: it is no lock.
  [[nodiscard]] std::shared_ptr<const lock_spec> lock_of(const lease_facts& facts) const;
  void refuse(const shard_operation& operation, protocol::reason why);
  /// Whether the principal may use the queue or the program that the lease is of.
  static bool may_use(const principal& who, const lease_entry& entry);
  /// Answers frames of a principal that may not use the lease; it is not touched.
  void forbid(const session_ptr& session, const lease_frames& lease);
  /// Lets go of the request of a submit that came to nothing.
  void release_request(const shard_operation& operation) const;
  /// The job that its request would name, where it has another name.
  static std::optional<protocol::lease_key> request_of(const protocol::lease_key& job,
                                                       const job_spec& spec);
  bool refuse_submit(shard_operation& operation, const lease_entry* known);
  /// Takes a new lease's part of the tenant's limits; it is given back when nothing came of it.
  bool reserve(shard_operation& operation);
  void give_back(shard_operation& operation);
  std::atomic<std::int64_t>& leases_of(const protocol::tenant_id& tenant);

  // ---- shard_locks.cpp: locks, those who wait in line for them, and what they are tied to
  void take_acquire(shard_operation& operation);
  void enqueue_operation(lease_entry& entry, shard_operation operation);
  [[nodiscard]] static bool must_wait(const lease_entry& entry, const protocol::record* state,
                                      const shard_operation& operation);
  /// The line of a lock of which it is not known who has it now, or will have it; null: it is.
  lock_line* undecided_line(const lease_entry& entry, protocol::instant now);
  /// False: it was refused, for its principal holds as many locks as it may.
  bool judge_acquire(lease_entry& entry, shard_operation operation);
  /// The same for one that had to wait until now.
  bool let_through(lease_entry& entry, shard_operation operation);
  /// The locks that the holder's principal holds, over all threads.
  std::atomic<std::int64_t>& locks_of(const protocol::tenant_id& tenant,
                                      const protocol::holder& holder);
  void uncount(shard_operation& operation);
  /// Counts the lock for whom it has come to, and no more for whom it has left.
  void follow_lock(const lease_entry& entry, const protocol::record& before);
  void join_line(lease_entry& entry, shard_operation& operation);
  void wake_line(lease_entry& entry);
  void drop_waiters(const std::vector<lock_line::waiter>& gone);
  void let_pass(lease_entry& entry, lock_line& line);
  void end_line_if_empty(lease_entry& entry);
  /// The request has taken effect: whoever else waits under it is answered, too.
  void answer_copies(lease_entry& entry, const protocol::request_id& request);
  void wake_line_at(std::uint64_t mark, protocol::instant at);
  void end_wait(std::uint64_t mark, std::uint64_t number);
  void leave_line(const stop_waiting& message);
  void lock_granted(lease_entry& entry, const lock_spec& spec);
  void name_lock(lease_entry& entry, const lock_spec& spec);
  void take_tie(tie_lock& message);
  void close_ties(const lease_entry& entry, const protocol::record& before);
  void end_tied_lock(const tie_closed& message);
  /// `granted`: the generation that the request was answered with; 0: none.
  void answer_request(const lease_entry& entry, const shard_operation& operation,
                      const frame_answer& said, protocol::duration retry,
                      protocol::generation granted);

  // ---- shard_requests.cpp: a request that came before
  /// Answers a request that took effect so long ago that its lease's record has forgotten it.
  bool answer_old_request(shard_operation& operation);
  /// True: the operation waits until the log has told which requests it knows.
  bool asks_log(shard_operation& operation);
  void requests_read(const requests_answer& said);

  // ---- shard_checkpoint.cpp: from the store, and to it
  void load(load_leases& message);
  void load_one(loaded_lease& stored);
  void collect(const collect_checkpoint& message);
  void collect_part();
  /// Both collect records up to a part's size, and say whether those were the last.
  bool collect_in_order(std::vector<checkpoint_entry>& out);
  bool collect_marked(std::vector<checkpoint_entry>& out);
  static void collect_one(lease_entry& entry, std::vector<checkpoint_entry>& out);
  static protocol::fold::lease_image image_of(const lease_entry& entry);
  void mark_changed(lease_entry& entry);

  // ---- shard_groups.cpp: from a group to its commit
  void enqueue_group(lease_entry& entry, event_group group);
  void start_next(lease_entry& entry);
  void start(lease_entry& entry, event_group group);
  [[nodiscard]] bool needs_grant(const awake_lease& lease, const event_group& group) const;
  void grant_read(const grant_answer& said);
  void decide(lease_entry& entry, event_group group, protocol::grant_record stored);
  void decided(lease_decided& message);
  void end_of_turn(std::uint64_t turn);
  void flush();
  void journal_said(journal_answer& message);
  /// Answers the group that is being decided as if it had never come.
  void turn_away(lease_entry& entry, protocol::reason why);
  void rest_or_forget(lease_entry& entry);
  void budget(const lease_entry& entry, const event_group& group, const decision_group& out);
  void close_refusal_windows();
  void begin_turn();

  // ---- shard_effects.cpp: what follows once it is durable
  struct buffered {
    std::uint64_t mark = 0;
    decision_group group;
  };
  void commit(lease_entry& entry, decision_group& group, protocol::row_number first);
  void answer_frames(const awake_lease& lease, const event_group& group, const decision_group& out);
  void answer_operation(lease_entry& entry, const event_group& group, const decision_group& out,
                        const protocol::record& before);
  void tell_holder(lease_entry& entry, const protocol::record& before, const event_group& group,
                   const decision_group& out);
  void tell_queue(lease_entry& entry, const protocol::record& before);
  void follow_holder(lease_entry& entry, const protocol::record& before);
  void queue_for(const lease_entry& entry, queue_event what);
  void push(const protocol::tenant_id& tenant, const protocol::holder& to,
            protocol::coordinator_frame frame);
  void answer_to(const session_ptr& session, protocol::coordinator_frame frame,
                 std::int64_t answered);
  void send_answers();

  // ---- shard_dispatch.cpp: what a cancel means for those who make work stop
  void note_dispatch(const lease_entry& entry, const decision_group& decided);
  void take_process(process_named& message);
  /// Why a process of this generation is not to be known; none: it is.
  [[nodiscard]] static protocol::reason why_not_known(const protocol::record& r,
                                                      const process_named& message);
  void answer_process(const process_named& message, protocol::decision what,
                      protocol::reason why);
  void ask_the_holder(const ask_holder& message);
  void no_more_asking(const stop_asking& message);
  /// Tells those who wait for the holder's word what a group has brought; null: it was judged.
  void hear_holder(const lease_entry& entry, const event_group& group, const decision_group& out);
  void take_proof(const prove_gone& message);

  // ---- shard_history.cpp: base rows, and forgetting
  void base_all(const write_bases& message);
  void forget_old();
  void sweep();
  void ask_to_sweep();
  bool look_at(lease_entry& entry);
  void write_history(lease_entry& entry, event_group group);
  [[nodiscard]] bool is_wanted(const lease_entry& entry, history_row what) const;
  void history_durable(lease_entry& entry, protocol::row_number row);
  void history_failed(lease_entry& entry);
  void based(bool well);
  void forget(lease_entry& entry, protocol::row_number row);

  // ---- shard_time.cpp: deadlines behind frames
  void note_deadline(lease_entry& entry);
  void timer_said();
  void raise_fence();
  void fence_progress();
  void fence_complete();
  void fire_due();
  void arm_timer();
  void alarm_at(protocol::instant at, std::function<void()> what);
  [[nodiscard]] bool blocked_by_fence(const awake_lease& lease, const event_group& group) const;

  context_ptr context_;
  options_ptr options_;
  place self_;
  lease_table leases_;
  std::vector<std::uint64_t> changed_;  ///< marks, since the last checkpoint
  struct collecting {
    protocol::row_number upto;  ///< 0: no checkpoint is on its way here
    std::vector<std::uint64_t> marks;
    std::size_t next = 0;
    bool in_order = false;      ///< of their keys; `marks` is empty then
    protocol::lease_key after;  ///< looked at up to here
  };
  collecting collecting_;
  std::set<std::string> names_;  ///< of queues and programs, that entries point to
  std::unordered_map<std::string, std::vector<std::uint64_t>> held_;  ///< live, by tenant/holder
  std::map<protocol::policy_id, std::shared_ptr<const protocol::policy>> policies_;
  std::set<protocol::policy_id> logged_policies_;  ///< durable, or in a buffer on its way
  std::map<queue_key, actor_handle> queues_;
  std::map<protocol::tenant_id, std::shared_ptr<std::atomic<std::int64_t>>> leases_of_tenant_;
  /// By tenant, a line feed and the principal.
  std::map<std::string, std::shared_ptr<std::atomic<std::int64_t>>> locks_of_principal_;
  std::vector<protocol::generation> floors_;  ///< by store shard

  // The commit buffer, and the buffers on their way to disk.
  std::vector<buffered> buffer_;
  std::size_t buffer_bytes_ = 0;
  std::vector<std::pair<protocol::policy_id, protocol::policy>> buffer_policies_;
  std::vector<protocol::dispatch_change> buffer_dispatches_;
  std::vector<process_named> buffer_processes_;  ///< to be answered once they are durable
  struct flying_buffer {
    std::vector<buffered> groups;
    std::vector<protocol::policy_id> policies;
    std::vector<process_named> processes;
    bool opens = false;  ///< it has dispatches that may be claimed
  };
  std::map<std::int64_t, flying_buffer> flying_;
  std::int64_t next_buffer_ = 1;
  std::deque<std::int64_t> open_turns_;  ///< groups that each turn still waits for
  std::uint64_t first_turn_ = 0;         ///< of open_turns_.front()

  struct outgoing {
    session_ptr session;
    outbound_frames frames;
  };
  std::vector<outgoing> answers_;                              ///< of the commit that is being told
  std::vector<std::pair<std::size_t, for_queue>> queue_news_;  ///< of the same, by thread

  refusal_budget refusals_;
  older_requests older_requests_;
  std::map<std::uint64_t, std::vector<shard_operation>> awaiting_log_;  ///< by mark
  /// Jobs with a name of their own by the job that their request would name.
  std::map<protocol::lease_key, protocol::lease_id> requests_;

  // History. A sweep goes over all leases in the order of their keys, some at a time.
  struct sweep_state {
    bool running = false;
    bool asked = false;   ///< it will go on by itself
    bool base = false;    ///< looks for leases that need a base row
    bool forget = false;  ///< looks for leases to be forgotten
    protocol::lease_key after;
  };
  sweep_state sweep_;
  protocol::row_number base_upto_;  ///< of the base rows that are being written; 0: none
  std::int64_t bases_open_ = 0;     ///< on their way
  bool bases_failed_ = false;
  std::vector<forgotten_lease> forgotten_;  ///< since the last checkpoint

  // Time.
  deadline_index index_;
  std::multimap<protocol::instant, std::function<void()>> alarms_;
  protocol::instant armed_for_;
  protocol::instant fenced_until_;  ///< every frame read before it has been taken
  protocol::instant fence_time_;    ///< of the fence on its way; 0: none
  std::int64_t fence_ = 0;
  std::size_t fence_threads_ = 0;  ///< that have said how many connections they asked
  std::int64_t fence_open_ = 0;    ///< connections asked and not back
  std::unordered_set<std::uint64_t> fence_blocked_;
  struct record_waiter {
    record_test wanted;
    view_reply then;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, record_waiter>
      record_waiters_;  ///< by (mark, number of the waiter)
  std::uint64_t next_waiter_ = 0;

  /// Those who wait for one lock, first come first served. It is gone with the last of them.
  std::map<std::uint64_t, lock_line> lines_;  ///< by mark
  struct tied_lock {
    protocol::generation gen;
    protocol::lease_key lock;
  };
  std::map<std::uint64_t, std::vector<tied_lock>> ties_;  ///< by the mark of the job
  /// A dispatcher that waits for the word of a holder.
  struct holder_waiter {
    std::int64_t ask = 0;
    place back_to;
    protocol::generation gen;
    protocol::holder holder;
  };
  std::map<std::uint64_t, std::vector<holder_waiter>> holder_waiters_;  ///< by mark
  std::vector<tie_lock> early_ties_;                      ///< came before the leases were loaded
  bool loaded_ = false;
};

}  // namespace leasehold::actors
