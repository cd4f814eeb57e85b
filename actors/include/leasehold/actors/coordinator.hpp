// The coordinator's entry: recovers from a store, spawns the actors on the threads it is given, and
// hands out a gateway for each. It starts no thread and opens nothing itself. docs/EMBEDDING.md is
// a whole program around it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/actors/dispatch.hpp"
#include "leasehold/actors/gateway.hpp"
#include "leasehold/actors/ports.hpp"
#include "leasehold/actors/store.hpp"

namespace leasehold::actors {

/// One thread that the coordinator may use: an actor_system and a timer. Either the actor_system
/// runs its actors on that thread alone, as the server's does, or its scheduler runs them on
/// workers of its own, as CAF's do: then a thread is no more than the place that shard_link posts
/// to. Several may share one actor_system.
struct thread_host {
  actor_system* system = nullptr;
  std::shared_ptr<actors::timer> timer;
};

/// What the coordinator dispatches cancels with (cancellation-dispatch.md). Without `make_token` it
/// dispatches nothing: their records wait for a dispatcher of another process.
struct dispatch_means {
  std::function<std::string()> make_token;  ///< 128 random bits as 32 hex digits; any thread
  /// Of stages beside the stream, which the coordinator serves itself.
  std::map<protocol::dispatch_stage, std::shared_ptr<execution_controller>> controllers;
  std::string host;  ///< of a process stage: this machine's boot id
  /// The tables could not be read or written (`why` says what), or can be again (`why` is empty).
  /// At most one call for each change and every ten seconds of trouble; any thread; may be empty.
  std::function<void(std::string_view why)> on_trouble;
};

struct coordinator_options {
  actor_options actors;
  std::shared_ptr<actors::store> store;
  std::shared_ptr<const actors::clock> clock;
  std::string clock_basis =
      "boot";                    ///< boot, wall or operator: how the clock went on at this start
  bool restored_backup = false;  ///< the store was restored: grants after the backup are unknown
  std::shared_ptr<shard_link> link;  ///< reaches the threads below by their index
  std::shared_ptr<actors::counters> counters;
  std::vector<thread_host> threads;
  std::function<std::string()> make_id;  ///< a job id nobody had before; any thread
  dispatch_means dispatch;
  lock_naming name_lock;  ///< of Acquire frames; empty: they are answered unsupported_frame
  /// The store took no write (`why` says what), or takes them again (`why` is empty). At most one
  /// call for each change and every ten seconds of trouble; any thread.
  std::function<void(std::string_view why)> on_store_trouble;
  /// Something broke that must end the process; any thread, at most a few times.
  std::function<void(std::string_view why)> on_fatal;
};

class coordinator {
 public:
  /// Blocks until everything is recovered and served; not called on one of the threads, unless the
  /// link runs what is posted to it at once.
  static store_result<std::unique_ptr<coordinator>> start(coordinator_options options);
  ~coordinator();
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  /// The gateway of a thread; used on that thread only, which is in functions that the link runs.
  [[nodiscard]] gateway& on(std::size_t thread) noexcept;

  /// Goes on with other bounds and cadences: what is asked from now on is measured by them. Each
  /// actor takes them between two messages. Any thread.
  void change(const actor_options& options);

  /// Writes a checkpoint, or cuts the log as far as the options let it, now instead of at the next
  /// interval. Any thread.
  void checkpoint();
  void cut_log();

  /// No offers and no dispatches any more; workers are told to finish or release by then. Any
  /// thread.
  void drain(protocol::instant release_by);

  /// Asks every actor of a thread to exit; called on that thread, once for each, after its sockets
  /// are closed. What was committed is told as far as somebody is left to hear it. The coordinator
  /// is destroyed after the actors have ended (`await_all_actors_done` of a stock actor_system).
  void exit_thread(std::size_t thread);

 private:
  struct parts;
  explicit coordinator(std::shared_ptr<parts> made);
  std::shared_ptr<parts> parts_;
};

}  // namespace leasehold::actors
