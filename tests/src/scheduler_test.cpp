#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "leasehold/actors/caf_compat.hpp"
#include "src/thread_loop.hpp"

namespace scheduler_test {

struct note {
  int number = 0;
};
struct note_delayed {
  int number = 0;
};
struct ball {
  int left = 0;
};

}  // namespace scheduler_test

LEASEHOLD_MESSAGE(scheduler_test::note)
LEASEHOLD_MESSAGE(scheduler_test::note_delayed)
LEASEHOLD_MESSAGE(scheduler_test::ball)

namespace scheduler_test {

using leasehold::actors::actor_behavior;
using leasehold::actors::actor_handle;
using leasehold::actors::ask_to_exit;
using leasehold::actors::coordinator_actor;
using leasehold::actors::tell;
using leasehold::server::thread_loop;

/// Runs `what` on the loop and waits for its answer.
template <class Function>
auto on_loop(thread_loop& loop, Function what) {
  std::packaged_task<decltype(what())()> task{std::move(what)};
  auto answer = task.get_future();
  loop.post(std::move(task));
  return answer.get();
}

class counted : public coordinator_actor {
 public:
  counted(caf::actor_config& config, std::atomic<int>& living)
      : coordinator_actor(config), living_(living) {
    ++living_;
  }
  ~counted() override { --living_; }
  caf::behavior make_behavior() override {
    return {[](const note&) {}};
  }

 private:
  std::atomic<int>& living_;
};

class recorder : public coordinator_actor {
 public:
  recorder(caf::actor_config& config, std::vector<int>& seen, std::promise<void>& full,
           int expected)
      : coordinator_actor(config), seen_(seen), full_(full), expected_(expected) {}
  caf::behavior make_behavior() override {
    return {[this](const note& what) { keep(what.number); },
            [this](const note_delayed& what) {
              delayed_send(this, std::chrono::milliseconds{what.number}, note{what.number});
            }};
  }

 private:
  void keep(int number) {
    seen_.push_back(number);
    if (static_cast<int>(seen_.size()) == expected_) full_.set_value();
  }
  std::vector<int>& seen_;
  std::promise<void>& full_;
  int expected_;
};

/// Wakes itself for ever: the busiest actor there can be.
class restless : public coordinator_actor {
 public:
  using coordinator_actor::coordinator_actor;
  caf::behavior make_behavior() override {
    return {[this](const note& what) { send(this, what); }};
  }
};

/// Sends a ball to the other loop, by post, until it has been hit often enough.
class player : public coordinator_actor {
 public:
  struct wiring {
    thread_loop* other_loop = nullptr;
    actor_handle* other_player = nullptr;  // read on the other loop alone
    std::promise<int>* over = nullptr;
  };
  player(caf::actor_config& config, wiring how) : coordinator_actor(config), how_(how) {}
  caf::behavior make_behavior() override {
    return {[this](const ball& what) {
      ++hits_;
      if (what.left == 0) {
        how_.over->set_value(hits_);
        return;
      }
      how_.other_loop->post(
          [to = how_.other_player, left = what.left - 1] { tell(*to, ball{left}); });
    }};
  }

 private:
  wiring how_;
  int hits_ = 0;
};

class thrower : public coordinator_actor {
 public:
  thrower(caf::actor_config& config, std::promise<void>& told)
      : coordinator_actor(config), told_(told) {}
  caf::behavior make_behavior() override {
    return {[](const note&) { throw std::runtime_error("a message function failed"); }};
  }

 protected:
  void broken(const std::exception_ptr&) override { told_.set_value(); }

 private:
  std::promise<void>& told_;
};

TEST(ThreadLoop, SpawnedActorsEndWithTheirLastHandle) {
  std::atomic<int> living{0};
  thread_loop loop;
  loop.start();
  on_loop(loop, [&] {
    std::vector<actor_handle> handles;
    handles.reserve(1000);
    for (int i = 0; i < 1000; ++i)
      handles.push_back(loop.system().spawn<counted>(std::ref(living)));
    EXPECT_EQ(living, 1000);
    return 0;
  });
  EXPECT_EQ(loop.stop(), 0U);
  EXPECT_EQ(living, 0);
}

TEST(ThreadLoop, StoppingEndsActorsThatTheLastFunctionAsksToExit) {
  std::atomic<int> living{0};
  thread_loop loop;
  loop.start();
  std::vector<actor_handle> handles;
  on_loop(loop, [&] {
    for (int i = 0; i < 1000; ++i)
      handles.push_back(loop.system().spawn<counted>(std::ref(living)));
    return 0;
  });
  const auto left = loop.stop([&] {
    for (const auto& who : handles) ask_to_exit(who);
    handles.clear();
  });
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(living, 0);
}

TEST(ThreadLoop, AnActorThatNobodyEndsIsReportedAtStop) {
  std::atomic<int> living{0};
  thread_loop::options how;
  how.exit_limit = std::chrono::milliseconds{20};
  thread_loop loop{how};
  loop.start();
  auto forgotten = on_loop(loop, [&] { return loop.system().spawn<counted>(std::ref(living)); });
  EXPECT_EQ(loop.stop(), 1U);
}

TEST(ThreadLoop, StartsOneThreadAndNoOther) {
  std::thread([] {}).join();  // the first thread may bring one of a sanitizer with it
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks{"/proc/self/task"};
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  thread_loop loop;
  loop.start();
  EXPECT_EQ(threads() - before, 1);
}

TEST(ThreadLoop, MessagesOfOneSenderArriveInTheirOrder) {
  constexpr int messages = 10'000;
  std::vector<int> seen;
  std::promise<void> full;
  thread_loop loop;
  loop.start();
  auto who = on_loop(loop, [&] {
    return loop.system().spawn<recorder>(std::ref(seen), std::ref(full), messages);
  });
  for (int i = 0; i < messages; ++i) loop.post([&who, i] { tell(who, note{i}); });
  full.get_future().wait();
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(messages));
  for (int i = 0; i < messages; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
  loop.stop([&] { who = nullptr; });
}

TEST(ThreadLoop, DelayedMessagesComeInTheOrderOfTheirTimes) {
  std::vector<int> seen;
  std::promise<void> full;
  thread_loop loop;
  loop.start();
  auto who = on_loop(
      loop, [&] { return loop.system().spawn<recorder>(std::ref(seen), std::ref(full), 3); });
  loop.post([&who] {
    for (const int milliseconds : {30, 1, 10}) tell(who, note_delayed{milliseconds});
  });
  full.get_future().wait();
  EXPECT_EQ(seen, (std::vector<int>{1, 10, 30}));
  loop.stop([&] { who = nullptr; });
}

TEST(ThreadLoop, AFarDelayedMessageDoesNotHoldTheStop) {
  std::vector<int> seen;
  std::promise<void> full;
  thread_loop loop;
  loop.start();
  auto who = on_loop(
      loop, [&] { return loop.system().spawn<recorder>(std::ref(seen), std::ref(full), 1); });
  on_loop(loop, [&who] {
    tell(who, note_delayed{3'600'000});
    return 0;
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(loop.stop([&] {
    ask_to_exit(who);
    who = nullptr;
  }),
            0U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
}

TEST(ThreadLoop, ABusyActorLeavesTurnsToPostedFunctions) {
  thread_loop loop;
  loop.start();
  auto who = on_loop(loop, [&] {
    auto busy = loop.system().spawn<restless>();
    tell(busy, note{});
    return busy;
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(on_loop(loop, [i] { return i; }), i);
  EXPECT_EQ(loop.stop([&] {
    ask_to_exit(who);
    who = nullptr;
  }),
            0U);
}

TEST(ThreadLoop, TwoLoopsExchangeMessagesThroughPost) {
  constexpr int hits = 20'000;
  std::promise<int> over;
  thread_loop left;
  thread_loop right;
  left.start();
  right.start();
  actor_handle left_player;
  actor_handle right_player;
  on_loop(left, [&] {
    left_player = left.system().spawn<player>(player::wiring{&right, &right_player, &over});
    return 0;
  });
  on_loop(right, [&] {
    right_player = right.system().spawn<player>(player::wiring{&left, &left_player, &over});
    return 0;
  });
  left.post([&] { tell(left_player, ball{hits}); });
  EXPECT_EQ(over.get_future().get(), hits / 2 + 1);
  EXPECT_EQ(left.stop([&] { left_player = nullptr; }), 0U);
  EXPECT_EQ(right.stop([&] { right_player = nullptr; }), 0U);
}

TEST(ThreadLoop, AFunctionPostedAfterTheStopIsDestroyedAndNotRun) {
  auto witness = std::make_shared<int>(0);
  {
    thread_loop loop;
    loop.start();
    loop.stop();
    loop.post([witness] { ++*witness; });
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_EQ(*witness, 0);
}

TEST(CoordinatorActor, AnExceptionEndsTheActorAndTellsItOnce) {
  std::promise<void> told;
  thread_loop loop;
  loop.start();
  auto who = on_loop(loop, [&] { return loop.system().spawn<thrower>(std::ref(told)); });
  loop.post([&who] {
    tell(who, note{1});
    tell(who, note{2});
  });
  told.get_future().wait();
  EXPECT_EQ(loop.stop(), 0U);
}

}  // namespace scheduler_test
