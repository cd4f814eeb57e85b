// The fencing token of a job rises over every life of it: granted and expired, forgotten and
// submitted again, killed in between, and restored from a backup that knows nothing of the grants
// since.
#include <gtest/gtest.h>

#include <iostream>

#include "scene.hpp"
#include "src/store/sqlite_backup.hpp"
#include "support/faulty_vfs.hpp"
#include "support/running_copy.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using protocol::lease_state;

class RisingTokens : public ::testing::Test {
 protected:
  RisingTokens() {
    options_.actors.forget_after = {60'000};
    options_.actors.retention = {300'000};
    options_.actors.retention_check = {1'000};
    lost_once_.on_expiry = protocol::on_deadline::fail;
    clock_->set(protocol::instant{1'700'000'000'000});
    start(directory_->path() / "0");
  }

  void start(fs::path directory, bool restored = false) {
    scene_.reset();
    options_.restored_backup = restored;
    scene_ = std::make_unique<scene>(std::move(directory), clock_, options_);
    ASSERT_FALSE(scene_->start_error()) << scene_->start_error()->sentence;
    scene_->worker().credit(1);
    // After a restore nothing is granted before the longest lease is over.
    if (restored) scene_->rig->advance(60'000);
  }

  /// From the submit to the end of its holder's time; the token that it had.
  std::int64_t grant_and_expire() {
    actors::job_spec spec;
    spec.policy = lost_once_;
    submit(*scene_->rig, "j", spec);
    const auto granted = job(*scene_->rig, "j");
    EXPECT_TRUE(granted && granted->state->state == lease_state::offered);
    const auto token = granted ? granted->state->gen.value : 0;
    EXPECT_EQ(scene_->worker().ack("j", token).reason, protocol::reason::ack_accepted);
    scene_->rig->advance(31'000);
    return token;
  }
  void forget() {
    scene_->rig->checkpoint();
    scene_->rig->advance(62'000);
    EXPECT_FALSE(job(*scene_->rig, "j"));
  }
  void expect_to_rise(std::int64_t token) {
    EXPECT_GT(token, highest_);
    highest_ = std::max(highest_, token);
  }

  faulty_vfs disk_;  ///< without a fault: it spares the disk the fsyncs
  std::unique_ptr<temporary_directory> directory_ = std::make_unique<temporary_directory>();
  std::shared_ptr<manual_clock> clock_ = std::make_shared<manual_clock>();
  scene_options options_;
  protocol::policy lost_once_;
  std::unique_ptr<scene> scene_;
  std::int64_t highest_ = 0;
};

TEST_F(RisingTokens, NoTokenOfAThousandLivesIsGivenTwice) {
  constexpr int cycles = 1'000;
  constexpr int cycles_of_a_backup = 50;
  int restores = 0;
  fs::path backup;
  for (int i = 1; i <= cycles && !HasFailure(); ++i) {
    SCOPED_TRACE("cycle " + std::to_string(i));
    expect_to_rise(grant_and_expire());
    forget();
    if (i % 10 == 3) scene_->rig->cut_log();
    // The process ends with a forgotten job that no checkpoint knows of yet.
    if (i % 10 == 7) start(scene_->directory());
    if (i % cycles_of_a_backup == cycles_of_a_backup - 5) {
      backup = directory_->path() / std::to_string(++restores);
      const auto made = storage::backup_store({.from = scene_->directory(), .to = backup});
      ASSERT_TRUE(std::holds_alternative<storage::backup_report>(made));
    } else if (i % cycles_of_a_backup == 0) {
      expect_proven(scene_->directory());
      const auto lost = scene_->directory();
      start(backup, true);
      fs::remove_all(lost);
    }
  }
  expect_proven(scene_->directory());
  EXPECT_EQ(restores, cycles / cycles_of_a_backup);
  std::cout << cycles << " cycles, " << restores << " restores, the last token " << highest_
            << "\n";
}

/// A checkpoint is written in several transactions. Power goes between them: records of the newer
/// checkpoint stand beside the older one's floors.
TEST_F(RisingTokens, ACheckpointThatStopsHalfWayForgetsNoToken) {
  std::int64_t given = 0;
  for (int i = 0; i < 3; ++i) {
    given = grant_and_expire();
    forget();
  }
  scene_->rig->checkpoint();
  given = grant_and_expire();
  forget();
  // The name is taken again, and nothing is granted yet; many others stand beside it.
  scene_->worker().credit(0);
  submit(*scene_->rig, "j");
  for (int i = 0; i < 300; ++i) submit(*scene_->rig, "k" + std::to_string(i));
  const auto started_on = directory_->path() / "killed";
  tests::copy_of_running(scene_->directory(), started_on);
  int half = 0;
  bool hit = true;
  for (std::int64_t n = 1; hit && !HasFailure(); ++n) {
    SCOPED_TRACE("write " + std::to_string(n));
    const temporary_directory parent;
    const auto running = parent.path() / "running";
    const auto killed = parent.path() / "killed";
    fs::copy(started_on, running, fs::copy_options::recursive);
    scene life(running, clock_, options_);
    ASSERT_FALSE(life.start_error()) << life.start_error()->sentence;
    const auto before = life.rig->counters->checkpoint_row.value();
    disk_.fail({file_calls::write, SQLITE_FULL}, n, true);
    life.rig->checkpoint();
    hit = disk_.hits() > 0;
    tests::copy_of_running(running, killed);
    disk_.mend();
    half += hit && life.rig->counters->checkpoint_row.value() == before ? 1 : 0;
    scene next(killed, clock_, options_);
    ASSERT_FALSE(next.start_error()) << next.start_error()->sentence;
    next.worker().credit(400);
    const auto granted = job(*next.rig, "j");
    ASSERT_TRUE(granted);
    EXPECT_GT(granted->state->gen.value, given);
    next.rig->checkpoint();
    expect_proven(killed);
  }
  EXPECT_GT(half, 0);
}

}  // namespace
}  // namespace leasehold::tests
