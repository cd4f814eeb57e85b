// When a session whose worker says nothing is closed: silence is counted in beats of the
// coordinator, so that the time of a suspend or a stop is nobody's silence.
#include <gtest/gtest.h>

#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

class silence : public testing::Test {
 protected:
  static actors::actor_options beating_often() {
    actors::actor_options options;
    options.heartbeat_interval = {5};  // of CAF's clock, which is the machine's
    return options;
  }
  /// Lets the rig run until it holds; false when it never does.
  template <class Holds>
  bool runs_until(Holds holds) {
    const auto by = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (!holds()) {
      if (std::chrono::steady_clock::now() > by) return false;
      rig.settle();
    }
    return true;
  }
  std::size_t beats() const { return worker.session->all<protocol::server_heartbeat>().size(); }

  coordinator_rig rig{std::make_shared<memory_store>(), beating_often()};
  rig_worker worker{rig, "w"};
};

TEST_F(silence, OfThreeIntervalsEndsTheSession) {
  ASSERT_TRUE(runs_until([&] { return worker.session->closed.has_value(); }));
  EXPECT_EQ(worker.session->closed, protocol::close_code::no_heartbeat);
}

TEST_F(silence, IsNotWhatASuspendLooksLike) {
  for (std::size_t suspends = 1; suspends <= 3; ++suspends) {
    worker.say(protocol::worker_heartbeat{});
    rig.clock->set(rig.clock->now() + protocol::duration{3'600'000});
    ASSERT_TRUE(runs_until([&] { return beats() >= suspends || worker.session->closed; }));
    EXPECT_EQ(worker.session->closed, std::nullopt) << suspends;
  }
}

}  // namespace
}  // namespace leasehold::tests
