// The n-th call of the store's file system fails, for every operation and every n until none is hit
// any more: what is refused never happened, what was answered stays, and the coordinator goes on as
// soon as the disk does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "disk_faults.hpp"
#include "operations.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

namespace fs = std::filesystem;

struct tally_of_cases {
  int cases = 0;
  int done = 0;
  int refused = 0;
  int ended = 0;
};

class StoreFaults : public ::testing::TestWithParam<std::size_t> {
 protected:
  StoreFaults() { const scene made(fresh_.path(), std::make_shared<manual_clock>()); }

  const operation& tried() const { return all_operations()[GetParam()]; }

  /// Without a fault.
  void SetUp() override {
    begin();
    EXPECT_EQ(tried().act(*scene_), ending::done);
    outcome_ = scene_->outcome();
    scene_.reset();
    history_ = history_of(directory_->path());
    expect_proven(directory_->path());
  }

  void begin() {
    scene_.reset();
    directory_ = std::make_unique<temporary_directory>();
    fs::copy(fresh_.path(), directory_->path(), fs::copy_options::recursive);
    clock_ = std::make_shared<manual_clock>();
    clock_->set(protocol::instant{2'000'000});
    scene_ = std::make_unique<scene>(directory_->path(), clock_, tried().options);
    ASSERT_FALSE(scene_->start_error()) << scene_->start_error()->sentence;
    tried().before(*scene_);
  }

  /// Whether the fault was hit.
  bool run(const file_fault& what, std::int64_t n, bool lasts) {
    begin();
    const auto before = scene_->state();
    const auto rows = rows_of(directory_->path());
    disk_.fail(what, n, lasts);
    const auto said = tried().act(*scene_);
    if (disk_.hits() == 0) {
      disk_.mend();
      EXPECT_EQ(said, ending::done);
      return false;
    }
    ++tally_.cases;
    if (scene_->ended()) {
      expect_recovery(rows);
    } else {
      if (said == ending::refused) expect_nothing_happened(before, lasts);
      disk_.mend();
      expect_going_on(said);
    }
    return true;
  }

  void expect_nothing_happened(const std::string& before, bool lasts) {
    ++tally_.refused;
    if (!tried().in_parts) {
      EXPECT_EQ(scene_->state(), before);
    }
    if (tried().reads || !lasts) return;
    // Nobody else asks for anything: the next checkpoint comes within two seconds.
    if (scene_->is_ready()) scene_->rig->checkpoint();
    EXPECT_FALSE(scene_->is_ready());
  }

  void expect_going_on(ending said) {
    scene_->rig->checkpoint();
    EXPECT_TRUE(scene_->is_ready());
    EXPECT_FALSE(scene_->ended()) << scene_->rig->fatal;
    if (said == ending::refused) {
      EXPECT_EQ(tried().act(*scene_), ending::done);
    } else {
      ++tally_.done;
    }
    EXPECT_EQ(scene_->outcome(), outcome_);
    if (fs::exists(scene_->backup())) expect_proven(scene_->backup());
    scene_.reset();
    expect_proven(directory_->path());
    EXPECT_EQ(history_of(directory_->path()), history_);
  }

  /// The process has ended: nobody has heard anything since.
  void expect_recovery(const std::vector<protocol::stored_row>& rows) {
    ++tally_.ended;
    scene_.reset();
    disk_.mend();
    scene_ = std::make_unique<scene>(directory_->path(), clock_, tried().options);
    ASSERT_FALSE(scene_->start_error()) << scene_->start_error()->sentence;
    EXPECT_TRUE(scene_->is_ready());
    EXPECT_EQ(submit(*scene_->rig, "afterwards").reason, protocol::reason::submitted);
    scene_.reset();
    expect_proven(directory_->path());
    expect_kept(rows);
  }

  void expect_kept(const std::vector<protocol::stored_row>& rows) {
    const auto now = rows_of(directory_->path());
    ASSERT_FALSE(now.empty());
    for (const auto& row : rows) {
      if (row.row < now.front().row) continue;  // it was cut
      const auto at = static_cast<std::size_t>(row.row.value - now.front().row.value);
      ASSERT_LT(at, now.size());
      EXPECT_EQ(now[at], row);
    }
  }

  faulty_vfs disk_;
  temporary_directory fresh_;
  std::unique_ptr<temporary_directory> directory_;
  std::shared_ptr<manual_clock> clock_;
  std::unique_ptr<scene> scene_;
  std::string outcome_;
  std::vector<std::string> history_;
  tally_of_cases tally_;
};

TEST_P(StoreFaults, AreRefusedOrPassedOverAndNothingThatWasAnsweredIsLost) {
  for_each_fault(
      [this](const file_fault& what, std::int64_t n, bool lasts) { return run(what, n, lasts); });
  std::cout << tried().name << ": " << tally_.cases << " faults, " << tally_.refused << " refused, "
            << tally_.done << " passed over, " << tally_.ended << " ended the process\n";
}

INSTANTIATE_TEST_SUITE_P(Operations, StoreFaults,
                         ::testing::Range(std::size_t{0}, all_operations().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& with) {
                           auto name = all_operations()[with.param].name;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace leasehold::tests
