// CAF's scheduler on the Asio loop of one thread: sockets and actors of a thread take turns on it,
// with no lock and no wake-up between them. Loaded into an actor_system through loop_config.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/detail/simple_actor_clock.hpp>
#include <caf/execution_unit.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <cstddef>
#include <deque>
#include <thread>

namespace leasehold::server {

/// How long actors may keep the loop before sockets are served again.
struct turn_limits {
  std::size_t actors = 128;             ///< run in one turn, at least 1
  std::size_t messages_per_actor = 32;  ///< taken by one actor in a turn, at least 1
};

/// Configures an actor_system that lives on `loop`. The actor_system is made, used and destroyed on
/// the one thread that runs the loop, and the loop outlives it.
class loop_config : public caf::actor_system_config {
 public:
  explicit loop_config(boost::asio::io_context& loop, turn_limits limits = {});

  [[nodiscard]] boost::asio::io_context& loop() const noexcept { return loop_; }
  [[nodiscard]] turn_limits limits() const noexcept { return limits_; }

 private:
  boost::asio::io_context& loop_;
  turn_limits limits_;
};

/// Delayed messages and timeouts of actors, on one Asio timer that is armed for the earliest.
/// Nothing that counts against a lease uses it: steady_clock stands still while the machine is
/// suspended.
class asio_actor_clock : public caf::detail::simple_actor_clock {
 public:
  explicit asio_actor_clock(boost::asio::io_context& loop) : timer_(loop) {}

  void set_ordinary_timeout(time_point when, caf::abstract_actor* who, caf::atom_value what,
                            std::uint64_t number) override;
  void set_multi_timeout(time_point when, caf::abstract_actor* who, caf::atom_value what,
                         std::uint64_t number) override;
  void set_request_timeout(time_point when, caf::abstract_actor* who,
                           caf::message_id request) override;
  void schedule_message(time_point when, caf::strong_actor_ptr to,
                        caf::mailbox_element_ptr content) override;
  void schedule_message(time_point when, caf::group to, caf::strong_actor_ptr from,
                        caf::message content) override;

  /// Forgets all that waits. Nothing may be scheduled afterwards.
  void close();

 private:
  using simple = caf::detail::simple_actor_clock;
  void arm();

  boost::asio::steady_timer timer_;
  bool armed_ = false;
  time_point armed_for_;
};

/// Runs the actors of one actor_system on the loop, a bounded number in each turn of it. An actor
/// that another thread wakes is posted to the loop; so are all hand-overs that ThreadSanitizer must
/// see.
class asio_scheduler : public caf::scheduler::abstract_coordinator {
 public:
  explicit asio_scheduler(caf::actor_system& system);
  ~asio_scheduler() override;

  /// Called by CAF (loop_config names this class).
  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>);

  /// Starts no thread: CAF's printer for aout has none here, and nothing of ours writes to it.
  void start() override {}
  /// Runs what is ready, then drops every timer. Called by the actor_system's destructor.
  void stop() override;
  void enqueue(caf::resumable* what) override;
  bool detaches_utility_actors() const override { return false; }
  caf::actor_clock& clock() noexcept override { return clock_; }

 private:
  /// Where a running actor puts the actors that it wakes.
  class unit : public caf::execution_unit {
   public:
    unit(caf::actor_system& system, asio_scheduler& scheduler)
        : caf::execution_unit(&system), scheduler_(scheduler) {}
    void exec_later(caf::resumable* what) override { scheduler_.enqueue(what); }

   private:
    asio_scheduler& scheduler_;
  };

  void append(caf::resumable* what);
  void schedule_turn();
  void take_turn();
  void run_front();

  boost::asio::io_context& loop_;
  turn_limits limits_;
  const std::thread::id thread_;
  std::deque<caf::resumable*> ready_;  // each holds one reference
  bool turn_scheduled_ = false;
  unit unit_;
  asio_actor_clock clock_;
};

}  // namespace leasehold::server
