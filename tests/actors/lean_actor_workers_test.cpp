// The actor that leases are made of, on CAF's stock scheduler with several workers.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/lean_probe.hpp"

namespace leasehold::tests {
namespace {

using events = std::vector<std::string>;

/// Many threads write to a few actors, which are woken and go to sleep again all the time.
void every_message_arrives_once(caf::atom_value policy) {
  constexpr int senders = 6;
  constexpr int receivers = 5;
  constexpr int each = 2000;
  std::vector<std::shared_ptr<findings>> found;
  caf::actor_system_config config;
  config.set("scheduler.policy", policy);
  config.set("scheduler.max-threads", 4U);
  config.set("scheduler.max-throughput", 3U);
  {
    caf::actor_system system(config);
    std::vector<actors::actor_handle> to;
    for (int i = 0; i < receivers; ++i) {
      found.push_back(std::make_shared<findings>());
      to.push_back(system.spawn<probe, caf::lazy_init>(found.back()));
    }
    std::vector<std::thread> threads;
    threads.reserve(senders);
    for (int from = 0; from < senders; ++from) {
      threads.emplace_back([&to, from] {
        for (int number = 0; number < each; ++number) {
          for (const auto& one : to) actors::tell(one, numbered{from, number});
        }
      });
    }
    for (auto& thread : threads) thread.join();
    for (auto& one : to) actors::ask_to_exit(one);
    to.clear();
    for (const auto& one : found) ASSERT_TRUE(one->wait_for_events(2));
  }
  for (const auto& one : found) {
    std::vector<int> next(senders, 0);
    for (const auto& what : one->all()) {
      ASSERT_EQ(what.number, next[static_cast<std::size_t>(what.from)]++) << "of " << what.from;
    }
    EXPECT_EQ(next, std::vector<int>(senders, each));
    EXPECT_EQ(one->events(), (events{"exit", "destroyed"}));
  }
}

TEST(LeanActorOnWorkers, EveryMessageArrivesOnceAndInOrderWhereWorkIsShared) {
  every_message_arrives_once(caf::atom("sharing"));
}

TEST(LeanActorOnWorkers, EveryMessageArrivesOnceAndInOrderWhereWorkIsStolen) {
  every_message_arrives_once(caf::atom("stealing"));
}

}  // namespace
}  // namespace leasehold::tests
