#include "operation_run.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace leasehold::tests {

operation_run::operation_run(const operation& tried, failing_ground& ground)
    : tried_(tried), ground_(ground) {
  begin();
  EXPECT_EQ(tried_.act(*scene_), ending::done);
  outcome_ = scene_->outcome();
  scene_.reset();
  history_ = history_of(*place_);
  expect_proven(*place_);
}

void operation_run::begin() {
  scene_.reset();
  place_ = &ground_.fresh();
  clock_ = std::make_shared<manual_clock>();
  clock_->set(protocol::instant{2'000'000});
  scene_ = std::make_unique<scene>(*place_, clock_, tried_.options);
  ASSERT_FALSE(scene_->start_error()) << scene_->start_error()->sentence;
  tried_.before(*scene_);
}

bool operation_run::with(const std::function<void()>& fail, bool lasts) {
  begin();
  const auto before = scene_->state();
  const auto rows = rows_of(*place_);
  fail();
  const auto said = tried_.act(*scene_);
  if (ground_.hits() == 0) {
    ground_.mend();
    EXPECT_EQ(said, ending::done);
    return false;
  }
  ++tally_.cases;
  if (scene_->ended()) {
    expect_recovery(said, rows);
  } else {
    if (said == ending::refused) expect_nothing_happened(before, lasts);
    ground_.mend();
    expect_going_on(said);
  }
  return true;
}

void operation_run::expect_nothing_happened(const std::string& before, bool lasts) {
  ++tally_.refused;
  if (!tried_.in_parts) {
    EXPECT_EQ(scene_->state(), before);
  }
  if (tried_.reads || !lasts) return;
  // Nobody else asks for anything: the next checkpoint comes within two seconds.
  if (scene_->is_ready()) scene_->rig->checkpoint();
  EXPECT_FALSE(scene_->is_ready());
}

void operation_run::expect_going_on(ending said) {
  scene_->rig->checkpoint();
  EXPECT_TRUE(scene_->is_ready());
  EXPECT_FALSE(scene_->ended()) << scene_->rig->fatal;
  if (said == ending::refused) {
    EXPECT_EQ(tried_.act(*scene_), ending::done);
  } else {
    ++tally_.done;
  }
  EXPECT_EQ(scene_->outcome(), outcome_);
  if (tried_.after) tried_.after(*scene_);
  if (std::filesystem::exists(scene_->backup())) expect_proven(scene_->backup());
  scene_.reset();
  expect_proven(*place_);
  EXPECT_EQ(history_of(*place_), history_);
}

/// The process has ended: nobody has heard anything since.
void operation_run::expect_recovery(ending said, const std::vector<protocol::stored_row>& rows) {
  ++tally_.ended;
  scene_.reset();
  ground_.mend();
  scene_ = std::make_unique<scene>(*place_, clock_, tried_.options);
  ASSERT_FALSE(scene_->start_error()) << scene_->start_error()->sentence;
  EXPECT_TRUE(scene_->is_ready());
  if (tried_.after) {
    if (said == ending::refused) {
      EXPECT_EQ(tried_.act(*scene_), ending::done);
    }
    tried_.after(*scene_);
  }
  EXPECT_EQ(submit(*scene_->rig, "afterwards").reason, protocol::reason::submitted);
  scene_.reset();
  expect_proven(*place_);
  expect_kept(rows);
}

void operation_run::expect_kept(const std::vector<protocol::stored_row>& rows) {
  const auto now = rows_of(*place_);
  ASSERT_FALSE(now.empty());
  for (const auto& row : rows) {
    if (row.row < now.front().row) continue;  // it was cut
    const auto at = static_cast<std::size_t>(row.row.value - now.front().row.value);
    ASSERT_LT(at, now.size());
    EXPECT_EQ(now[at], row);
  }
}

std::string operation_run::summary() const {
  return tried_.name + ": " + std::to_string(tally_.cases) + " faults, " +
         std::to_string(tally_.refused) + " refused, " + std::to_string(tally_.done) +
         " passed over, " + std::to_string(tally_.ended) + " ended the process";
}

}  // namespace leasehold::tests
