// An actor that throws: nobody goes on with half a change, and nobody waits for it for ever.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/queue_actor.hpp"
#include "actors/shard_actor.hpp"
#include "src/asio_scheduler.hpp"
#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

class Failures : public testing::Test {
 protected:
  Failures() {
    context_->clock = std::make_shared<manual_clock>();
    context_->counters = std::make_shared<actors::counters>();
    context_->options = std::make_shared<actors::actor_options>();
    context_->timer = std::make_shared<manual_timer>();
    context_->on_fatal = [this](std::string_view why) { fatal_.emplace_back(why); };
  }

  actors::actor_handle shard() {
    return system_.spawn<actors::shard_actor>(actors::context_ptr(context_));
  }
  actors::actor_handle queue(const actors::actor_handle& of) {
    return system_.spawn<actors::queue_actor>(actors::context_ptr(context_), context_->options,
                                              actors::place{0, of},
                                              actors::queue_key{protocol::tenant_id{"t"}, "q"});
  }
  void settle() {
    loop_.restart();
    loop_.poll();
  }
  void end(const actors::actor_handle& who) {
    actors::ask_to_exit(who);
    settle();
  }

  std::vector<std::string> fatal_;

 private:
  boost::asio::io_context loop_{1};
  server::loop_config config_{loop_};
  caf::actor_system system_{config_};

 protected:
  std::shared_ptr<actors::thread_context> context_ = std::make_shared<actors::thread_context>();
};

TEST_F(Failures, AShardThatThrowsIsFatal) {
  const auto it = shard();
  actors::tell(it, actors::shard_query{
                       [](actors::shard_actor&) { throw std::runtime_error("on purpose"); }});
  settle();
  EXPECT_EQ(fatal_, std::vector<std::string>{"a shard actor failed"});
}

TEST_F(Failures, AQueueThatThrowsIsFatal) {
  const auto of = shard();
  const auto it = queue(of);
  actors::tell(it, actors::queue_event{actors::queue_query{
                       [](actors::queue_actor&) { throw std::runtime_error("on purpose"); }}});
  settle();
  EXPECT_EQ(fatal_, std::vector<std::string>{"a queue actor failed"});
  end(of);
}

TEST_F(Failures, ALeaseThatThrewIsFatal) {
  const auto it = shard();
  actors::tell(it, actors::lean_actor_failed{});
  settle();
  EXPECT_EQ(fatal_, std::vector<std::string>{"a lease actor failed"});
  end(it);
}

}  // namespace
}  // namespace leasehold::tests
