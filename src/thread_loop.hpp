// One thread of the coordinator: an Asio loop with an actor_system on it. Whatever lives on it is
// made, used and destroyed on it; threads reach each other by post alone.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <caf/actor_system.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "src/asio_scheduler.hpp"

namespace leasehold::server {

class thread_loop {
 public:
  struct options {
    std::string name = "loop";  ///< of the thread, as top and gdb show it; at most 15 bytes count
    turn_limits turns;
    /// How long stop waits for actors to end before it leaves them behind.
    std::chrono::milliseconds exit_limit{10'000};
  };

  explicit thread_loop(options how);
  thread_loop() : thread_loop(options{}) {}
  thread_loop(const thread_loop&) = delete;
  thread_loop& operator=(const thread_loop&) = delete;
  /// Stops, when nobody has. Functions that were posted too late to run are destroyed here, so
  /// several loops that post to each other are all stopped before the first of them is destroyed.
  ~thread_loop();

  /// Starts the thread and returns once its actor_system is there. Called once.
  void start();

  /// Runs `what` on the loop, after all that was posted from this thread before. Any thread, from
  /// the construction to the destruction; after stop it is not run. The one way between two loops.
  template <class Function>
  void post(Function&& what) {
    boost::asio::post(io_, std::forward<Function>(what));
  }

  /// Ends the loop from outside it: runs `last` there, which closes sockets and timers and asks the
  /// actors to exit, runs on until no actor is left, destroys the actor_system and joins the
  /// thread. A second call does nothing. Returns how many actors did not end within exit_limit: 0
  /// unless somebody forgot one.
  std::size_t stop(const std::function<void()>& last = {});

  /// From start until stop; spawning and sending on the loop's own thread only.
  [[nodiscard]] caf::actor_system& system() noexcept { return *system_; }
  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }
  [[nodiscard]] bool on_thread() const noexcept { return executor_.running_in_this_thread(); }

 private:
  void run(std::promise<void> ready);
  void run_until_empty();

  options how_;
  // One thread runs the loop, others only post to it.
  boost::asio::io_context io_{1};
  boost::asio::io_context::executor_type executor_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  caf::actor_system* system_ = nullptr;  // on the thread's stack
  std::size_t left_ = 0;                 // read after the join
  std::thread thread_;
};

}  // namespace leasehold::server
