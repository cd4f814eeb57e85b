// The life of a job through the actors: submit, offer, ACK, work, end; and what may go wrong on the
// way.
#include <gtest/gtest.h>

#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::decision;
using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

TEST(LeaseLife, AJobIsOfferedAckedActivatedAndCompleted) {
  coordinator_rig rig;
  ASSERT_FALSE(rig.start_error);
  rig_worker w(rig, "w");
  ASSERT_EQ(w.session->all<protocol::welcome>().size(), 1U);
  w.credit(1);

  const auto said = submit(rig, "j1");
  EXPECT_EQ(said.decision, decision::accepted);
  EXPECT_TRUE(said.created);
  const auto offers = w.session->all<protocol::offer>();
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].standing.gen, protocol::generation{1});

  EXPECT_EQ(w.ack("j1", 1).reason, reason::ack_accepted);
  EXPECT_EQ(w.session->all<protocol::activated>().size(), 1U);
  EXPECT_EQ(w.renew("j1", 1, 1).reason, reason::renewed);
  EXPECT_EQ(w.result("j1", 1).reason, reason::completed);
  EXPECT_EQ(job(rig, "j1")->state->state, lease_state::completed);
}

TEST(LeaseLife, AFrameThatOvertakesTheAckIsDeferredAndJudgedAtActivation) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j1");
  const auto progress = w.progress("j1", 1, 3, "30%");
  EXPECT_EQ(progress.reason, reason::awaiting_activation);
  EXPECT_EQ(progress.outcome, protocol::reason_class::pending);
  w.ack("j1", 1);
  const auto final_verdict = w.session->verdict_of(progress.answers);
  EXPECT_EQ(final_verdict->reason, reason::progress_recorded);
  EXPECT_EQ(job(rig, "j1")->state->progress_value, "30%");
}

TEST(LeaseLife, AnExpiredJobIsOfferedAgainAndTheOldGenerationIsStale) {
  coordinator_rig rig;
  rig_worker a(rig, "a");
  a.credit(1);
  submit(rig, "j1");
  a.ack("j1", 1);
  rig_worker b(rig, "b", "b");
  b.credit(1);
  rig.advance(30000);
  ASSERT_EQ(a.session->all<protocol::lease_lost>().size(), 1U);
  EXPECT_EQ(a.session->all<protocol::lease_lost>()[0].lost.why, protocol::loss::expired);
  const auto again_a = a.session->all<protocol::offer>().size() - 1;
  const auto again_b = b.session->all<protocol::offer>().size();
  ASSERT_EQ(again_a + again_b, 1U);
  EXPECT_EQ(a.renew("j1", 1, 1).reason, reason::stale_generation);
}

TEST(LeaseLife, ACancelReachesTheHolderAndTheResultClosesTheJob) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j1");
  w.ack("j1", 1);
  protocol::event cancel;
  cancel.kind = event_kind::cancel;
  EXPECT_EQ(operate(rig, "j1", cancel).reason, reason::cancel_requested);
  ASSERT_EQ(w.session->all<protocol::cancel_notice>().size(), 1U);
  EXPECT_EQ(w.tell(w.frame(event_kind::cancel_ack, "j1", 1)).reason, reason::cancel_acknowledged);
  EXPECT_EQ(w.result("j1", 1, protocol::outcome::cancelled).reason, reason::cancel_completed);
  EXPECT_EQ(job(rig, "j1")->state->state, lease_state::cancelled);
}

TEST(LeaseLife, AFailedCommitLeavesNothingBehind) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  rig.store->fail_commit(1);
  const auto refused = submit(rig, "j1");
  EXPECT_EQ(refused.reason, reason::store_unavailable);
  EXPECT_FALSE(job(rig, "j1"));
  EXPECT_TRUE(w.session->all<protocol::offer>().empty());
  EXPECT_EQ(submit(rig, "j1").decision, decision::accepted);
}

TEST(LeaseLife, ARestartFindsTheLeaseAndItsHolderResumes) {
  auto store = std::make_shared<memory_store>();
  auto time = std::make_shared<manual_clock>();
  {
    coordinator_rig rig(store, {}, time);
    rig_worker w(rig, "w");
    w.credit(1);
    submit(rig, "j1");
    w.ack("j1", 1);
    w.progress("j1", 1, 1, "10%");
  }
  coordinator_rig rig(store, {}, time);
  ASSERT_FALSE(rig.start_error) << rig.start_error->sentence;
  ASSERT_TRUE(job(rig, "j1"));
  EXPECT_EQ(job(rig, "j1")->state->state, lease_state::active);
  rig_worker w(rig, "w");
  const auto welcomes = w.session->all<protocol::welcome>();
  ASSERT_EQ(welcomes.size(), 1U);
  ASSERT_EQ(welcomes[0].resumed.size(), 1U);
  EXPECT_EQ(w.renew("j1", 1, 1).reason, reason::renewed);
}

}  // namespace
}  // namespace leasehold::tests
