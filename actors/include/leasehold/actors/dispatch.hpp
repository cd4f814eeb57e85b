// One claim's work, a bounded cycle of claims, and the timer that repeats it
// (cancellation-dispatch.md, Act, Supervisor, Lifecycle runner).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/actors/dispatch_store.hpp"
#include "leasehold/protocol/dispatch.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::actors {

/// Makes the work of one claimed attempt stop, or asks it to.
class execution_controller {
 public:
  virtual ~execution_controller() = default;
  /// Never blocks and calls `done` exactly once, from any thread, before the claim expires. One
  /// that destroys `done` instead has nothing to report: the claim runs out and is taken again.
  virtual void act(const dispatch_claimed& claim,
                   std::function<void(protocol::dispatch_result)> done) = 0;
};

/// Runs something later, one after the other: an actor's mailbox, or a loop of one thread.
using dispatch_strand = std::function<void(std::function<void()>)>;

struct dispatch_supervisor_options {
  std::shared_ptr<dispatch_store> store;
  std::map<protocol::dispatch_stage, std::shared_ptr<execution_controller>> controllers;
  protocol::dispatch_stage stage = protocol::dispatch_stage::stream;
  std::string host;   ///< of a process stage: this machine's boot id
  std::string owner;  ///< names this dispatcher in its claims; at most 128 bytes
  std::function<std::string()> make_token;  ///< 128 random bits in hex
  dispatch_strand strand;                   ///< everything below runs on it
  protocol::dispatch_pace pace;
  std::size_t page = 32;        ///< 1 to 64
  std::size_t cycle_pages = 4;  ///< 1 to 64
};

/// What one cycle did.
struct dispatch_cycle {
  std::int64_t seen = 0;
  std::int64_t claimed = 0;
  std::int64_t reported = 0;
  bool more = false;  ///< it ended at its bound: others wait
  std::map<protocol::dispatch_result, std::int64_t> results;
  std::optional<store_error> error;  ///< the cycle ended with it
};

/// Has no timer and no thread of its own. Fails closed: a page over its limit, without the cursor
/// that it needs, or whose cursor does not move ends the cycle with an error and nobody is called.
class dispatch_supervisor {
 public:
  explicit dispatch_supervisor(dispatch_supervisor_options options);
  ~dispatch_supervisor();
  dispatch_supervisor(const dispatch_supervisor&) = delete;
  dispatch_supervisor& operator=(const dispatch_supervisor&) = delete;
  /// One bounded cycle; `done` later, on the strand. Called there, not while one runs.
  void run_cycle(std::function<void(dispatch_cycle)> done);
  /// For the timer of somebody who has one: while a cycle runs, what controllers have answered so
  /// far is reported, and those whose claims are over are waited for no longer; they count as
  /// nothing. On the strand.
  void look_after();
  /// The running cycle claims no further page, and reports each answer as it comes. On the strand.
  void end_early();

 private:
  struct parts;
  std::shared_ptr<parts> parts_;
};

/// How often, and how much at once.
struct dispatch_profile {
  protocol::duration cadence{1'000};
  std::size_t page = 32;
  std::size_t cycle_pages = 4;
  protocol::duration stop_wait{5'000};  ///< how long stop waits for a running cycle
};
/// edge (slow, serial, SQLite), standalone or cluster; nothing for another word.
std::optional<dispatch_profile> dispatch_profile_of(std::string_view name);

class timer;
class clock;

struct dispatch_runner_options {
  std::shared_ptr<dispatch_supervisor> supervisor;
  dispatch_profile profile;
  std::shared_ptr<actors::timer> timer;
  std::shared_ptr<const actors::clock> clock;
  dispatch_strand strand;
  std::function<void(const dispatch_cycle&)> on_cycle;  ///< bounded diagnostics; errors included
};

/// Arms one timer; the next cycle is armed only after the last has ended. Everything is called on
/// the strand.
class dispatch_runner {
 public:
  explicit dispatch_runner(dispatch_runner_options options);
  ~dispatch_runner();
  dispatch_runner(const dispatch_runner&) = delete;
  dispatch_runner& operator=(const dispatch_runner&) = delete;
  /// False, and nothing happens: it runs already, or a cycle from before a stop has not ended.
  bool start();
  /// Runs a cycle soon, because something was written that may be claimed.
  void hurry();
  /// Disarms at once. `done` runs once the running cycle has ended, or its bound has passed: true
  /// when it has ended. The old cycle arms nothing.
  void stop(std::function<void(bool)> done);

 private:
  struct parts;
  std::shared_ptr<parts> parts_;
};

}  // namespace leasehold::actors
