// The n-th call of the store's file system fails while the process starts or ends: it says why it
// does not start, and starts on what is left as soon as the disk lets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "disk_faults.hpp"
#include "scene.hpp"
#include "src/store/sqlite_backup.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;
using protocol::lease_state;

class StartFaults : public ::testing::Test {
 protected:
  /// What the process finds: a directory that is not there, or one that a killed process, or a
  /// backup, has left.
  void leave_killed() {
    const temporary_directory running;
    scene s(running.path(), clock());
    s.hold("held");
    submit(*s.rig, "offered");
    s.rig->checkpoint();
    s.worker().renew("held", 1, 1);
    left_ = std::make_unique<temporary_directory>();
    copy(running.path(), left_->path());
  }
  void leave_backup() {
    const temporary_directory running;
    scene s(running.path(), clock());
    s.hold("held");
    left_ = std::make_unique<temporary_directory>();
    const auto made = storage::backup_store({.from = running.path(), .to = left_->path()});
    ASSERT_TRUE(std::holds_alternative<storage::backup_report>(made));
  }

  static void copy(const fs::path& from, const fs::path& to) {
    fs::copy(from, to, fs::copy_options::recursive);
  }
  static std::shared_ptr<manual_clock> clock(std::int64_t ms = 1'000'000) {
    auto made = std::make_shared<manual_clock>();
    made->set(protocol::instant{ms});
    return made;
  }

  /// Starts once with the fault and once without; whether it was hit.
  bool start(const file_fault& what, std::int64_t n, bool lasts) {
    const temporary_directory parent;
    const auto directory = parent.path() / "data";
    if (left_) copy(left_->path(), directory);
    const auto rows = left_ ? rows_of(directory) : std::vector<protocol::stored_row>{};
    disk_.fail(what, n, lasts);
    auto began = std::make_unique<scene>(directory, clock(1'010'000), options_);
    const bool hit = disk_.hits() > 0;
    // A fault of the start alone: what comes after is another test's.
    disk_.mend();
    if (!hit) {
      EXPECT_FALSE(began->start_error());
      return false;
    }
    if (began->start_error()) {
      ++refused_;
      EXPECT_FALSE(began->start_error()->sentence.empty());
      EXPECT_NE(began->start_error()->what, actors::store_error::kind::taken);
    }
    began.reset();
    expect_start(directory, rows);
    return true;
  }

  void expect_start(const fs::path& directory, const std::vector<protocol::stored_row>& rows) {
    scene again(directory, clock(1'020'000), options_);
    ASSERT_FALSE(again.start_error()) << again.start_error()->sentence;
    EXPECT_EQ(submit(*again.rig, "new").reason, protocol::reason::submitted);
    if (left_) {
      EXPECT_TRUE(job(*again.rig, "held"));
    }
    expect_proven(directory);
    const auto now = rows_of(directory);
    ASSERT_GE(now.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(now[i], rows[i]);
    if (options_.restored_backup) {
      EXPECT_GE(
          std::ranges::count_if(
              now, [](const auto& r) { return r.input.kind == protocol::event_kind::restore; }),
          1);
    }
  }

  void start_with_every_fault() {
    const int cases = for_each_fault([this](const file_fault& what, std::int64_t n, bool lasts) {
      return start(what, n, lasts);
    });
    std::cout << cases << " faults, " << refused_ << " refused\n";
    EXPECT_GT(refused_, 0);
  }

  faulty_vfs disk_;
  std::unique_ptr<temporary_directory> left_;
  scene_options options_;
  int refused_ = 0;
};

TEST_F(StartFaults, OfANewDirectoryLeaveOneThatCanBeStartedOn) { start_with_every_fault(); }

TEST_F(StartFaults, OfARecoveryLoseNothing) {
  leave_killed();
  start_with_every_fault();
}

TEST_F(StartFaults, OfARestoredBackupStillRaiseTheFloors) {
  leave_backup();
  options_.restored_backup = true;
  start_with_every_fault();
}

TEST_F(StartFaults, AtTheEndOfALifeAreMendedByTheNext) {
  const int cases = for_each_fault([this](const file_fault& what, std::int64_t n, bool lasts) {
    const temporary_directory parent;
    const auto directory = parent.path() / "data";
    auto life = std::make_unique<scene>(directory, clock());
    life->hold("held");
    life->rig->checkpoint();
    const auto rows = rows_of(directory);
    disk_.fail(what, n, lasts);
    life.reset();
    const bool hit = disk_.hits() > 0;
    disk_.mend();
    left_ = std::make_unique<temporary_directory>();
    expect_start(directory, rows);
    return hit;
  });
  std::cout << cases << " faults\n";
}

}  // namespace
}  // namespace leasehold::tests
