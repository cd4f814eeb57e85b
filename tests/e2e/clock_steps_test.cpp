// The wall clock is set while the server runs, while it is down, and while the machine starts anew:
// no lease lives longer or shorter for it (protocol.md 3).
#include <algorithm>
#include <array>

#include "clock_scene.hpp"

namespace leasehold::e2e {
namespace {

using std::chrono::seconds;

constexpr hours day{24};
/// What a busy machine may let pass between two things that the server does at once.
constexpr std::int64_t stall_ms = 30'000;

struct wall_fault {
  const char* name;
  bool absolute;
  milliseconds by;  ///< or since 1970

  void happen(false_clocks& clocks) const { absolute ? clocks.set_wall(by) : clocks.step_wall(by); }
};
const std::array<wall_fault, 4> wall_faults{{{"an hour on", false, hours{1}},
                                             {"an hour back", false, -hours{1}},
                                             {"1970", true, seconds{100}},
                                             {"2040", true, seconds{2'208'988'800}}}};

class clock_steps : public clock_scene {};
LEASEHOLD_ON_THREADS(clock_steps);

TEST_P(clock_steps, MoveNothingWhileItRuns) {
  auto server = make_server();
  auto worker = worker_of(server);
  begin(server, worker, "kept", hours{2});
  begin(server, worker, "renewed", hours{2});
  const auto kept_until = expires_at(server, "kept");
  for (std::size_t i = 0; i < wall_faults.size(); ++i) {
    SCOPED_TRACE(wall_faults[i].name);
    const auto job = "brief-" + std::to_string(i);
    begin_mortal(server, worker, job, milliseconds{60});
    wall_faults[i].happen(clocks);
    EXPECT_TRUE(server.reaches(job, "failed"));
    expect_expired_at_its_deadline(server, job);
    expect_renewed(server, worker, "renewed", static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(expires_at(server, "kept"), kept_until);
    // The commit of that renew has the false day beside the true time.
    EXPECT_NEAR(static_cast<double>(anchors_of(server).back().wall_ms),
                static_cast<double>(clocks.wall_ms()), stall_ms);
  }
  expect_one_clock(anchors_of(server));
  server.kill();
  expect_proven(server);
}

TEST_P(clock_steps, MoveNothingAcrossARestartInTheSameBoot) {
  auto server = make_server();
  {
    auto worker = worker_of(server);
    begin(server, worker, "kept", hours{2});
  }
  const auto kept_until = expires_at(server, "kept");
  for (std::size_t i = 0; i < wall_faults.size(); ++i) {
    SCOPED_TRACE(wall_faults[i].name);
    const auto job = "brief-" + std::to_string(i);
    {
      auto worker = worker_of(server);
      begin_mortal(server, worker, job, milliseconds{100});
    }
    const auto deadline = expires_at(server, job);
    server.kill();
    wall_faults[i].happen(clocks);
    EXPECT_TRUE(eventually([&] { return coordinator_now(server) > deadline; }));
    server.start();
    expect_basis(server, "boot");
    expect_columns(server.job(job), {{"state", "failed"}});
    expect_expired_at_its_deadline(server, job);
    expect_columns(server.job("kept"),
                   {{"state", "active"}, {"expires_at", kept_until}, {"graces", 0}});
  }
  expect_one_clock(anchors_of(server));
  auto worker = worker_of(server);
  expect_renewed(server, worker, "kept", 1);
  server.kill();
  expect_proven(server);
}

TEST_P(clock_steps, SayInAnotherBootHowMuchTimeHasPassed) {
  auto server = make_server();
  {
    auto worker = worker_of(server);
    begin(server, worker, "kept", hours{3});
    begin_mortal(server, worker, "over", minutes{30});
    begin(server, worker, "graced", minutes{30}, {{"outage_expiry", "extend"}});
    server.submit("offered", {{"ack_timeout_ms", 600'000}, {"on_ack_timeout", "fail"}});
    ASSERT_TRUE(worker.offer_of("offered"));
  }
  const auto kept_until = expires_at(server, "kept");
  server.kill();
  const auto old_boot = anchors_of(server);
  clocks.boot(30 * day);  // its clock runs ahead of the former boot's, which means nothing
  clocks.step_wall(hours{1});
  server.start();
  expect_basis(server, "wall");
  expect_columns(server.job("kept"),
                 {{"state", "active"}, {"expires_at", kept_until}, {"graces", 0}});
  expect_columns(server.job("over"), {{"state", "failed"}});
  expect_expired_at_its_deadline(server, "over");
  expect_columns(server.job("offered"), {{"state", "failed"}, {"ack_state", "missed"}});
  expect_expired_at_its_deadline(server, "offered");
  const auto grace = last_row(server.evidence("graced"), "recover");
  expect_columns(grace, {{"reason", "recovery_grace"}, {"graces", 1}});
  EXPECT_EQ(grace.at("expires_at").as_int64(), grace.at("at").as_int64() + 5'000);

  const auto anchors = anchors_of(server);
  const auto& stopped = old_boot.back();
  const auto& went_on = anchors.at(old_boot.size());
  EXPECT_NE(went_on.boot_id, stopped.boot_id);
  EXPECT_GE(went_on.coordinator_ms - stopped.coordinator_ms, milliseconds{hours{1}}.count());
  EXPECT_NEAR(static_cast<double>(went_on.coordinator_ms - stopped.coordinator_ms),
              static_cast<double>(went_on.wall_ms - stopped.wall_ms), stall_ms);
  expect_one_clock(anchors, old_boot.size());
  auto worker = worker_of(server);
  expect_renewed(server, worker, "kept", 1);
  server.kill();
  expect_proven(server);
}

/// A server with a lease of two hours that was killed; since then the machine has started anew.
class clock_refusal : public clock_scene {
 protected:
  clock_refusal() {
    auto worker = worker_of(server);
    begin_mortal(server, worker, "kept", hours{2});
    kept_until = expires_at(server, "kept");
    worker.vanish();
    server.kill();
    clocks.boot();
  }

  /// It says in one line why it is not ready and what the operator may accept; the store is as it
  /// was.
  void expect_refusal() {
    const auto batches = anchors_of(server).size();
    const auto ended = server.start_in_vain();
    EXPECT_EQ(ended.exit_code, 1) << ended.output;
    EXPECT_EQ(std::ranges::count(ended.output, '\n'), 1) << ended.output;
    json::error_code no_json;
    const auto line = json::parse(ended.output, no_json);
    ASSERT_TRUE(!no_json && line.is_object()) << ended.output;
    expect_columns(line.as_object(), {{"level", "error"}, {"event", "not started"}});
    const std::string why(line.at("why").as_string());
    for (const auto* wanted : {"wall clock", "--accept-clock=wall", "--accept-clock=anchor"}) {
      EXPECT_NE(why.find(wanted), std::string::npos) << why;
    }
    EXPECT_EQ(anchors_of(server).size(), batches);
  }

  /// Starts with what the operator accepts; yields how much coordinator time that start let pass.
  std::int64_t start_accepting(const std::string& what) {
    const auto before = anchors_of(server);
    server.start({"--accept-clock=" + what});
    expect_basis(server, "operator");
    return anchors_of(server).at(before.size()).coordinator_ms - before.back().coordinator_ms;
  }

  void expect_kept() {
    expect_columns(server.job("kept"),
                   {{"state", "active"}, {"expires_at", kept_until}, {"graces", 0}});
  }

  live_server server = make_server();
  std::int64_t kept_until = 0;
};
LEASEHOLD_ON_THREADS(clock_refusal);

TEST_P(clock_refusal, IsOneLineForEveryClockThatCannotBeBelieved) {
  for (const wall_fault& fault : {wall_faults[1], wall_faults[2], wall_faults[3],
                                  wall_fault{"a day and an hour on", false, day + hours{1}}}) {
    SCOPED_TRACE(fault.name);
    const auto right = clocks.wall_ms();
    fault.happen(clocks);
    expect_refusal();
    clocks.set_wall(milliseconds{right});
  }
  // Once the clock is right it needs no flag.
  server.start();
  expect_basis(server, "wall");
  expect_kept();
  server.kill();
  expect_proven(server);
}

TEST_P(clock_refusal, EndsWhereTheOperatorAcceptsTheStoresTime) {
  clocks.set_wall(seconds{2'208'988'800});
  const auto passed = start_accepting("anchor");
  EXPECT_GE(passed, 0);
  EXPECT_LT(passed, stall_ms);
  expect_kept();
  // From here on that boot and that wall clock count.
  server.kill();
  server.start();
  expect_basis(server, "boot");
  expect_kept();
  server.kill();
  clocks.boot();
  clocks.step_wall(hours{3});
  server.start();
  expect_basis(server, "wall");
  expect_columns(server.job("kept"), {{"state", "failed"}});
  expect_expired_at_its_deadline(server, "kept");
  server.kill();
  expect_proven(server);
}

TEST_P(clock_refusal, EndsWhereTheOperatorAcceptsTheWallClock) {
  clocks.step_wall(-day);
  const auto passed = start_accepting("wall");
  EXPECT_GE(passed, 0) << "a clock that went back lets no time pass";
  EXPECT_LT(passed, stall_ms);
  expect_kept();
  server.kill();
  clocks.boot();
  clocks.step_wall(3 * day);
  expect_refusal();
  EXPECT_GE(start_accepting("wall"), milliseconds{3 * day}.count());
  expect_columns(server.job("kept"), {{"state", "failed"}});
  expect_expired_at_its_deadline(server, "kept");
  server.kill();
  expect_proven(server);
}

/// The first start of a store, on a machine whose clock is not set yet.
class clock_unset : public clock_scene {
 protected:
  clock_unset() {
    clocks.set_wall(seconds{100});
    server =
        std::make_unique<live_server>(GetParam(), std::vector<std::string>{}, clocks.variables());
  }

  void set_the_clock() { clocks.set_wall(seconds{1'790'000'000}); }

  std::unique_ptr<live_server> server;
};
LEASEHOLD_ON_THREADS(clock_unset);

TEST_P(clock_unset, IsSetWhileItRunsAndMovesNothing) {
  auto worker = worker_of(*server);
  begin(*server, worker, "kept", hours{3});
  begin_mortal(*server, worker, "over", minutes{30});
  const auto kept_until = expires_at(*server, "kept");
  EXPECT_LT(kept_until, milliseconds{day}.count()) << "this store's time begins in 1970";
  set_the_clock();
  begin_mortal(*server, worker, "brief", milliseconds{60});
  EXPECT_TRUE(server->reaches("brief", "failed"));
  expect_expired_at_its_deadline(*server, "brief");
  EXPECT_EQ(expires_at(*server, "kept"), kept_until);

  server->kill();
  server->start();
  expect_basis(*server, "boot");
  expect_one_clock(anchors_of(*server));
  EXPECT_EQ(expires_at(*server, "kept"), kept_until);
  expect_columns(server->job("over"), {{"state", "active"}});

  server->kill();
  clocks.boot();
  clocks.step_wall(hours{1});
  server->start();
  expect_basis(*server, "wall");
  expect_columns(server->job("kept"), {{"state", "active"}, {"expires_at", kept_until}});
  expect_columns(server->job("over"), {{"state", "failed"}});
  expect_expired_at_its_deadline(*server, "over");
  server->kill();
  expect_proven(*server);
}

TEST_P(clock_unset, AndSetAfterTheLastCommitIsForTheOperatorToJudge) {
  {
    auto worker = worker_of(*server);
    begin(*server, worker, "kept", hours{3});
  }
  const auto kept_until = expires_at(*server, "kept");
  set_the_clock();
  server->kill();
  clocks.boot();
  const auto ended = server->start_in_vain();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.output.find("--accept-clock=anchor"), std::string::npos) << ended.output;
  server->start({"--accept-clock", "anchor"});
  expect_columns(server->job("kept"), {{"state", "active"}, {"expires_at", kept_until}});
  server->kill();
  expect_proven(*server);
}

}  // namespace
}  // namespace leasehold::e2e
