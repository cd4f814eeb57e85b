// What the actors say to each other: plain structs, moved from mailbox to mailbox. Grouped by who
// hears them. The way of a frame goes through them from top to bottom.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/actors/caf_compat.hpp"
#include "leasehold/actors/gateway.hpp"
#include "leasehold/actors/job.hpp"
#include "leasehold/actors/ports.hpp"
#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/codec.hpp"
#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/frame.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

/// Where a worker's session is.
struct session_ref {
  session_id epoch = 0;
  protocol::tenant_id tenant;
  protocol::holder holder;
  place where;
  std::shared_ptr<const principal> who;
  std::shared_ptr<std::atomic<bool>> gone;  ///< set once its socket is closed; any thread reads it
};
using session_ptr = std::shared_ptr<const session_ref>;

/// Names a queue in the whole coordinator.
struct queue_key {
  protocol::tenant_id tenant;
  std::string queue;
  friend auto operator<=>(const queue_key&, const queue_key&) = default;
};

// ---- to a connection
// -----------------------------------------------------------------------------

/// One WebSocket message, decoded, with the stamp of its ingress.
struct inbound_message {
  protocol::decoded_message<protocol::worker_frame> message;
  protocol::instant ingress;
};
struct socket_closed {};
/// The answers of one commit (or to frames that needed none), and pushes that became true with it.
struct outbound_frames {
  std::vector<protocol::coordinator_frame> frames;
  std::int64_t answered = 0;  ///< how many frames in flight this answers
};
struct session_superseded {};
struct session_claimed {};
/// What one shard knows about the leases that a holder had or claims to run.
struct leases_resumed {
  std::vector<protocol::lease_standing> standings;
  std::vector<std::string> queues;  ///< of each standing
  std::vector<protocol::lost_lease> lost;
};
/// The queue has no offer on its way to this session any more.
struct session_forgotten {};
struct heartbeat_due {};
struct hello_due {};
struct fence_passing {
  std::int64_t fence = 0;
  place back_to;
};
struct drain_session {
  protocol::instant release_by;
};

// ---- to a shard
// ----------------------------------------------------------------------------------

/// The frames of one lease from one message.
struct lease_frames {
  protocol::lease_key key;
  std::vector<protocol::event> frames;
};
struct shard_frames {
  session_ptr session;
  protocol::instant ingress;
  std::vector<lease_frames> leases;
};
/// An operation of a client, an operator, or the coordinator itself about one lease.
struct shard_operation {
  protocol::lease_key key;
  protocol::event what;
  protocol::instant ingress;
  std::shared_ptr<const job_spec> spec;   ///< submit
  std::shared_ptr<const lock_spec> lock;  ///< acquire
  session_ptr session;                    ///< offer: whom to; acquire by a frame: whose it is
  std::function<void(answer)> reply;      ///< empty: nobody waits; runs on `reply_thread`
  std::size_t reply_thread = 0;
  protocol::instant wait_until;  ///< acquire: in line for so long; 0: it does not wait
  std::function<bool()> gone;    ///< acquire: whether nobody waits any more
  bool has_waited = false;       ///< acquire: it stood in line
  bool tied = false;             ///< release: its holder did not ask for it
  bool may_create = false;       ///< submit
  bool reserved = false;         ///< it has taken its part of the tenant's limits
  bool repeats = false;          ///< acquire: its request has taken effect before
  std::int64_t most_locks = 0;   ///< acquire: that its principal may hold
  bool counted = false;          ///< acquire: it is counted as one that its principal holds
};
/// A worker says which process works on an attempt of its own.
struct process_named {
  session_ptr session;
  protocol::process_registration what;
  std::int64_t frame_id = 0;
  protocol::instant ingress;
};
/// The holder of an attempt is to be told of the cancel that a dispatch is about.
struct ask_holder {
  place back_to;
  std::int64_t ask = 0;
  protocol::lease_key key;
  protocol::generation gen;
};
/// Nobody waits any more for what the holder says.
struct stop_asking {
  protocol::lease_key key;
  std::int64_t ask = 0;
};
/// The process of an attempt is gone.
struct prove_gone {
  protocol::lease_key key;
  protocol::generation gen;
};
/// A holder has a new session: which of its leases live, and what became of those it runs.
struct resume_leases {
  session_ptr session;
  std::vector<protocol::running_lease> running;
};
struct shard_query {
  std::function<void(class shard_actor&)>
      ask;  ///< runs inside the shard's actor; reads committed state
};
/// A waiter of this session leaves the line: the one of this Acquire frame.
struct stop_waiting {
  protocol::lease_key key;
  session_ptr session;
  std::int64_t acquire = 0;  ///< the frame's id
};
/// A lock that was or is to be acquired lives as long as this generation of a job of the shard.
struct tie_lock {
  protocol::lease_key job;
  protocol::generation gen;
  protocol::lease_key lock;
  std::shared_ptr<shard_operation> acquire;  ///< goes on to the lock's shard; null: it is held
};
/// That generation has closed.
struct tie_closed {
  protocol::lease_key lock;
  protocol::job_id job;
  protocol::generation gen;
};
struct timer_fired {};
struct fence_expected {
  std::int64_t fence = 0;
  std::int64_t connections = 0;
};
struct fence_returned {
  std::int64_t fence = 0;
};
struct journal_answer {
  std::int64_t buffer = 0;
  store_result<committed> result;
};
/// What the store has of a lease over which there may be a conflict; `entry` as it was asked.
struct grant_answer {
  std::uint64_t entry = 0;
  store_result<stored_grant> result;
};
struct requests_answer {
  std::uint64_t entry = 0;
  store_result<std::vector<protocol::past_request>> result;
};
/// A queue wants to hear queue_wake at `at`.
struct wake_queue {
  queue_key queue;
  protocol::instant at;
};
struct collect_checkpoint {
  protocol::row_number upto;
};
/// A part that was given is durable; the next one may be made.
struct collect_more {};
/// The log is to be cut behind `upto`: every lease whose history begins at or before it gets a base
/// row.
struct write_bases {
  protocol::row_number upto;
};
/// The shard goes on with a sweep over its leases that it had left off for others.
struct sweep_on {};
/// Leases as the store had them at the start, already recovered.
struct loaded_lease {
  protocol::lease_key key;
  protocol::fold::lease_image image;
  bool changed = false;  ///< since the checkpoint
};
/// A lease that is known no more since this row; the checkpoint may still have it.
struct forgotten_lease {
  protocol::lease_key key;
  protocol::row_number row;
};
struct load_leases {
  std::vector<loaded_lease> leases;
  std::vector<forgotten_lease> forgotten;
  store_state state;
  std::vector<std::pair<protocol::policy_id, protocol::policy>> policies;
};

// ---- to a lease
// ----------------------------------------------------------------------------------

using refusals_seen = std::map<struct refusal_key, std::int64_t>;

/// A group to decide at one instant; its sender is told what became of it. The lease takes nothing
/// more until the shard, after the commit, sends the next one.
struct lease_work {
  std::uint64_t entry = 0;  ///< the shard's own mark for the lease
  protocol::instant stamp;
  protocol::instant fired_at;           ///< a deadline's work: when its timer fired; else 0
  std::vector<protocol::event> events;  ///< none: only what is due
  std::string attachment;               ///< submit, acquire: the job's or the lock's body
  protocol::tenant_id tenant;
  std::shared_ptr<const protocol::policy> policy;
  protocol::policy_id policy_id;
  std::shared_ptr<const protocol::policy> asked;  ///< acquire: that the grant is to have
  protocol::policy_id asked_id;
  protocol::generation floor;
  protocol::grant_record stored{};               ///< what a conflict is resolved by
  protocol::row_number last_row;                 ///< the lease's newest durable row
  protocol::row_number group_began;              ///< first row of the group committed last; 0: none
  std::shared_ptr<const refusals_seen> refused;  ///< of this minute; null: none
  std::vector<protocol::counted_frames> counted;  ///< to be written as counted rows
};
/// The commit of the last group failed: the record is again what it was before.
struct lease_undo {
  std::shared_ptr<const protocol::record> before;
};

// ---- to a queue (through the shard actor of its thread)
// --------------------------------------------

/// A job that may be offered from next_offer_at on; again after each generation that ended.
struct job_ready {
  protocol::lease_key key;
  std::shared_ptr<const job_spec> spec;
  protocol::row_number since;  ///< its submit row: age
  protocol::instant submitted_at;
  protocol::instant next_offer_at;
};
/// A generation is live: it takes a slot of its holder.
struct job_held {
  protocol::lease_key key;
  protocol::holder holder;
};
/// A generation ended: its slot is free.
struct job_closed {
  protocol::lease_key key;
};
/// The job will never be offered again.
struct job_gone {
  protocol::lease_key key;
};
/// The offer was refused, or its commit failed; perhaps later again.
struct job_not_offered {
  protocol::lease_key key;
  protocol::reason reason = protocol::reason::none;
  protocol::instant again_at;
};
struct session_credit {
  session_ptr session;
  protocol::labels has;
  protocol::sequence sequence;  ///< of the Credit frame; 0: none came yet
  std::int64_t slots = 0;
  std::vector<protocol::lease_id> held;  ///< what the connection has seen offered and not closed
};
struct session_gone {
  session_ptr session;
};
struct queue_wake {};
struct options_changed {
  options_ptr options;
};
struct queue_query {
  std::function<void(class queue_actor&)> ask;
};
using queue_event =
    std::variant<job_ready, job_held, job_closed, job_gone, job_not_offered, session_credit,
                 session_gone, queue_wake, options_changed, queue_query>;
struct for_queue {
  queue_key queue;
  queue_event what;
};

// ---- to the journal
// ------------------------------------------------------------------------------

struct append_rows {
  place back_to;
  std::int64_t buffer = 0;
  batch what;
};
struct ask_grant {
  place back_to;
  std::uint64_t entry = 0;
  protocol::lease_key key;
  protocol::row_number newest;
};
struct ask_requests {
  place back_to;
  std::uint64_t entry = 0;
  protocol::lease_key key;
  protocol::row_number newest;
  protocol::generation gen;
  protocol::instant since;
};
struct commit_done {
  place back_to;
  std::int64_t buffer = 0;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
  protocol::instant handed_over;
  store_result<committed> result;
};
struct checkpoint_part {
  place from;  ///< who has more of it, until the last
  std::vector<checkpoint_entry> changed;
  std::vector<protocol::lease_key> forgotten;
  protocol::row_number upto;
  bool last = false;  ///< of this shard actor
  store_state state;  ///< with the last part: the floors of this shard actor
};
/// Of one shard actor: whether every base row that was asked for is durable.
struct bases_written {
  protocol::row_number upto;
  bool all = false;
};
struct retention_due {};
/// What is done at intervals is asked for at once; nothing of it: the journal begins.
struct journal_now {
  bool checkpoint = false;
  bool retention = false;
};
/// A read for the coordinator itself failed.
struct read_failed {
  store_error error;
};
/// Where the log may be cut, and where it now begins.
struct cut_found {
  store_result<protocol::row_number> upto;
};
struct cut_done {
  store_result<protocol::row_number> anchor;
};
struct checkpoint_due {};
struct checkpoint_written {
  store_result<bool> result;
};
struct watch_rows {
  std::int64_t id = 0;
  std::size_t thread = 0;
  std::function<void(protocol::row_number)> on_rows;
};
struct unwatch_rows {
  std::int64_t id = 0;
};

// ---- to the registry
// -----------------------------------------------------------------------------

/// This session speaks for its holder from now on.
struct claim_holder {
  session_ptr session;
  worker_view view;
};
struct leave_holder {
  session_ptr session;
};
/// For the holder's session, whichever that is now.
struct push_to_holder {
  protocol::tenant_id tenant;
  protocol::holder holder;
  std::vector<protocol::coordinator_frame> frames;
};
/// The same, and who asks hears of it when there is no such session.
struct ask_to_push {
  push_to_holder what;
  place back_to;
  std::int64_t ask = 0;
};
struct registry_query {
  std::function<void(class registry_actor&)> ask;
};

// ---- to the dispatcher
// ---------------------------------------------------------------------------

/// Dispatches were opened, and are durable.
struct dispatches_opened {};
/// The holder acknowledged the cancel, or its attempt has ended.
struct holder_heard {
  std::int64_t ask = 0;
};
struct holder_absent {
  std::int64_t ask = 0;
};
struct holder_silent {
  std::int64_t ask = 0;
};
/// A controller is to act on a claim.
struct dispatch_act {
  dispatch_claimed claim;
  std::function<void(protocol::dispatch_result)> done;
};
/// Something of a supervisor or a runner, which run one thing after the other.
struct dispatch_turn {
  std::function<void()> what;
};
struct dispatch_timer_due {
  std::size_t which = 0;
  std::int64_t arming = 0;
};
/// What was found to have exited.
struct exited_found {
  store_result<std::vector<protocol::dispatch_record>> records;
};
/// Nothing is dispatched here any more.
struct dispatch_no_more {};

}  // namespace leasehold::actors

LEASEHOLD_MESSAGE(leasehold::actors::inbound_message)
LEASEHOLD_MESSAGE(leasehold::actors::socket_closed)
LEASEHOLD_MESSAGE(leasehold::actors::outbound_frames)
LEASEHOLD_MESSAGE(leasehold::actors::session_superseded)
LEASEHOLD_MESSAGE(leasehold::actors::session_claimed)
LEASEHOLD_MESSAGE(leasehold::actors::leases_resumed)
LEASEHOLD_MESSAGE(leasehold::actors::session_forgotten)
LEASEHOLD_MESSAGE(leasehold::actors::heartbeat_due)
LEASEHOLD_MESSAGE(leasehold::actors::hello_due)
LEASEHOLD_MESSAGE(leasehold::actors::fence_passing)
LEASEHOLD_MESSAGE(leasehold::actors::drain_session)
LEASEHOLD_MESSAGE(leasehold::actors::shard_frames)
LEASEHOLD_MESSAGE(leasehold::actors::shard_operation)
LEASEHOLD_MESSAGE(leasehold::actors::process_named)
LEASEHOLD_MESSAGE(leasehold::actors::ask_holder)
LEASEHOLD_MESSAGE(leasehold::actors::stop_asking)
LEASEHOLD_MESSAGE(leasehold::actors::prove_gone)
LEASEHOLD_MESSAGE(leasehold::actors::resume_leases)
LEASEHOLD_MESSAGE(leasehold::actors::shard_query)
LEASEHOLD_MESSAGE(leasehold::actors::stop_waiting)
LEASEHOLD_MESSAGE(leasehold::actors::tie_lock)
LEASEHOLD_MESSAGE(leasehold::actors::tie_closed)
LEASEHOLD_MESSAGE(leasehold::actors::timer_fired)
LEASEHOLD_MESSAGE(leasehold::actors::fence_expected)
LEASEHOLD_MESSAGE(leasehold::actors::fence_returned)
LEASEHOLD_MESSAGE(leasehold::actors::journal_answer)
LEASEHOLD_MESSAGE(leasehold::actors::grant_answer)
LEASEHOLD_MESSAGE(leasehold::actors::requests_answer)
LEASEHOLD_MESSAGE(leasehold::actors::wake_queue)
LEASEHOLD_MESSAGE(leasehold::actors::collect_checkpoint)
LEASEHOLD_MESSAGE(leasehold::actors::collect_more)
LEASEHOLD_MESSAGE(leasehold::actors::write_bases)
LEASEHOLD_MESSAGE(leasehold::actors::sweep_on)
LEASEHOLD_MESSAGE(leasehold::actors::load_leases)
LEASEHOLD_MESSAGE(leasehold::actors::lease_work)
LEASEHOLD_MESSAGE(leasehold::actors::lease_undo)
LEASEHOLD_MESSAGE(leasehold::actors::for_queue)
LEASEHOLD_MESSAGE(leasehold::actors::queue_event)
LEASEHOLD_MESSAGE(leasehold::actors::options_changed)
LEASEHOLD_MESSAGE(leasehold::actors::append_rows)
LEASEHOLD_MESSAGE(leasehold::actors::ask_grant)
LEASEHOLD_MESSAGE(leasehold::actors::ask_requests)
LEASEHOLD_MESSAGE(leasehold::actors::commit_done)
LEASEHOLD_MESSAGE(leasehold::actors::checkpoint_part)
LEASEHOLD_MESSAGE(leasehold::actors::bases_written)
LEASEHOLD_MESSAGE(leasehold::actors::retention_due)
LEASEHOLD_MESSAGE(leasehold::actors::journal_now)
LEASEHOLD_MESSAGE(leasehold::actors::read_failed)
LEASEHOLD_MESSAGE(leasehold::actors::cut_found)
LEASEHOLD_MESSAGE(leasehold::actors::cut_done)
LEASEHOLD_MESSAGE(leasehold::actors::checkpoint_due)
LEASEHOLD_MESSAGE(leasehold::actors::checkpoint_written)
LEASEHOLD_MESSAGE(leasehold::actors::watch_rows)
LEASEHOLD_MESSAGE(leasehold::actors::unwatch_rows)
LEASEHOLD_MESSAGE(leasehold::actors::claim_holder)
LEASEHOLD_MESSAGE(leasehold::actors::leave_holder)
LEASEHOLD_MESSAGE(leasehold::actors::push_to_holder)
LEASEHOLD_MESSAGE(leasehold::actors::registry_query)
LEASEHOLD_MESSAGE(leasehold::actors::ask_to_push)
LEASEHOLD_MESSAGE(leasehold::actors::dispatches_opened)
LEASEHOLD_MESSAGE(leasehold::actors::holder_heard)
LEASEHOLD_MESSAGE(leasehold::actors::holder_absent)
LEASEHOLD_MESSAGE(leasehold::actors::holder_silent)
LEASEHOLD_MESSAGE(leasehold::actors::dispatch_act)
LEASEHOLD_MESSAGE(leasehold::actors::dispatch_turn)
LEASEHOLD_MESSAGE(leasehold::actors::dispatch_timer_due)
LEASEHOLD_MESSAGE(leasehold::actors::exited_found)
LEASEHOLD_MESSAGE(leasehold::actors::dispatch_no_more)
