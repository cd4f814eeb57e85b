#include "src/boot_timer.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace leasehold::server {
namespace {

using protocol::duration;
using protocol::instant;

class boot_timer_test : public testing::Test {
 protected:
  boot_timer_test() {
    auto outcome = system_clock::start(machine_clocks(), std::nullopt, duration{1000});
    clock_ = std::get<std::shared_ptr<system_clock>>(outcome);
    timer_ = std::make_unique<boot_timer>(loop_, clock_);
  }

  boost::asio::io_context loop_;
  std::shared_ptr<system_clock> clock_;
  std::unique_ptr<boot_timer> timer_;
};

TEST_F(boot_timer_test, FiresOnceWhenTheClockHasReachedTheInstant) {
  const instant at = clock_->now() + duration{20};
  int fired = 0;
  timer_->arm(at, [&] {
    ++fired;
    EXPECT_GE(clock_->now(), at);
  });
  EXPECT_EQ(timer_->armed(), 1);
  loop_.run();
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(timer_->armed(), 0);
}

TEST_F(boot_timer_test, AnInstantThatHasPassedFiresOnTheNextTurn) {
  for (const instant at : {clock_->now() - duration{1}, instant{1}, clock_->now()}) {
    bool fired = false;
    timer_->arm(at, [&] { fired = true; });
    EXPECT_FALSE(fired);
    loop_.restart();
    loop_.run();
    EXPECT_TRUE(fired);
  }
}

TEST_F(boot_timer_test, ArmingAgainReplaces) {
  std::vector<int> fired;
  timer_->arm(clock_->now() + duration{3'600'000}, [&] { fired.push_back(1); });
  timer_->arm(clock_->now() + duration{5}, [&] { fired.push_back(2); });
  loop_.run();
  EXPECT_EQ(fired, std::vector<int>{2});
}

TEST_F(boot_timer_test, ArmingLaterReplacesAnEarlierThatIsAlreadyDue) {
  std::vector<int> fired;
  timer_->arm(instant{1}, [&] { fired.push_back(1); });
  const instant later = clock_->now() + duration{20};
  timer_->arm(later, [&] {
    fired.push_back(2);
    EXPECT_GE(clock_->now(), later);
  });
  loop_.run();
  EXPECT_EQ(fired, std::vector<int>{2});
}

TEST_F(boot_timer_test, ACallbackMayArmAgain) {
  int fired = 0;
  std::function<void()> again = [&] {
    if (++fired < 3) timer_->arm(clock_->now() + duration{1}, again);
  };
  timer_->arm(clock_->now(), again);
  loop_.run();
  EXPECT_EQ(fired, 3);
}

TEST_F(boot_timer_test, DisarmedItDoesNotFire) {
  bool fired = false;
  timer_->arm(clock_->now() + duration{5}, [&] { fired = true; });
  timer_->disarm();
  EXPECT_EQ(timer_->armed(), 0);
  loop_.run_for(std::chrono::milliseconds{30});
  EXPECT_FALSE(fired);
}

TEST_F(boot_timer_test, DestroyedItDoesNotFire) {
  bool fired = false;
  timer_->arm(instant{1}, [&] { fired = true; });
  timer_.reset();
  loop_.run();
  EXPECT_FALSE(fired);
}

}  // namespace
}  // namespace leasehold::server
