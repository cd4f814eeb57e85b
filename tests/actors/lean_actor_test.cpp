// The actor that leases are made of, on a scheduler of its own whose turns the test takes one by
// one, and on CAF's stock scheduler with four workers.
#include "actors/lean_actor.hpp"

#include <gtest/gtest.h>

#include <caf/scoped_actor.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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
namespace {

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
  void broken(const std::exception_ptr&) override { found_->note("broken"); }

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
  LeanActor() : unit_(system_) {}

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

  std::shared_ptr<findings> found_ = std::make_shared<findings>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  turns_by_hand unit_;
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

TEST_F(LeanActor, AnExceptionTellsBrokenAndEndsIt) {
  const auto it = spawn();
  send(it, numbered{0, 1});
  send(it, fatal_to_it{});
  send(it, numbered{0, 2});
  EXPECT_EQ(unit_.turn(32), done);
  EXPECT_EQ(found_->numbers(), std::vector{1});
  EXPECT_EQ(found_->events(), (events{"broken", "exit"}));
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

TEST(LeanActorOnWorkers, AnswersTheSenderAndRefusesARequest) {
  const auto found = std::make_shared<findings>();
  caf::actor_system_config config;
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  const auto it = system.spawn<probe>(found);
  self->send(it, numbered{0, 7});
  int answered = 0;
  self->receive([&](const numbered_back& back) { answered = back.number; });
  EXPECT_EQ(answered, 7);

  const auto refused = [&] {
    caf::error said;
    self->request(it, caf::infinite, numbered{0, 8})
        .receive([](const numbered_back&) {}, [&](const caf::error& why) { said = why; });
    return said;
  };
  EXPECT_EQ(refused(), caf::sec::unexpected_message);
  actors::ask_to_exit(it);
  self->wait_for(it);
  EXPECT_EQ(refused(), caf::sec::request_receiver_down);
  EXPECT_EQ(found->numbers(), std::vector{7});
}

TEST(LeanActorOnWorkers, AMonitorHearsOfItsEnd) {
  const auto found = std::make_shared<findings>();
  caf::actor_system_config config;
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  const auto it = system.spawn<probe>(found);
  self->monitor(it);
  actors::tell(it, fatal_to_it{});
  caf::error heard;
  self->receive([&](const caf::down_msg& down) { heard = down.reason; });
  EXPECT_EQ(heard, caf::exit_reason::unhandled_exception);
}

/// Many threads write to a few actors, which are woken and go to sleep again all the time.
void every_message_arrives_once(const char* policy) {
  constexpr int senders = 6;
  constexpr int receivers = 5;
  constexpr int each = 2000;
  std::vector<std::shared_ptr<findings>> found;
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom_from_string(policy));
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
  every_message_arrives_once("sharing");
}

TEST(LeanActorOnWorkers, EveryMessageArrivesOnceAndInOrderWhereWorkIsStolen) {
  every_message_arrives_once("stealing");
}

}  // namespace
}  // namespace leasehold::tests
