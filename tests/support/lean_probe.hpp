// A lean actor that tells what becomes of it, and the messages that it is sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/lean_actor.hpp"

namespace leasehold::tests {

struct numbered {
  int from = 0;
  int number = 0;
  std::shared_ptr<int> carried{};
};
struct numbered_back {
  int number = 0;
};
struct unknown_to_it {};
struct fatal_to_it {};

}  // namespace leasehold::tests

LEASEHOLD_MESSAGE(leasehold::tests::numbered)
LEASEHOLD_MESSAGE(leasehold::tests::numbered_back)
LEASEHOLD_MESSAGE(leasehold::tests::unknown_to_it)
LEASEHOLD_MESSAGE(leasehold::tests::fatal_to_it)

namespace leasehold::tests {

/// What became of a probe, told under a lock: its last reference may go on any thread.
class findings {
 public:
  void taken(const numbered& what) {
    const std::lock_guard lock(mutex_);
    taken_.push_back(what);
    changed_.notify_all();
  }
  void note(const std::string& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }

  std::vector<int> numbers() {
    const std::lock_guard lock(mutex_);
    std::vector<int> out;
    for (const auto& each : taken_) out.push_back(each.number);
    return out;
  }
  std::vector<std::string> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  bool wait_for_messages(std::size_t most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return taken_.size() >= most; });
  }
  bool wait_for_events(std::size_t most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&] { return events_.size() >= most; });
  }
  std::vector<numbered> all() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<numbered> taken_;
  std::vector<std::string> events_;
};

class probe final : public actors::lean_actor {
 public:
  probe(caf::actor_config& config, std::shared_ptr<findings> found)
      : actors::lean_actor(config), found_(std::move(found)) {}
  ~probe() override { found_->note("destroyed"); }

 protected:
  void receive(actors::message_content& what) override {
    if (auto* const one = actors::sole<numbered>(what)) {
      answer(numbered_back{one->number});
      found_->taken(*one);
      one->number = -1;  // a message that others see, too, is not changed by this
    } else if (actors::sole<fatal_to_it>(what) != nullptr) {
      throw std::runtime_error("on purpose");
    }
  }
  void on_exit() override { found_->note("exit"); }

 private:
  std::shared_ptr<findings> found_;
};

}  // namespace leasehold::tests
