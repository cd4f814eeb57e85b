// Two holders of one generation: the lease waits for the stored grant record and for nothing else
// (protocol.md 7a).
#include <gtest/gtest.h>

#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

/// A job that `a` holds in generation 1, and a stranger with the same credential.
class Conflict : public ::testing::Test {
 protected:
  Conflict() {
    a_.credit(1);
    submit(rig_, "j");
    a_.ack("j", 1);
  }

  /// The stranger renews generation 1; yields its frame's id.
  std::int64_t intrude(std::int64_t sequence = 1) {
    const auto id = stranger_.say(stranger_.frame(event_kind::renew, "j", 1, sequence));
    rig_.settle();
    return id;
  }
  [[nodiscard]] std::vector<protocol::stored_row> rows_of(event_kind kind) const {
    std::vector<protocol::stored_row> found;
    for (auto& r : rig_.store->all_rows()) {
      if (r.input.kind == kind) found.push_back(std::move(r));
    }
    return found;
  }
  void expect_rows_to_fold() const {
    protocol::fold folded;
    for (const auto& r : rig_.store->all_rows()) {
      const auto wrong = folded.feed(r);
      EXPECT_FALSE(wrong) << wrong->sentence;
    }
    EXPECT_TRUE(folded.missing_rows().empty());
  }

  coordinator_rig rig_;
  rig_worker a_{rig_, "w", "a"};
  rig_worker stranger_{rig_, "w", "b"};
};

TEST_F(Conflict, TheStoredRecordConfirmsTheHolderAndTheLeaseGoesOn) {
  const auto id = intrude();
  EXPECT_EQ(stranger_.session->verdict_of(id)->reason, reason::ownership_conflict);
  ASSERT_EQ(rows_of(event_kind::resolve).size(), 1U);
  EXPECT_EQ(rows_of(event_kind::resolve)[0].answer.reason, reason::record_confirms_holder);
  EXPECT_EQ(a_.renew("j", 1, 1).reason, reason::renewed);
  EXPECT_EQ(rig_.counters->grants_contradicted.value(), 0);
  expect_rows_to_fold();
}

TEST_F(Conflict, UntilTheReadIsBackTheLeaseTakesNothingMore) {
  rig_.store->hold_reads();
  const auto conflict = intrude();
  const auto renew = a_.say(a_.frame(event_kind::renew, "j", 1, 1));
  rig_.settle();
  protocol::event cancel;
  cancel.kind = event_kind::cancel;
  std::optional<actors::answer> cancelled;
  rig_.gateway().operate({protocol::tenant_id{"t"}, protocol::lease_id{"j"}}, cancel,
                         [&](actors::answer said) { cancelled = std::move(said); });
  rig_.settle();
  EXPECT_FALSE(stranger_.session->verdict_of(conflict));
  EXPECT_FALSE(a_.session->verdict_of(renew));
  EXPECT_FALSE(cancelled);
  // Another lease does not wait.
  EXPECT_EQ(submit(rig_, "other").reason, reason::submitted);

  EXPECT_EQ(rig_.store->answer_reads(), 1U);
  rig_.settle();
  EXPECT_EQ(stranger_.session->verdict_of(conflict)->reason, reason::ownership_conflict);
  EXPECT_EQ(a_.session->verdict_of(renew)->reason, reason::renewed);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->reason, reason::cancel_requested);
  expect_rows_to_fold();
}

TEST_F(Conflict, ADeadlineThatPassesDuringTheReadIsAppliedAfterIt) {
  rig_.store->hold_reads();
  a_.credit(0);
  intrude();
  rig_.advance(30'000);
  EXPECT_EQ(job(rig_, "j")->state->state, lease_state::active);
  rig_.store->answer_reads();
  rig_.settle();
  EXPECT_EQ(job(rig_, "j")->state->state, lease_state::expired);
  expect_rows_to_fold();
}

TEST_F(Conflict, ARecordThatNamesAnotherHolderLeavesTheLeaseFrozenForAnOperator) {
  rig_.store->answer_reads_with(actors::stored_grant{{1}, stranger_.holder()});
  intrude();
  EXPECT_TRUE(rows_of(event_kind::resolve).empty());
  EXPECT_TRUE(job(rig_, "j")->state->frozen);
  EXPECT_EQ(a_.renew("j", 1, 1).reason, reason::lease_frozen);
  EXPECT_EQ(rig_.counters->grants_contradicted.value(), 1);
  expect_rows_to_fold();

  protocol::event resolve;
  resolve.kind = event_kind::resolve;
  resolve.from = a_.holder();
  EXPECT_EQ(operate(rig_, "j", resolve).reason, reason::conflict_resolved);
  EXPECT_EQ(a_.renew("j", 1, 1).reason, reason::renewed);
  expect_rows_to_fold();
}

TEST_F(Conflict, ARecordOfAnotherGenerationDoesNotConfirm) {
  rig_.store->answer_reads_with(actors::stored_grant{{2}, a_.holder()});
  intrude();
  EXPECT_TRUE(job(rig_, "j")->state->frozen);
}

TEST_F(Conflict, AReadThatFailsChangesNothingAndIsAskedForAgain) {
  rig_.store->answer_reads_with(
      actors::store_error{actors::store_error::kind::io, "the test ordered it"});
  const auto before = rig_.store->all_rows().size();
  const auto id = intrude();
  EXPECT_EQ(stranger_.session->verdict_of(id)->reason, reason::store_unavailable);
  EXPECT_EQ(rig_.store->all_rows().size(), before);
  EXPECT_FALSE(job(rig_, "j")->state->frozen);
  EXPECT_EQ(a_.renew("j", 1, 1).reason, reason::renewed);
}

TEST_F(Conflict, OnlyAFrameThatMayOpenAConflictAsksTheStore) {
  a_.renew("j", 1, 1);
  stranger_.renew("j", 2, 1);  // a generation that was never granted
  EXPECT_EQ(rig_.store->reads(), 0);
  intrude();
  EXPECT_EQ(rig_.store->reads(), 1);
}

TEST_F(Conflict, AFloodOfConflictsIsCountedWithWhatFollowsFromEachOfThem) {
  for (int i = 0; i < 250; ++i) intrude(i + 1);
  EXPECT_EQ(rows_of(event_kind::resolve).size(), 100U);
  EXPECT_FALSE(job(rig_, "j")->state->frozen);
  expect_rows_to_fold();
  rig_.advance(70'000);
  ASSERT_EQ(rows_of(event_kind::counted).size(), 1U);
  expect_rows_to_fold();
}

TEST_F(Conflict, AConflictThatFreezesTheLeaseAgainHasItsRowHoweverManyWentBefore) {
  rig_.store->answer_reads_with(actors::stored_grant{{1}, stranger_.holder()});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 150; ++i) intrude(i + 1);
    EXPECT_TRUE(job(rig_, "j")->state->frozen);
    protocol::event resolve;
    resolve.kind = event_kind::resolve;
    resolve.from = a_.holder();
    EXPECT_EQ(operate(rig_, "j", resolve).reason, reason::conflict_resolved);
  }
  expect_rows_to_fold();
}

TEST_F(Conflict, AConflictThatUnfreezesTheLeaseHasItsRowHoweverManyWentBefore) {
  rig_.store->answer_reads_with(actors::stored_grant{{1}, stranger_.holder()});
  for (int i = 0; i < 150; ++i) intrude(i + 1);
  rig_.store->answer_reads_with(actors::stored_grant{{1}, a_.holder()});
  intrude(151);
  EXPECT_FALSE(job(rig_, "j")->state->frozen);
  expect_rows_to_fold();
}

/// The same under a policy that leaves every conflict to an operator.
struct ConflictUnderFreeze : ::testing::Test {
  ConflictUnderFreeze() {
    a.credit(1);
    actors::job_spec spec;
    spec.policy.on_conflict = protocol::on_conflict::freeze;
    submit(rig, "j", spec);
    a.ack("j", 1);
  }
  coordinator_rig rig;
  rig_worker a{rig, "w", "a"};
  rig_worker stranger{rig, "w", "b"};
};

TEST_F(ConflictUnderFreeze, AFloodFoldsToo) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 120; ++i) stranger.renew("j", 1, i + 1);
    protocol::event resolve;
    resolve.kind = event_kind::resolve;
    resolve.from = a.holder();
    EXPECT_EQ(operate(rig, "j", resolve).reason, reason::conflict_resolved);
  }
  protocol::fold folded;
  for (const auto& r : rig.store->all_rows()) {
    const auto wrong = folded.feed(r);
    EXPECT_FALSE(wrong) << wrong->sentence;
  }
}

TEST_F(ConflictUnderFreeze, NothingIsReadAndTheLeaseStaysFrozen) {
  stranger.renew("j", 1, 1);
  EXPECT_EQ(rig.store->reads(), 0);
  EXPECT_TRUE(job(rig, "j")->state->frozen);
}

}  // namespace
}  // namespace leasehold::tests
