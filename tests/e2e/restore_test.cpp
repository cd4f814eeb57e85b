// The fencing token of a job over the real program: granted and expired, killed in between,
// forgotten and submitted again, and restored from a backup.
#include <signal.h>

#include <chrono>

#include "faults/scene.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::reason;

const json::object soon_over{{"lease_duration_ms", 150},
                             {"ack_timeout_ms", 1'000},
                             {"recovery_grace_ms", 0},
                             {"max_attempts", 1'000}};

protocol::instant wall_now() {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

class Restore : public testing::Test {
 protected:
  /// A job that was settled long ago, with this token.
  static void leave_settled(const std::filesystem::path& data, std::int64_t& token) {
    constexpr protocol::duration ago{900'000};
    const auto clock = std::make_shared<tests::manual_clock>();
    clock->set(wall_now() - ago);
    tests::scene past(data, clock);
    ASSERT_FALSE(past.start_error()) << past.start_error()->sentence;
    past.worker().credit(1);
    actors::job_spec spec;
    spec.queue = "q";
    tests::submit(*past.rig, "j", spec);
    for (token = 1; token < 4; ++token) {
      past.worker().ack("j", token);
      past.worker().tell(past.worker().frame(event_kind::release, "j", token));
    }
    past.worker().ack("j", token);
    EXPECT_EQ(past.worker().result("j", token).reason, reason::completed);
    past.rig->checkpoint();
  }

  void expect_to_rise(std::int64_t token) {
    EXPECT_GT(token, highest_);
    highest_ = std::max(highest_, token);
  }

  /// Takes the job's next offer and lets its time pass.
  void let_expire(stream_peer& worker) {
    auto offer = worker.await<protocol::offer>();
    // After a restore nothing is granted before the longest lease is over.
    if (!offer) offer = worker.await<protocol::offer>();
    ASSERT_TRUE(offer);
    const auto token = offer->standing.gen.value;
    expect_to_rise(token);
    worker.start("j", token);
    EXPECT_TRUE(worker.loss_of("j"));
  }
  /// A session of its own, so that no offer of another is on its way to it.
  void let_expire(live_server& server, char digit, int times) {
    stream_peer worker(server, "keeper", digit);
    worker.hello();
    worker.credit(1);
    for (int i = 0; i < times && !HasFailure(); ++i) let_expire(worker);
  }

  std::int64_t highest_ = 0;
};

TEST_F(Restore, TokensRiseOverExpiryKillsForgettingAndARestoredBackup) {
  const std::vector<std::string> forgetting{"--forget-after", "10m"};
  live_server server(1, forgetting, {},
                     [this](const auto& data) { leave_settled(data, highest_); });
  ASSERT_GE(highest_, 4);
  EXPECT_TRUE(eventually([&] { return server.get("/v1/jobs/j", "keeper").status == 404; }))
      << server.log();
  const json::object again{{"queue", "q"}, {"job_id", "j"}, {"policy", soon_over}};
  ASSERT_EQ(server.post("/v1/jobs", again, "keeper").status, 201);
  for (char digit = 'a'; digit < 'e'; ++digit) {
    let_expire(server, digit, 4);
    server.kill();
    server.start();
  }
  const tests::temporary_directory kept;
  const auto backup = kept.path() / "backup";
  const auto made =
      run_leasehold({"store", "backup", "--data", server.data().string(), "--to", backup.string()});
  EXPECT_EQ(made.exit_code, 0) << made.output;
  let_expire(server, 'e', 3);
  server.signal(SIGTERM);
  server.signal(SIGTERM);
  ASSERT_TRUE(server.wait_for_end());

  for (const char* file : {"leasehold.db", "leasehold.db-wal", "leasehold.db-shm", "head"}) {
    std::filesystem::remove(server.data() / file);
  }
  std::filesystem::copy_file(backup / "leasehold.db", server.data() / "leasehold.db");
  server.start_with({"--forget-after", "10m", "--restored-backup"});
  let_expire(server, 'f', 2);
  EXPECT_GT(highest_, std::int64_t{1} << 32);
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
