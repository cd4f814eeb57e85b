// What the actors ask of the world around them: a clock, a timer, a way to other threads. The
// server, the simulator and an embedder each bring their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/actors/caf_compat.hpp"
#include "leasehold/actors/counters.hpp"
#include "leasehold/actors/dispatch.hpp"
#include "leasehold/actors/lock.hpp"
#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::actors {

/// The coordinator's clock (protocol.md 3): counts suspend, is not moved by a step of the wall
/// clock, never runs backwards. Read from any thread.
class clock {
 public:
  virtual ~clock() = default;
  [[nodiscard]] virtual protocol::instant now() const = 0;
  /// Ties `now` to the machine's clocks; stored with each batch.
  [[nodiscard]] virtual clock_anchor anchor() const = 0;
};

/// One timer of one thread. Arming it again replaces what it was armed for. It is called by one
/// actor, one call after the other, from whatever thread runs that actor.
class timer {
 public:
  virtual ~timer() = default;
  /// `due` runs once at or soon after `at`, on any thread, but not inside the call: it only sends a
  /// message. That it runs though it was replaced meanwhile does no harm.
  virtual void arm(protocol::instant at, std::function<void()> due) = 0;
  virtual void disarm() = 0;
};

/// The way between the threads that the shards share out, and the way onto a thread from anywhere.
/// To the coordinator a thread is a place where one thing happens after the other: what is posted
/// to it runs one at a time, sees what ran there before, and comes in the order in which each
/// caller posted it. Whether that is one thread of the machine does not matter.
class shard_link {
 public:
  virtual ~shard_link() = default;
  /// Called from any thread. `what` does not block; a link of several threads, or on a scheduler
  /// with several workers, does not run it inside the call.
  virtual void post(std::size_t thread, std::function<void()> what) = 0;
};

/// An actor and the thread that it lives on.
struct place {
  std::size_t thread = 0;
  actor_handle who;
};

/// Bounds and cadences of the actors, as the operator set them.
struct actor_options {
  std::int64_t frames_in_flight = 1024;  ///< per session; over it the socket is not read
  protocol::duration hello_timeout{5000};
  protocol::duration heartbeat_interval{10000};
  protocol::duration max_expiry_lag{5000};  ///< how long a deadline waits for its fences
  protocol::duration store_retry{1000};  ///< a deadline whose commit failed fires again after this
  protocol::duration checkpoint_interval{1000};
  protocol::duration retention{0};  ///< rows younger than this stay in the log; 0: all stay
  protocol::duration forget_after{
      0};  ///< a settled job or idle lock is known that long; 0: for ever
  protocol::duration retention_check{60'000};  ///< how often both are looked at
  std::int64_t message_bytes = std::int64_t{64} * 1024;
  std::size_t commit_bytes =
      std::size_t{256} * 1024;                 ///< a shard's commit buffer is handed over past this
  std::int64_t leases_per_tenant = 1'000'000;  ///< over all threads
  std::int64_t payload_bytes = 256LL * 1024 * 1024;  ///< of all jobs over all threads
  std::size_t waiting_groups = 4096;         ///< of one lease; over it operations are refused
  std::size_t waiters_per_lock = 16384;      ///< in line for one lock
  protocol::duration longest_wait{600'000};  ///< for a lock
  protocol::policy lock_policy;              ///< of locks whose acquirer names no other
  std::map<std::string, std::int64_t> queue_limits;  ///< most live leases of a queue; absent: none
  std::string node = "leaseholdd";
  // Of cancellation dispatch; read at the start alone, but for the window.
  dispatch_profile dispatch;
  protocol::dispatch_pace dispatch_pace;
  protocol::duration ack_window{2'000};  ///< in which a holder acknowledges a cancel; below the claim
};

/// Options are never changed, only replaced: each actor keeps those that it was told last.
using options_ptr = std::shared_ptr<const actor_options>;

class usage;

/// What the actors of one thread share by value or by port; made before the first of them and
/// constant from the first message on, so that actors of one thread may run side by side.
struct thread_context {
  std::size_t thread = 0;
  std::size_t threads = 1;
  options_ptr options;  ///< of the start; `coordinator::change` tells newer ones by message
  std::shared_ptr<actors::usage> usage;  ///< one for all threads
  protocol::instant grants_from;         ///< after a restore nothing is granted before
  std::shared_ptr<const actors::clock> clock;
  std::shared_ptr<actors::timer> timer;
  std::shared_ptr<shard_link> link;
  lock_naming name_lock;  ///< empty: the stream takes no Acquire
  std::shared_ptr<actors::counters> counters;
  std::vector<place> shards;  ///< by thread
  place journal;
  place registry;
  place dispatcher;                      ///< nobody: nothing is dispatched here
  bool keeps_dispatches = true;          ///< the store has the tables
  /// Sends a fence through the connections of the calling thread that may have frames on their way,
  /// and tells `back_to` how many it asked. Called on the thread that it is about.
  std::function<void(std::size_t thread, std::int64_t fence, const place& back_to)> pass_fence;
  /// A connection of this thread has nothing more to do; called there, once.
  std::function<void(std::int64_t session)> connection_done;
  /// The store took no write, or takes them again (empty). May be empty itself.
  std::function<void(std::string_view why)> on_store_trouble;
  /// Something that the process must not survive: it stops and recovers from the store.
  std::function<void(std::string_view why)> on_fatal;

  /// Which thread serves a lease: its store shard (64 of them) modulo the threads.
  [[nodiscard]] std::size_t thread_of(const protocol::lease_key& key) const;
  /// The shard actor that serves a lease.
  [[nodiscard]] const place& shard_for(const protocol::lease_key& key) const {
    return shards[thread_of(key)];
  }
  /// Which thread a queue lives on.
  [[nodiscard]] std::size_t thread_of_queue(const protocol::tenant_id& tenant,
                                            const std::string& queue) const;
};
using context_ptr = std::shared_ptr<const thread_context>;

/// Sends to an actor wherever it lives. Messages from one actor to another keep their order.
template <class Message>
void tell(const thread_context& from, const place& to, Message message) {
  if (to.thread == from.thread) {
    tell(to.who, std::move(message));
    return;
  }
  from.link->post(to.thread, [who = to.who, message = std::move(message)]() mutable {
    tell(who, std::move(message));
  });
}

/// The same, ahead of what waits in the receiver's mailbox: for what needs no order and would come
/// too late behind thousands of frames.
template <class Message>
void tell_first(const thread_context& from, const place& to, Message message) {
  if (to.thread == from.thread) {
    tell_first(to.who, std::move(message));
    return;
  }
  from.link->post(to.thread, [who = to.who, message = std::move(message)]() mutable {
    tell_first(who, std::move(message));
  });
}

}  // namespace leasehold::actors
