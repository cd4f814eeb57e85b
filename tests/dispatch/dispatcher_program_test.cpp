// `leaseholdd dispatcher` against real processes, which count the signals that they get.
#include <signal.h>
#include <sys/wait.h>

#include "gate_scene.hpp"
#include "recycled_number.hpp"
#include "src/controllers/process_stat.hpp"
#include "target_process.hpp"

namespace leasehold::tests {
namespace {

using protocol::dispatch_event_kind;
using protocol::dispatch_result;
using protocol::dispatch_status;

class DispatcherProgram : public gate_scene {
 protected:
  void expect_untouched(const target_process& target) {
    EXPECT_TRUE(target.lives());
    EXPECT_EQ(target.signals(), 0);
  }
  void expect_ended(int number, dispatch_status status, dispatch_result result) {
    const auto record = at(raced_key(number));
    EXPECT_EQ(record.status, status) << number;
    EXPECT_EQ(record.last_result, result) << number;
  }
};

TEST_P(DispatcherProgram, ItStopsWhatIsTheOneAndTouchesNothingElse) {
  target_process obeys;
  target_process ignores({"ignore", "child"});
  target_process stranger;
  target_process elsewhere;
  target_process moved;
  target_process malformed;
  open_process(raced_key(0), obeys.handle());
  open_process(raced_key(1), ignores.handle());
  auto of_stranger = stranger.handle();
  of_stranger.start_ticks -= 1;
  open_process(raced_key(2), of_stranger);
  auto of_elsewhere = elsewhere.handle();
  of_elsewhere.boot_id = "00000000-0000-4000-8000-000000000000";
  open_process(raced_key(3), of_elsewhere);
  open_process(raced_key(4), moved.handle());
  moved.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return moved.told("moved") == 1; }));
  auto of_malformed = malformed.handle();
  of_malformed.platform = "plan9";
  open_process(raced_key(5), of_malformed);

  EXPECT_EQ(dispatch_once("log", {"--term-grace", "300ms"}), 0) << e2e::content_of(file("log"));
  expect_ended(0, dispatch_status::dispatched, dispatch_result::already_exited);
  EXPECT_EQ(obeys.told("TERM"), 1);
  expect_ended(1, dispatch_status::dispatched, dispatch_result::already_exited);
  EXPECT_EQ(ignores.told("TERM"), 2) << "one each of the group";
  EXPECT_FALSE(ignores.lives());
  expect_ended(2, dispatch_status::blocked, dispatch_result::identity_mismatch);
  EXPECT_EQ(at(raced_key(3)).status, dispatch_status::pending) << "another host's";
  expect_ended(4, dispatch_status::blocked, dispatch_result::pid_mismatch);
  expect_ended(5, dispatch_status::blocked, dispatch_result::unsupported);
  for (const auto* each : {&stranger, &elsewhere, &moved, &malformed}) expect_untouched(*each);
  EXPECT_EQ(events(raced_key(2)).back().kind, dispatch_event_kind::cancel_dispatch_blocked);

  // Whoever acts for that host, as after a start of the machine, finds that it has ended.
  EXPECT_EQ(dispatch_once("log", {"--host", of_elsewhere.boot_id}), 0);
  expect_ended(3, dispatch_status::dispatched, dispatch_result::already_exited);
  // Blocked and dispatched are never called again.
  EXPECT_EQ(dispatch_once("log"), 0);
  for (const auto* each : {&stranger, &elsewhere, &moved, &malformed}) expect_untouched(*each);
  for (const int number : {0, 1, 2, 4, 5}) EXPECT_EQ(at(raced_key(number)).dispatch_count, 2);
}

TEST_P(DispatcherProgram, ARecycledPidGetsNoSignal) {
  if (const auto why = why_not_recycled("*DispatcherProgram.ARecycledPidGetsNoSignal*"); why) {
    if (*why == recycling::done_elsewhere) return;
    if (*why == recycling::not_wanted) GTEST_SKIP() << recycling_is_skipped;
    FAIL() << recycling_is_impossible;
  }
  recycled_number again;
  open_process(raced_key(0), again.former);
  EXPECT_EQ(dispatch_once("log"), 0);
  expect_ended(0, dispatch_status::blocked, dispatch_result::identity_mismatch);
  expect_untouched(*again.target);
}

TEST_P(DispatcherProgram, ADispatcherKilledAfterItsSignalIsFollowedByOneThatProvesAgain) {
  target_process same({"ignore"});
  target_process gone({"ignore"});
  target_process moved({"ignore"});
  int number = 0;
  for (const auto* each : {&same, &gone, &moved}) open_process(raced_key(number++), each->handle());
  const std::vector<std::string> slow{"--claim", "2s",          "--term-grace",
                                      "1900ms",  "--kill-wait", "50ms"};
  {
    const auto first = dispatcher("first", slow);
    ASSERT_TRUE(eventually([&] {
      return same.told("TERM") == 1 && gone.told("TERM") == 1 && moved.told("TERM") == 1;
    }));
    first->signal(SIGKILL);
    EXPECT_EQ(first->wait(), 128 + SIGKILL);
  }
  for (const int each : {0, 1, 2}) {
    EXPECT_EQ(at(raced_key(each)).status, dispatch_status::leased);
    EXPECT_EQ(events(raced_key(each)).size(), 1U) << "of the stream alone";
  }
  gone.signal(SIGKILL);
  gone.wait();
  moved.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return moved.told("moved") == 1; }));
  EXPECT_EQ(dispatch_once("second", {"--term-grace", "100ms"}), 0);
  for (const int each : {0, 1, 2}) {
    EXPECT_EQ(at(raced_key(each)).dispatch_count, 2) << "an unexpired claim is not taken over";
  }
  EXPECT_EQ(same.told("TERM"), 1);

  const auto expires = at(raced_key(2)).lease_expires_at + protocol::duration{100};
  ASSERT_TRUE(eventually([&] { return now() >= expires; }));
  EXPECT_EQ(dispatch_once("second", {"--term-grace", "100ms"}), 0);
  expect_ended(0, dispatch_status::dispatched, dispatch_result::already_exited);
  EXPECT_EQ(same.told("TERM"), 2) << "the same process is proven, and asked again";
  EXPECT_FALSE(same.lives());
  expect_ended(1, dispatch_status::dispatched, dispatch_result::already_exited);
  expect_ended(2, dispatch_status::blocked, dispatch_result::pid_mismatch);
  EXPECT_TRUE(moved.lives());
  EXPECT_EQ(moved.signals(), 1) << "of the first alone";
  for (const int each : {0, 1, 2}) EXPECT_EQ(at(raced_key(each)).dispatch_count, 3);
}

TEST_P(DispatcherProgram, NoHandleTokenCommandOrEnvironmentIsInWhatItSays) {
  target_process target({"named", "canary-command"});
  target_process stranger({"named", "canary-command"});
  const auto handle = target.handle();
  auto of_stranger = stranger.handle();
  of_stranger.start_ticks += 4'711'000'000;
  open_process(raced_key(0), handle);
  open_process(raced_key(1), of_stranger);
  const auto run = dispatcher("log", {"--owner", "canary-owner"}, {"CANARY=canary-environment"});
  ASSERT_TRUE(eventually([&] {
    return at(raced_key(0)).status == dispatch_status::dispatched &&
           at(raced_key(1)).status == dispatch_status::blocked;
  }));
  run->signal(SIGTERM);
  EXPECT_EQ(run->wait(), 0);
  auto said = e2e::content_of(file("log"));
  EXPECT_NE(said.find("cancels dispatched"), std::string::npos) << said;
  for (const int number : {0, 1}) {
    for (const auto& each : events(raced_key(number))) {
      EXPECT_TRUE(each.result != dispatch_result::none);
    }
    EXPECT_EQ(at(raced_key(number)).lease_token, "");
  }
  for (const auto& canary :
       {handle.boot_id, std::to_string(of_stranger.start_ticks),
        "\"" + std::to_string(handle.pid) + "\"", ":" + std::to_string(handle.pid) + ",",
        std::to_string(handle.start_ticks), std::string("canary-command"),
        std::string("canary-environment"), std::string("start_ticks"), std::string("token")}) {
    EXPECT_EQ(said.find(canary), std::string::npos) << canary << " in " << said;
  }
}

TEST_P(DispatcherProgram, TermEndsItAtOnceAtRestAndWithinItsBoundAtWork) {
  const auto rests = dispatcher("rests");
  ASSERT_TRUE(eventually(
      [&] { return e2e::content_of(file("rests")).find("started") != std::string::npos; }));
  rests->signal(SIGTERM);
  EXPECT_EQ(rests->wait(std::chrono::seconds{10}), 0);

  target_process ignores({"ignore"});
  open_process(raced_key(0), ignores.handle());
  const auto works = dispatcher("works", {"--term-grace", "20s"});
  ASSERT_TRUE(eventually([&] { return ignores.told("TERM") == 1; }));
  works->signal(SIGTERM);
  EXPECT_EQ(works->wait(std::chrono::seconds{15}), 3);
  EXPECT_TRUE(ignores.lives()) << "its claim runs out, and another takes over";
  EXPECT_EQ(at(raced_key(0)).status, dispatch_status::leased);
}

INSTANTIATE_TEST_SUITE_P(Stores, DispatcherProgram, testing::Values("sqlite", "postgres"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace leasehold::tests
