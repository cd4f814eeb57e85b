// The actor that leases are made of, in turns that the test takes one by one.
#include "actors/lean_actor.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/asio_scheduler.hpp"
#include "support/lean_probe.hpp"

namespace leasehold::tests {

/// Run by an actor of another kind, as itself.
struct errand {
  std::function<void(caf::event_based_actor&)> run;
};

}  // namespace leasehold::tests

LEASEHOLD_MESSAGE(leasehold::tests::errand)

namespace leasehold::tests {
namespace {

/// Writes to a lean actor, and notes what comes back.
class asker final : public actors::coordinator_actor {
 public:
  asker(caf::actor_config& config, std::shared_ptr<findings> found)
      : actors::coordinator_actor(config), found_(std::move(found)) {}

 protected:
  actors::actor_behavior make_behavior() override {
    set_down_handler([this](const caf::down_msg& down) {
      const bool thrown = down.reason == caf::exit_reason::unhandled_exception;
      found_->note(thrown ? "heard of an exception" : "heard of an end");
    });
    return {
        [this](const errand& what) { what.run(*this); },
        [this](const actors::lean_actor_failed&) { found_->note("told of an exception"); },
        [this](const numbered_back& back) { found_->note("back " + std::to_string(back.number)); }};
  }

 private:
  std::shared_ptr<findings> found_;
};

/// Takes turns only when it is told to, and holds the references that a scheduler holds.
class turns_by_hand final : public caf::execution_unit {
 public:
  explicit turns_by_hand(caf::actor_system& system) : caf::execution_unit(&system) {}
  ~turns_by_hand() override {
    for (auto* left : ready_) caf::intrusive_ptr_release(left);
  }

  void exec_later(caf::resumable* what) override { ready_.push_back(what); }
  [[nodiscard]] std::size_t ready() const { return ready_.size(); }

  caf::resumable::resume_result turn(std::size_t most) {
    auto* const what = ready_.front();
    ready_.pop_front();
    const auto said = what->resume(this, most);
    if (said == caf::resumable::resume_later) {
      ready_.push_back(what);
    } else {
      caf::intrusive_ptr_release(what);
    }
    return said;
  }
  void run() {
    while (!ready_.empty()) turn(32);
  }

 private:
  std::deque<caf::resumable*> ready_;
};

class LeanActor : public testing::Test {
 protected:
  LeanActor() : config_(loop_), unit_(system_) {}

  template <caf::spawn_options Options = caf::lazy_init>
  actors::actor_handle spawn() {
    caf::actor_config config{&unit_};
    return system_.spawn_impl<probe, Options>(config, found_);
  }
  template <class Message>
  void send(const actors::actor_handle& to, Message what) {
    to->eq_impl(caf::make_message_id(), nullptr, &unit_, std::move(what));
  }
  void send_exit(const actors::actor_handle& to, caf::error why) {
    send(to, caf::exit_msg{caf::actor_addr{}, std::move(why)});
  }

  void run_as_asker(std::function<void(caf::event_based_actor&)> what) {
    caf::actor_config config{&unit_};
    auto actor = system_.spawn_impl<asker, caf::lazy_init>(config, asked_);
    send(actor, errand{std::move(what)});
    unit_.run();
    asker_ = actor;
  }

  std::shared_ptr<findings> asked_ = std::make_shared<findings>();
  std::shared_ptr<findings> found_ = std::make_shared<findings>();
  boost::asio::io_context loop_;
  server::loop_config config_;  // a system without threads
  caf::actor_system system_{config_};
  turns_by_hand unit_;
  actors::actor_handle asker_;
};

using events = std::vector<std::string>;
constexpr auto awaiting = caf::resumable::awaiting_message;
constexpr auto again = caf::resumable::resume_later;
constexpr auto done = caf::resumable::done;

TEST_F(LeanActor, TakesMessagesInTheOrderTheyCameIn) {
  const auto it = spawn();
  for (int i = 1; i <= 5; ++i) send(it, numbered{0, i});
  unit_.run();
  for (int i = 6; i <= 7; ++i) send(it, numbered{0, i});
  unit_.run();
  EXPECT_EQ(found_->numbers(), (std::vector{1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(LeanActor, ALazyOneRunsWithItsFirstMessageOnly) {
  const auto it = spawn<caf::lazy_init>();
  EXPECT_EQ(unit_.ready(), 0U);
  send(it, numbered{0, 1});
  send(it, numbered{0, 2});
  EXPECT_EQ(unit_.ready(), 1U) << "one turn is enough for both";
  EXPECT_EQ(unit_.turn(32), awaiting);
  EXPECT_EQ(found_->numbers(), (std::vector{1, 2}));
}

TEST_F(LeanActor, OneThatIsNotLazyRunsAtOnce) {
  const auto it = spawn<caf::no_spawn_options>();
  ASSERT_EQ(unit_.ready(), 1U);
  send(it, numbered{0, 1});
  EXPECT_EQ(unit_.ready(), 1U) << "it is scheduled already";
  EXPECT_EQ(unit_.turn(32), awaiting);
  EXPECT_EQ(found_->numbers(), std::vector{1});
}

TEST_F(LeanActor, WhatCameBeforeItsLaunchIsKept) {
  caf::actor_config config{&unit_};
  const auto it = caf::make_actor<probe, actors::actor_handle>(
      system_.next_actor_id(), system_.node(), &system_, config, found_);
  send(it, numbered{0, 1});
  send(it, numbered{0, 2});
  EXPECT_EQ(unit_.ready(), 0U);
  auto* const self = static_cast<probe*>(caf::actor_cast<caf::abstract_actor*>(it));
  self->launch(&unit_, true, false);
  ASSERT_EQ(unit_.ready(), 1U);
  unit_.run();
  EXPECT_EQ(found_->numbers(), (std::vector{1, 2}));
}

TEST_F(LeanActor, TakesNoMoreInATurnThanTheSchedulerAllows) {
  const auto it = spawn();
  for (int i = 1; i <= 5; ++i) send(it, numbered{0, i});
  EXPECT_EQ(unit_.turn(2), again);
  EXPECT_EQ(found_->numbers(), (std::vector{1, 2}));
  send(it, numbered{0, 6});
  EXPECT_EQ(unit_.ready(), 1U);
  EXPECT_EQ(unit_.turn(2), again);
  EXPECT_EQ(unit_.turn(2), awaiting) << "the sixth was the last that it may take, and the last";
  EXPECT_EQ(found_->numbers(), (std::vector{1, 2, 3, 4, 5, 6}));
}

TEST_F(LeanActor, EndsWhenAskedToAfterWhatItHadAndDropsWhatComesLater) {
  auto it = spawn();
  send(it, numbered{0, 1});
  send_exit(it, caf::exit_reason::user_shutdown);
  const auto carried = std::make_shared<int>(0);
  send(it, numbered{0, 2, carried});
  EXPECT_EQ(unit_.turn(32), done);
  EXPECT_EQ(found_->numbers(), std::vector{1});
  EXPECT_EQ(found_->events(), events{"exit"});
  EXPECT_EQ(carried.use_count(), 1) << "what it had not taken is freed with its end";
  send(it, numbered{0, 3, carried});
  EXPECT_EQ(carried.use_count(), 1);
  EXPECT_EQ(unit_.ready(), 0U);
  it = nullptr;
  EXPECT_EQ(found_->events(), (events{"exit", "destroyed"}));
}

TEST_F(LeanActor, AnExitWithoutAReasonEndsNothing) {
  const auto it = spawn();
  send_exit(it, {});
  send(it, numbered{0, 1});
  EXPECT_EQ(unit_.turn(32), awaiting);
  EXPECT_EQ(found_->numbers(), std::vector{1});
  EXPECT_EQ(found_->events(), events{});
}

TEST_F(LeanActor, AnExceptionEndsIt) {
  const auto it = spawn();
  send(it, numbered{0, 1});
  send(it, fatal_to_it{});
  send(it, numbered{0, 2});
  EXPECT_EQ(unit_.turn(32), done);
  EXPECT_EQ(found_->numbers(), std::vector{1});
  EXPECT_EQ(found_->events(), (events{"exit"}));
}

TEST_F(LeanActor, WhoIsAttachedHearsOfItsEndAndWhy) {
  for (const auto why : {caf::exit_reason::user_shutdown, caf::exit_reason::kill,
                         caf::exit_reason::out_of_workers}) {
    const auto it = spawn();
    std::vector<caf::error> heard;
    it->attach_functor([&heard](const caf::error& reason) { heard.push_back(reason); });
    send(it, numbered{0, 1});
    unit_.run();
    EXPECT_TRUE(heard.empty());
    send_exit(it, why);
    unit_.run();
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard.front(), why);
  }
  const auto it = spawn();
  caf::error heard;
  send(it, fatal_to_it{});
  unit_.run();
  it->attach_functor([&heard](const caf::error& reason) { heard = reason; });
  EXPECT_EQ(heard, caf::exit_reason::unhandled_exception) << "also when it has ended before";
}

TEST_F(LeanActor, PassesOverWhatItDoesNotKnow) {
  const auto it = spawn();
  send(it, unknown_to_it{});
  it->enqueue(nullptr, caf::make_message_id(), caf::make_message(numbered{0, 1}, 2), &unit_);
  it->enqueue(nullptr, caf::make_message_id(), caf::message{}, &unit_);
  send(it, numbered{0, 3});
  EXPECT_EQ(unit_.turn(32), awaiting);
  EXPECT_EQ(found_->numbers(), std::vector{3});
}

TEST_F(LeanActor, DoesNotChangeAMessageThatOthersSee) {
  const auto it = spawn();
  const auto shared = caf::make_message(numbered{0, 1});
  it->enqueue(nullptr, caf::make_message_id(), shared, &unit_);
  it->enqueue(nullptr, caf::make_message_id(), shared, &unit_);
  unit_.run();
  EXPECT_EQ(found_->numbers(), (std::vector{1, 1}));
}

TEST_F(LeanActor, IsDestroyedWithItsLastReferenceThoughItNeverRan) {
  auto it = spawn();
  it = nullptr;
  EXPECT_EQ(found_->events(), (events{"exit", "destroyed"}));
}

TEST_F(LeanActor, LivesAsLongAsAMessageWaits) {
  auto it = spawn();
  const auto carried = std::make_shared<int>(0);
  send(it, numbered{0, 1, carried});
  it = nullptr;
  EXPECT_EQ(found_->events(), events{});
  EXPECT_EQ(unit_.turn(32), awaiting);
  EXPECT_EQ(found_->numbers(), std::vector{1});
  EXPECT_EQ(found_->events(), (events{"exit", "destroyed"}));
}

TEST_F(LeanActor, CountsAsRunningUntilItsEnd) {
  const auto before = system_.registry().running();
  const auto it = spawn();
  EXPECT_EQ(system_.registry().running(), before + 1);
  send_exit(it, caf::exit_reason::user_shutdown);
  unit_.run();
  EXPECT_EQ(system_.registry().running(), before);
}

TEST_F(LeanActor, AnExceptionIsToldToTheSender) {
  const auto it = spawn();
  run_as_asker([&](caf::event_based_actor& self) { self.send(it, fatal_to_it{}); });
  EXPECT_EQ(asked_->events(), events{"told of an exception"});
}

TEST_F(LeanActor, AnswersTheSender) {
  const auto it = spawn();
  run_as_asker([&](caf::event_based_actor& self) { self.send(it, numbered{0, 7}); });
  EXPECT_EQ(found_->numbers(), std::vector{7});
  EXPECT_EQ(asked_->events(), events{"back 7"});
}

TEST_F(LeanActor, RefusesARequestAliveAndAfterItsEnd) {
  const auto it = spawn();
  const auto refused = [&] {
    caf::error said;
    run_as_asker([&](caf::event_based_actor& self) {
      self.request(it, caf::infinite, numbered{0, 8})
          .then([](const numbered_back&) {}, [&said](const caf::error& why) { said = why; });
    });
    return said;
  };
  EXPECT_EQ(refused(), caf::sec::unexpected_message);
  send_exit(it, caf::exit_reason::user_shutdown);
  unit_.run();
  EXPECT_EQ(refused(), caf::sec::request_receiver_down);
  EXPECT_EQ(found_->numbers(), std::vector<int>{});
}

TEST_F(LeanActor, AMonitorHearsOfItsEnd) {
  const auto it = spawn();
  run_as_asker([&](caf::event_based_actor& self) {
    self.monitor(it);
    self.send(it, fatal_to_it{});
  });
  EXPECT_EQ(asked_->events(), (events{"told of an exception", "heard of an exception"}));
}

}  // namespace
}  // namespace leasehold::tests
