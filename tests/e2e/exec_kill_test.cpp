// `leasehold exec` under the real coordinator: whichever of its processes is killed, the group of
// the command is gone by the deadline that the coordinator tells, and the next holder gets a higher
// token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "live_server.hpp"
#include "tools/exec/process_group.hpp"

namespace leasehold::e2e {
namespace {

using std::chrono::milliseconds;
using testing::Optional;

/// How late the end of a group may be seen after the deadline.
constexpr milliseconds latest{100};

/// Only KILL ends it, and it has a child in its group; its parent is the watchdog.
constexpr auto stubborn =
    "trap '' TERM INT HUP; sleep 60 & echo $PPID $$ > $D/started; while :; do sleep 60; done";

std::int64_t wall_ms() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class killed_exec : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(kept_.path() / "token") << server_.token("client");
    start(stubborn);
    await_start();
  }

  void start(const std::string& script) {
    run_ = std::make_unique<program_run>(
        LEASEHOLD,
        std::vector<std::string>{"--url", server_.url(), "--token-file", kept_.path() / "token",
                                 "exec", "--program", "p", "--opaque", "x", "--ttl", "2s", "--wait",
                                 "20s", "--", "/bin/sh", "-c", script},
        kept_.path() / "output", std::vector<std::string>{"D=" + kept_.path().string()});
  }

  void await_start() {
    const auto file = kept_.path() / "started";
    ASSERT_TRUE(eventually([&] { return content_of(file).ends_with('\n'); })) << output();
    std::ifstream(file) >> watchdog_ >> group_;
  }

  std::string output() const { return content_of(kept_.path() / "output"); }
  json::object lock() { return server_.get("/v1/locks/default%2Fp%2Fopaque:x%2F%2F").body; }
  std::int64_t deadline_ms() { return lock().at("expires_at").as_int64(); }

  /// How long after the wall time `by` the group was first seen to be gone; negative: before it.
  milliseconds gone_after(std::int64_t by) const {
    EXPECT_TRUE(eventually([&] { return !tools::group_lives(group_); })) << output();
    return milliseconds{wall_ms() - by};
  }

  tests::temporary_directory kept_;
  live_server server_{1};
  std::unique_ptr<program_run> run_;
  pid_t watchdog_ = -1;
  pid_t group_ = -1;
};

TEST_F(killed_exec, WithoutExecTheGroupIsGoneByTheDeadlineAndNobodyHasTheLockBefore) {
  run_->signal(SIGKILL);
  ASSERT_THAT(run_->wait(), Optional(128 + SIGKILL));
  const auto deadline = deadline_ms();
  EXPECT_LT(gone_after(deadline), latest);
  start("echo $LEASEHOLD_TOKEN > $D/next");
  ASSERT_THAT(run_->wait(), Optional(0)) << output();
  EXPECT_EQ(content_of(kept_.path() / "next"), "2\n");
  EXPECT_GE(wall_ms(), deadline);
}

TEST_F(killed_exec, WithoutTheWatchdogTheGroupIsGoneByTheDeadlineAndTheLockIsGivenBack) {
  ::kill(watchdog_, SIGKILL);
  EXPECT_LT(gone_after(deadline_ms()), latest);
  EXPECT_THAT(run_->wait(), Optional(125)) << output();
  EXPECT_EQ(lock().at("state").as_string(), "released");
}

TEST_F(killed_exec, WithoutACoordinatorTheGroupIsGoneByTheLastDeadlineThatItTold) {
  server_.kill();
  const auto gone = gone_after(0).count();
  EXPECT_THAT(run_->wait(), Optional(120)) << output();
  server_.start();
  std::int64_t deadline = 0;
  for (const auto& row : server_.all_evidence()) {
    if (row.at("state").as_string() != "active") continue;
    deadline = std::max(deadline, row.at("expires_at").as_int64());
  }
  EXPECT_LT(gone, deadline);
}

TEST_F(killed_exec, ACoordinatorThatIsBackWithinTheTermKeepsTheCommandAtWork) {
  server_.kill();
  server_.start();
  const auto before = lock().at("renew_sequence").as_int64();
  EXPECT_TRUE(eventually([&] { return lock().at("renew_sequence").as_int64() > before; }));
  EXPECT_TRUE(tools::group_lives(group_));
  EXPECT_EQ(lock().at("fencing_token").as_int64(), 1);
}

}  // namespace
}  // namespace leasehold::e2e
