// The C++ client through a channel that reorders, repeats and drops frames both ways, against a
// live coordinator: every job is done, and done once.
#include <map>
#include <mutex>

#include "leasehold/client/worker.hpp"
#include "live_server.hpp"

namespace leasehold::e2e {
namespace {

using client::job;
using client::worker;

constexpr int jobs = 30;

/// How often the work of each job was begun.
class begun {
 public:
  void note(const std::string& id) {
    const std::lock_guard hold(mutex_);
    ++times_[id];
  }
  [[nodiscard]] std::map<std::string, int> times() const {
    const std::lock_guard hold(mutex_);
    return times_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> times_;
};

class chaos : public on_threads {
 protected:
  live_server server{GetParam()};
  begun began;

  client::worker_options options(const std::string& chosen, bool json_wire) {
    client::worker_options out;
    out.urls = {server.url()};
    out.token = server.token("w1");
    out.queues = {{"q", 8, {}}};
    out.json = json_wire;
    out.reconnect_most = {500};
    out.chaos = std::get<client::chaos_options>(client::parse_chaos(chosen));
    out.on_job = [this](const job& work) {
      began.note(work.id());
      for (const auto* step : {"a", "b", "c"}) work.progress(step);
      work.complete("done " + work.id());
    };
    return out;
  }

  void submit_all() {
    for (int i = 0; i < jobs; ++i) {
      // A lost offer is made again soon; a lease outlives every stall of the machine.
      server.submit(
          "job-" + std::to_string(i),
          {{"ack_timeout_ms", 1000}, {"recovery_grace_ms", 500}, {"lease_duration_ms", 60'000}});
    }
  }

  bool all_completed() {
    return eventually(
        [this] {
          const auto said = server.get("/v1/jobs?state=completed");
          const auto* found = said.body.if_contains("jobs");
          return found != nullptr && found->as_array().size() == jobs;
        },
        std::chrono::seconds{60});
  }

  void expect_each_done_once() {
    for (int i = 0; i < jobs; ++i) {
      const auto id = "job-" + std::to_string(i);
      SCOPED_TRACE(id);
      EXPECT_EQ(began.times()[id], 1);
      expect_columns(server.job(id), {{"state", "completed"},
                                      {"terminal_result", "success"},
                                      {"terminal_detail", "done " + id},
                                      {"progress_value", "c"},
                                      {"attempt", 1}});
      int accepted = 0;
      for (const auto& row : server.evidence(id)) {
        accepted += row.at("event") == "result" && row.at("decision") == "accepted" ? 1 : 0;
      }
      EXPECT_EQ(accepted, 1);
    }
  }
};
LEASEHOLD_ON_THREADS(chaos);

TEST_P(chaos, ThirtyJobsAreEachCompletedOnceThroughABadChannel) {
  submit_all();
  worker one(options("reorder=0.3,dup=0.2,drop=0.1,delay=1..40ms,seed=7", false));
  ASSERT_EQ(one.start(), std::nullopt);
  ASSERT_TRUE(all_completed());
  EXPECT_TRUE(one.stop({10'000}, {1'000}));
  expect_each_done_once();
  // The channel was as bad as it was asked to be: the coordinator has heard of repeats.
  EXPECT_NE(server.metrics().find("duplicate_terminal"), std::string::npos);
  expect_replayable(server, "job-13");
  expect_proven(server);
}

TEST_P(chaos, ThirtyJobsAreEachCompletedOnceThoughTheCoordinatorIsKilled) {
  submit_all();
  worker one(options("reorder=0.2,dup=0.1,drop=0.05,delay=1..20ms,seed=11", true));
  ASSERT_EQ(one.start(), std::nullopt);
  ASSERT_TRUE(eventually([this] { return began.times().size() >= jobs / 3; }));
  server.kill();
  server.start();
  ASSERT_TRUE(all_completed());
  EXPECT_TRUE(one.stop({10'000}, {1'000}));
  expect_each_done_once();
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
