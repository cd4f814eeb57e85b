#include "src/thread_loop.hpp"

#include <pthread.h>

#include <atomic>
#include <memory>

namespace leasehold::server {
namespace {

struct actor_world {
  actor_world(boost::asio::io_context& loop, turn_limits limits)
      : config(loop, limits), system(config) {
    // The destructor must not wait for actors: only this thread could run them.
    system.await_actors_before_shutdown(false);
  }
  loop_config config;
  caf::actor_system system;
  actor_world* next_left_behind = nullptr;
};

// An actor that did not end goes on referring to its system, which therefore is not destroyed. The
// list tells leak checkers that this is meant.
std::atomic<actor_world*> left_behind{nullptr};

void leave_behind(actor_world* world) { world->next_left_behind = left_behind.exchange(world); }

}  // namespace

thread_loop::thread_loop(options how)
    : how_(std::move(how)), executor_(io_.get_executor()), work_(executor_) {}

thread_loop::~thread_loop() { stop(); }

void thread_loop::start() {
  std::promise<void> ready;
  std::future<void> is_ready = ready.get_future();
  thread_ = std::thread(&thread_loop::run, this, std::move(ready));
  is_ready.wait();
}

std::size_t thread_loop::stop(const std::function<void()>& last) {
  if (!thread_.joinable()) return left_;
  post([this, last] {
    if (last) last();
    io_.stop();
  });
  thread_.join();
  return left_;
}

void thread_loop::run(std::promise<void> ready) {
  pthread_setname_np(pthread_self(), how_.name.substr(0, 15).c_str());
  auto world = std::make_unique<actor_world>(io_, how_.turns);
  system_ = &world->system;
  ready.set_value();
  io_.run();
  run_until_empty();
  system_ = nullptr;
  if (left_ > 0) leave_behind(world.release());
}

void thread_loop::run_until_empty() {
  // Actors end by running, so the loop goes on until the registry is empty.
  const auto give_up = std::chrono::steady_clock::now() + how_.exit_limit;
  io_.restart();
  while (system_->registry().running() > 0 && std::chrono::steady_clock::now() < give_up) {
    io_.run_one_for(std::chrono::milliseconds{10});
  }
  left_ = system_->registry().running();
  io_.poll();
}

}  // namespace leasehold::server
