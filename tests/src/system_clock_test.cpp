#include "src/system_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {
namespace {

using actors::clock_anchor;
using protocol::duration;
using protocol::instant;
using testing::HasSubstr;

constexpr std::int64_t day_ms = 86'400'000;
constexpr duration max_downtime{day_ms};

/// A machine whose clocks stand still until they are set.
struct machine {
  std::int64_t boottime_ms = 50'000;
  std::int64_t wall_ms = 1'800'000'000'000;
  std::string boot_id = "boot-1";

  clock_sources sources() {
    return {[this] { return boottime_ms; }, [this] { return wall_ms; }, boot_id};
  }
};

clock_anchor anchor_of_boot_1() {
  return {"boot-1", 40'000, 1'700'000'000'000, instant{1'699'000'000'000}};
}

std::shared_ptr<system_clock> started(machine& on, const std::optional<clock_anchor>& stored,
                                      accepted_clock accepted = accepted_clock::none) {
  auto outcome = system_clock::start(on.sources(), stored, max_downtime, accepted);
  auto* clock = std::get_if<std::shared_ptr<system_clock>>(&outcome);
  return clock == nullptr ? nullptr : *clock;
}

std::string refused(machine& on, const clock_anchor& stored) {
  auto outcome = system_clock::start(on.sources(), stored, max_downtime);
  auto* why = std::get_if<clock_refused>(&outcome);
  return why == nullptr ? "" : why->sentence;
}

TEST(SystemClock, ANewStoreBeginsAtTheWallClock) {
  machine here;
  const auto clock = started(here, std::nullopt);
  EXPECT_EQ(clock->now(), instant{here.wall_ms});
  EXPECT_EQ(clock->basis(), clock_basis::wall);
}

TEST(SystemClock, AStepOfTheWallClockMovesNothing) {
  machine here;
  const auto clock = started(here, std::nullopt);
  const instant before = clock->now();
  for (const std::int64_t step : {3'600'000, -7'200'000}) {
    here.wall_ms += step;
    EXPECT_EQ(clock->now(), before);
  }
  here.boottime_ms += 7;
  EXPECT_EQ(clock->now(), before + duration{7});
}

TEST(SystemClock, NeverRunsBackwards) {
  machine here;
  const auto clock = started(here, std::nullopt);
  const instant before = clock->now();
  here.boottime_ms -= 10;
  EXPECT_EQ(clock->now(), before);
  EXPECT_EQ(clock->anchor().coordinator_time, before);
  here.boottime_ms += 11;
  EXPECT_EQ(clock->now(), before + duration{1});
}

TEST(SystemClock, TheSameBootGoesOnExactlyWhateverTheWallClockSays) {
  machine here;
  for (const std::int64_t wall : {std::int64_t{0}, std::int64_t{4'000'000'000'000}}) {
    here.wall_ms = wall;
    const auto clock = started(here, anchor_of_boot_1());
    ASSERT_NE(clock, nullptr);
    EXPECT_EQ(clock->now(), instant{1'699'000'010'000});
    EXPECT_EQ(clock->basis(), clock_basis::boot);
  }
}

TEST(SystemClock, ItsOwnAnchorContinuesItWithoutAGap) {
  machine here;
  const auto first = started(here, anchor_of_boot_1());
  here.boottime_ms += 123;
  const auto second = started(here, first->anchor());
  EXPECT_EQ(second->now(), first->now());
}

TEST(SystemClock, AnotherBootGoesOnByTheWallClockWithinTheDowntime) {
  machine here;
  here.boot_id = "boot-2";
  for (const std::int64_t elapsed : {std::int64_t{0}, std::int64_t{1}, day_ms}) {
    here.wall_ms = anchor_of_boot_1().wall_ms + elapsed;
    const auto clock = started(here, anchor_of_boot_1());
    ASSERT_NE(clock, nullptr);
    EXPECT_EQ(clock->now(), anchor_of_boot_1().coordinator_time + duration{elapsed});
    EXPECT_EQ(clock->basis(), clock_basis::wall);
  }
}

TEST(SystemClock, AWallClockOutsideTheDowntimeIsNotReadyAndNamesBothFlags) {
  machine here;
  here.boot_id = "boot-2";
  for (const std::int64_t elapsed : {std::int64_t{-1}, day_ms + 1}) {
    here.wall_ms = anchor_of_boot_1().wall_ms + elapsed;
    const std::string why = refused(here, anchor_of_boot_1());
    EXPECT_THAT(why, HasSubstr("--accept-clock=wall"));
    EXPECT_THAT(why, HasSubstr("--accept-clock=anchor"));
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

TEST(SystemClock, WhereTheAnchorMayBeAnotherMachinesALittleBehindIsNoTimeAtAll) {
  machine here;
  here.boot_id = "boot-2";
  constexpr duration behind{60'000};
  const auto start_at = [&](std::int64_t elapsed) {
    here.wall_ms = anchor_of_boot_1().wall_ms + elapsed;
    return system_clock::start(here.sources(), anchor_of_boot_1(), max_downtime,
                               accepted_clock::none, behind);
  };
  for (const std::int64_t elapsed : {-behind.ms, std::int64_t{-1}, std::int64_t{0}}) {
    const auto outcome = start_at(elapsed);
    const auto* clock = std::get_if<std::shared_ptr<system_clock>>(&outcome);
    ASSERT_NE(clock, nullptr) << elapsed;
    EXPECT_EQ((*clock)->now(), anchor_of_boot_1().coordinator_time);
  }
  EXPECT_TRUE(std::holds_alternative<clock_refused>(start_at(-behind.ms - 1)));
}

TEST(SystemClock, TheOperatorsFlagDecidesHowMuchTimeHasPassed) {
  machine here;
  here.boot_id = "boot-2";
  const instant stopped = anchor_of_boot_1().coordinator_time;
  here.wall_ms = anchor_of_boot_1().wall_ms + 3 * day_ms;
  EXPECT_EQ(started(here, anchor_of_boot_1(), accepted_clock::wall)->now(),
            stopped + duration{3 * day_ms});
  EXPECT_EQ(started(here, anchor_of_boot_1(), accepted_clock::anchor)->now(), stopped);
  here.wall_ms = anchor_of_boot_1().wall_ms - day_ms;
  EXPECT_EQ(started(here, anchor_of_boot_1(), accepted_clock::wall)->now(), stopped);
  EXPECT_EQ(started(here, anchor_of_boot_1(), accepted_clock::wall)->basis(),
            clock_basis::operator_);
}

TEST(SystemClock, AFlagChangesNothingWhereItIsNotNeeded) {
  machine here;
  const auto clock = started(here, anchor_of_boot_1(), accepted_clock::anchor);
  EXPECT_EQ(clock->now(), instant{1'699'000'010'000});
  EXPECT_EQ(clock->basis(), clock_basis::boot);
}

TEST(SystemClock, AnUnknownBootIsNeverTheSameBoot) {
  machine here;
  here.boot_id = "";
  clock_anchor stored = anchor_of_boot_1();
  stored.boot_id = "";
  here.wall_ms = stored.wall_ms + 5;
  EXPECT_EQ(started(here, stored)->basis(), clock_basis::wall);
}

TEST(SystemClock, ABoottimeBeforeTheAnchorIsNotTheSameBoot) {
  machine here;
  here.boottime_ms = 39'999;
  here.wall_ms = anchor_of_boot_1().wall_ms + 5;
  EXPECT_EQ(started(here, anchor_of_boot_1())->basis(), clock_basis::wall);
}

TEST(SystemClock, TheMachinesOwnClocksGoOn) {
  auto outcome = system_clock::start(machine_clocks(), std::nullopt, max_downtime);
  const auto& clock = std::get<std::shared_ptr<system_clock>>(outcome);
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&clock] {
      instant last;
      for (int n = 0; n < 10'000; ++n) {
        const instant read = clock->now();
        ASSERT_GE(read, last);
        last = read;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_FALSE(clock->anchor().boot_id.empty());
}

}  // namespace
}  // namespace leasehold::server
