// The log is cut behind base rows, settled jobs are forgotten and their generations never granted
// again, and a restored backup grants nothing that may have been granted since.
#include <gtest/gtest.h>

#include "leasehold/protocol/record_image.hpp"
#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

constexpr std::int64_t hour = 3'600'000;

actors::actor_options with(std::int64_t retention_ms, std::int64_t forget_after_ms) {
  actors::actor_options options;
  options.retention = {retention_ms};
  options.forget_after = {forget_after_ms};
  // The shards look by the test's clock, the journal by CAF's: where nothing is to be forgotten
  // every cut is asked for.
  options.retention_check = {forget_after_ms == 0 ? hour : 1'000};
  options.checkpoint_interval = {hour};  // of CAF's clock: every checkpoint is asked for
  return options;
}

/// The test's journal runs on CAF's clock; a checkpoint or a cut is asked for by hand.
class History : public ::testing::Test {
 protected:
  void start(const actors::actor_options& options, bool restored = false) {
    w_.reset();
    rig_.reset();
    rig_ = std::make_unique<coordinator_rig>(store_, options, clock_, restored);
    ASSERT_FALSE(rig_->start_error) << rig_->start_error->sentence;
    w_.emplace(*rig_, "w");
    w_->credit(10);
  }
  void finish(const std::string& id) {
    submit(*rig_, id);
    const auto gen = job(*rig_, id)->state->gen.value;
    w_->ack(id, gen);
    w_->result(id, gen);
  }
  [[nodiscard]] std::vector<protocol::offer> offers() const {
    return w_->session->all<protocol::offer>();
  }
  [[nodiscard]] std::vector<protocol::stored_row> rows_of(event_kind kind) const {
    std::vector<protocol::stored_row> found;
    for (auto& r : store_->all_rows()) {
      if (r.input.kind == kind) found.push_back(std::move(r));
    }
    return found;
  }
  /// Every row that is left follows from the rows before it, or from a base row.
  void expect_rows_to_fold() const {
    protocol::fold folded;
    folded.begin_after(store_->anchor().last_row);
    for (const auto& [id, chosen] : store_->policies()) folded.learn(id, chosen);
    for (const auto& r : store_->all_rows()) {
      const auto wrong = folded.feed(r);
      EXPECT_FALSE(wrong) << "row " << r.row.value << " " << wrong->column << ": "
                          << wrong->sentence;
    }
    for (const auto& missing : folded.missing_rows()) ADD_FAILURE() << missing.sentence;
  }

  std::shared_ptr<memory_store> store_ = std::make_shared<memory_store>();
  std::shared_ptr<manual_clock> clock_ = std::make_shared<manual_clock>();
  std::unique_ptr<coordinator_rig> rig_;
  std::optional<rig_worker> w_;
};

TEST_F(History, ACheckpointBetweenTwoAnswersOfOneCommitHasTheLeasesOfBoth) {
  start({});
  store_->hold();
  submit(*rig_, "a");
  submit(*rig_, "b");
  ASSERT_EQ(store_->waiting(), 2U);
  store_->complete_as_one([this] { rig_->coordinator->checkpoint(); });
  store_->resume();
  rig_->settle();
  start({});
  EXPECT_TRUE(job(*rig_, "a"));
  EXPECT_TRUE(job(*rig_, "b"));
}

TEST_F(History, ACheckpointHasWhatChangedInTheOrderOfTheKeys) {
  start({});
  std::vector<protocol::lease_key> all;
  for (int i = 0; i < 200; ++i) {
    const auto id = std::to_string(1000 + i * 77 % 200);
    submit(*rig_, id);
    all.push_back({protocol::tenant_id{"t"}, protocol::lease_id{id}});
  }
  std::ranges::sort(all);
  rig_->checkpoint();
  EXPECT_EQ(store_->take_checkpointed(), all);

  rig_->checkpoint();
  EXPECT_EQ(store_->take_checkpointed(), std::vector<protocol::lease_key>{});
}

TEST_F(History, ACheckpointOfFewAmongManyHasThoseAndWhatChangedAgainMeanwhile) {
  start({});
  for (int i = 0; i < 200; ++i) submit(*rig_, std::to_string(1000 + i));
  rig_->checkpoint();
  store_->take_checkpointed();
  const protocol::lease_key key{protocol::tenant_id{"t"}, protocol::lease_id{"1003"}};
  const auto gen = job(*rig_, "1003")->state->gen.value;
  w_->ack("1003", gen);
  for (int seq = 1; seq < 4; ++seq) {
    w_->renew("1003", gen, seq);
    rig_->checkpoint();
    EXPECT_EQ(store_->take_checkpointed(), std::vector{key}) << seq;
  }
}

TEST_F(History, ASettledJobIsForgottenAfterItsTimeAndNotBefore) {
  start(with(0, hour));
  finish("j");
  rig_->checkpoint();
  rig_->advance(hour - 2'000);
  EXPECT_TRUE(job(*rig_, "j"));
  rig_->advance(3'000);
  EXPECT_FALSE(job(*rig_, "j"));
  EXPECT_EQ(rows_of(event_kind::forget).size(), 1U);
  EXPECT_EQ(rig_->counters->leases[static_cast<std::size_t>(lease_state::completed)].value(), 0);
  expect_rows_to_fold();
}

TEST_F(History, WhatWasForgottenBeforeACrashDoesNotComeBackWithTheNextCheckpoints) {
  start(with(0, hour));
  finish("j");
  rig_->checkpoint();
  rig_->advance(hour + 3'000);
  ASSERT_FALSE(job(*rig_, "j"));
  // The checkpoint still has the job; only the row behind it says that it was forgotten.
  start(with(0, 0));
  EXPECT_FALSE(job(*rig_, "j"));
  rig_->checkpoint();
  start(with(0, 0));
  EXPECT_FALSE(job(*rig_, "j"));
}

TEST_F(History, AJobThatIsNotSettledIsNeverForgotten) {
  start(with(0, hour));
  submit(*rig_, "waiting");
  rig_->checkpoint();
  rig_->advance(10 * hour);
  EXPECT_TRUE(job(*rig_, "waiting"));
}

TEST_F(History, ALateFrameKeepsASettledJobKnown) {
  start(with(0, hour));
  finish("j");
  rig_->checkpoint();
  rig_->advance(hour - 10'000);
  w_->renew("j", 1, 1);
  rig_->checkpoint();
  rig_->advance(20'000);
  EXPECT_TRUE(job(*rig_, "j"));
  rig_->advance(hour);
  EXPECT_FALSE(job(*rig_, "j"));
}

TEST_F(History, AGenerationOfAForgottenJobIsNeverGrantedAgain) {
  start(with(0, hour));
  std::int64_t highest = 0;
  for (int round = 0; round < 20; ++round) {
    finish("j");
    const auto gen = job(*rig_, "j")->state->gen.value;
    EXPECT_GT(gen, highest);
    highest = gen;
    rig_->checkpoint();
    if (round % 3 == 2) {
      rig_->advance(hour + 2'000);
      ASSERT_FALSE(job(*rig_, "j"));
    } else if (round % 3 == 1) {
      // Forgotten, and the process ends before the next checkpoint.
      rig_->advance(hour + 2'000);
      start(with(0, hour));
      ASSERT_FALSE(job(*rig_, "j"));
    } else {
      rig_->advance(hour + 2'000);
      rig_->checkpoint();
      start(with(0, hour));
      ASSERT_FALSE(job(*rig_, "j"));
    }
  }
  expect_rows_to_fold();
}

TEST_F(History, AForgottenJobGivesItsPartOfTheLimitsBack) {
  auto options = with(0, hour);
  options.leases_per_tenant = 1;
  start(options);
  finish("a");
  EXPECT_EQ(submit(*rig_, "b").reason, reason::rate_limited);
  rig_->checkpoint();
  rig_->advance(hour + 2'000);
  EXPECT_EQ(submit(*rig_, "b").reason, reason::submitted);
}

TEST_F(History, AForgetWhoseCommitFailsChangesNothingAndIsTriedAgain) {
  start(with(0, hour));
  finish("j");
  rig_->checkpoint();
  rig_->advance(hour - 2'000);
  store_->fail_commit(1);
  rig_->advance(2'500);
  EXPECT_TRUE(job(*rig_, "j"));
  rig_->advance(2'000);
  EXPECT_FALSE(job(*rig_, "j"));
  expect_rows_to_fold();
}

TEST_F(History, TheLogIsCutOnceEveryLeaseThatBeginsThereHasABaseRow) {
  start(with(hour, 0));
  finish("settled");
  submit(*rig_, "held");
  w_->ack("held", 1);
  rig_->checkpoint();
  const auto before = store_->all_rows().size();
  rig_->advance(2'000);
  EXPECT_EQ(store_->all_rows().size(), before) << "too young to be cut";

  for (int i = 0; i < 260; ++i) {
    rig_->advance(15'000);
    w_->renew("held", 1, i + 1);
  }
  rig_->checkpoint();
  rig_->cut_log();
  EXPECT_GT(store_->anchor().last_row.value, 0);
  EXPECT_GE(rows_of(event_kind::base).size(), 2U);
  EXPECT_TRUE(rows_of(event_kind::submit).empty());
  EXPECT_EQ(rig_->counters->first_row.value(), store_->anchor().last_row.value + 1);
  expect_rows_to_fold();

  // What the base row says is what the cut rows said.
  const auto base = protocol::decode_base(rows_of(event_kind::base).back().attachment);
  ASSERT_TRUE(base);
  EXPECT_EQ(base->image.state.gen.value, 1);

  start(with(hour, 0));
  EXPECT_EQ(job(*rig_, "settled")->state->state, lease_state::completed);
  EXPECT_EQ(job(*rig_, "held")->state->state, lease_state::active);
  expect_rows_to_fold();
}

TEST_F(History, ABaseRowThatCannotBeWrittenLeavesTheLogAsItIs) {
  start(with(hour, 0));
  submit(*rig_, "j");
  rig_->checkpoint();
  rig_->advance(2 * hour);
  store_->fail_commit(1);
  rig_->cut_log();
  EXPECT_EQ(store_->anchor().last_row.value, 0);
  rig_->cut_log();
  EXPECT_GT(store_->anchor().last_row.value, 0);
  expect_rows_to_fold();
}

TEST_F(History, ASettledJobIsForgottenAfterItsTimeAlsoWhenTheLogIsCutMoreOften) {
  start(with(hour, 3 * hour));
  finish("j");
  const auto cut = [this](std::int64_t after) {
    rig_->advance(after);
    rig_->checkpoint();
    rig_->cut_log();
    rig_->checkpoint();
  };
  cut(hour + 60'000);
  cut(hour + 60'000);
  ASSERT_EQ(rows_of(event_kind::base).size(), 1U);
  EXPECT_GT(store_->anchor().last_row.value, 0);
  start(with(hour, 3 * hour));
  cut(hour - 180'000);
  EXPECT_TRUE(job(*rig_, "j")) << "a minute is left";
  cut(62'000);
  EXPECT_FALSE(job(*rig_, "j"));
  expect_rows_to_fold();
}

/// Version 0.1.0 began the age of a lease anew with each base row, and said so in the next one.
TEST_F(History, BaseRowsThatBeganTheAgeAnewAreReadAsTheySayAndNoOtherAgeIs) {
  start(with(hour, 0));
  finish("j");
  std::vector<protocol::stored_row> bases;
  std::vector<protocol::stored_row> rows;
  for (int i = 0; i < 2; ++i) {
    rig_->advance(hour + 60'000);
    rig_->checkpoint();
    if (i == 1) rows = store_->all_rows();
    rig_->cut_log();
  }
  const auto kept = store_->all_rows();
  ASSERT_GE(kept.size(), 1U);
  const auto first =
      std::ranges::find_if(rows, [](const auto& r) { return r.input.kind == event_kind::base; });
  ASSERT_NE(first, rows.end());
  const auto& last = kept.back();
  ASSERT_EQ(last.input.kind, event_kind::base);
  const auto said = [&](protocol::instant age) {
    protocol::fold folded;
    folded.begin_after({first->row.value - 1});
    EXPECT_FALSE(folded.feed(*first));
    auto second = last;
    auto base = protocol::decode_base(last.attachment);
    base->image.last_at = age;
    second.attachment = protocol::encode_base(*base);
    const auto wrong = folded.feed(second);
    EXPECT_EQ(folded.find(second.key)->last_at, age);
    return !wrong;
  };
  EXPECT_TRUE(said(protocol::decode_base(last.attachment)->image.last_at));
  EXPECT_TRUE(said(first->at));
  EXPECT_FALSE(said({last.at.ms + 1}));
  EXPECT_FALSE(said({protocol::decode_base(first->attachment)->image.last_at.ms - 1}));
}

TEST_F(History, NothingIsCutThatTheCheckpointDoesNotHave) {
  start(with(hour, 0));
  submit(*rig_, "j");
  rig_->advance(2 * hour);
  rig_->cut_log();
  EXPECT_EQ(store_->anchor().last_row.value, 0);
}

TEST_F(History, ARestoredBackupRaisesFloorsAndHoldsGrantsForTheLongestLease) {
  actors::job_spec lasting;
  lasting.queue = "q";
  lasting.policy.lease_duration = {std::int64_t{5} * 60'000};
  {
    start(with(0, 0));
    submit(*rig_, "j", lasting);
    w_->ack("j", 1);
    rig_->checkpoint();
  }
  start(with(0, 0), true);
  submit(*rig_, "new");
  rig_->advance(5 * 60'000 - 1);
  EXPECT_TRUE(offers().empty());
  EXPECT_EQ(job(*rig_, "new")->state->gen.value, 0);
  rig_->advance(1);
  ASSERT_EQ(offers().size(), 2U);
  for (const auto& offer : offers()) {
    EXPECT_GT(offer.standing.gen.value, protocol::restored_floor_step);
  }
  EXPECT_EQ(job(*rig_, "j")->state->unproven_nameless, 1);
  EXPECT_EQ(job(*rig_, "new")->state->unproven_nameless, 0);
  expect_rows_to_fold();

  protocol::event cancel;
  cancel.kind = event_kind::cancel;
  w_->ack("j", job(*rig_, "j")->state->gen.value);
  operate(*rig_, "j", cancel);
  w_->result("j", job(*rig_, "j")->state->gen.value, protocol::outcome::cancelled);
  EXPECT_EQ(job(*rig_, "j")->state->state, lease_state::unresolved)
      << "who was granted it after the backup may still be at work";
}

TEST_F(History, TheHoldAfterARestoreOutlivesACrash) {
  start(with(0, 0), true);
  submit(*rig_, "j");
  start(with(0, 0));
  EXPECT_TRUE(offers().empty());
  rig_->checkpoint();
  start(with(0, 0));
  EXPECT_TRUE(offers().empty()) << "the checkpoint remembers it";
  rig_->advance(30'000);
  ASSERT_EQ(offers().size(), 1U);
  EXPECT_GT(offers()[0].standing.gen.value, protocol::restored_floor_step);
  expect_rows_to_fold();
}

TEST_F(History, TwoRestoresRaiseTheFloorsTwice) {
  start(with(0, 0), true);
  start(with(0, 0), true);
  submit(*rig_, "j");
  rig_->advance(30'000);
  ASSERT_EQ(offers().size(), 1U);
  EXPECT_EQ(offers()[0].standing.gen.value, 2 * protocol::restored_floor_step + 1);
  expect_rows_to_fold();
}

}  // namespace
}  // namespace leasehold::tests
