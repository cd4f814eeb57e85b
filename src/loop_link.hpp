// The way between the threads of one coordinator: each has a loop, and posts to the others' loops.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "leasehold/actors/ports.hpp"
#include "src/thread_loop.hpp"

namespace leasehold::server {

/// The loops outlive everybody who posts; they are stopped together and destroyed afterwards.
class loop_link final : public actors::shard_link {
 public:
  explicit loop_link(std::vector<thread_loop*> loops) : loops_(std::move(loops)) {}

  void post(std::size_t thread, std::function<void()> what) override {
    loops_.at(thread)->post(std::move(what));
  }

 private:
  std::vector<thread_loop*> loops_;
};

}  // namespace leasehold::server
