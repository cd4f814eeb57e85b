// A coordinator on real threads, on any store and on the machine's clock.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/actors/coordinator.hpp"
#include "src/boot_timer.hpp"
#include "src/system_clock.hpp"
#include "src/thread_loop.hpp"

namespace leasehold::tests {

/// Reaches the loops by their index; what concerns the calling loop runs at once.
class rig_link final : public actors::shard_link {
 public:
  explicit rig_link(std::vector<std::unique_ptr<server::thread_loop>>& loops) : loops_(loops) {}
  void post(std::size_t thread, std::function<void()> what) override {
    if (loops_[thread]->on_thread()) {
      what();
    } else {
      loops_[thread]->post(std::move(what));
    }
  }

 private:
  std::vector<std::unique_ptr<server::thread_loop>>& loops_;
};

inline std::shared_ptr<server::system_clock> machine_clock() {
  return std::get<std::shared_ptr<server::system_clock>>(
      server::system_clock::start(server::machine_clocks(), std::nullopt, {86'400'000}));
}

class threaded_rig {
 public:
  struct options {
    std::size_t threads = 1;
    actors::actor_options actors;
    std::shared_ptr<server::system_clock> clock = machine_clock();
    bool restored_backup = false;
    std::function<void(std::string_view why)> on_fatal;
  };

  threaded_rig(std::shared_ptr<actors::store> where, options chosen)
      : clock(std::move(chosen.clock)) {
    actors::coordinator_options how;
    for (std::size_t i = 0; i < chosen.threads; ++i) {
      loops.push_back(std::make_unique<server::thread_loop>());
      loops.back()->start();
      std::promise<std::shared_ptr<server::boot_timer>> made;
      loops.back()->post(
          [&] { made.set_value(std::make_shared<server::boot_timer>(loops.back()->io(), clock)); });
      how.threads.push_back({&loops.back()->system(), made.get_future().get()});
      timers_.push_back(how.threads.back().timer);
    }
    how.actors = std::move(chosen.actors);
    how.store = std::move(where);
    how.clock = clock;
    how.restored_backup = chosen.restored_backup;
    how.link = std::make_shared<rig_link>(loops);
    how.counters = std::make_shared<actors::counters>();
    how.make_id = [this] { return "job-" + std::to_string(++made_ids_); };
    how.on_fatal = std::move(chosen.on_fatal);
    auto started = actors::coordinator::start(std::move(how));
    if (auto* fault = std::get_if<actors::store_error>(&started)) {
      start_error = std::move(*fault);
    } else {
      coordinator = std::move(std::get<std::unique_ptr<actors::coordinator>>(started));
    }
  }

  ~threaded_rig() { stop(); }
  threaded_rig(const threaded_rig&) = delete;
  threaded_rig& operator=(const threaded_rig&) = delete;

  /// Ends the actors and the threads; nothing that was posted runs afterwards. A store with a
  /// thread of its own posts until it ends: nobody else may keep it then.
  void stop() {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      EXPECT_EQ(loops[i]->stop([&] {
        if (coordinator) coordinator->exit_thread(i);
        timers_[i]->disarm();
      }),
                0U);
    }
    coordinator.reset();
  }

  std::vector<std::unique_ptr<server::thread_loop>> loops;  ///< outlive the store
  std::shared_ptr<server::system_clock> clock;
  std::unique_ptr<actors::coordinator> coordinator;
  std::optional<actors::store_error> start_error;

 private:
  std::vector<std::shared_ptr<actors::timer>> timers_;
  std::atomic<int> made_ids_{0};
};

}  // namespace leasehold::tests
