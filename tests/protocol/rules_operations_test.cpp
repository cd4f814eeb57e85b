// Operations of clients, operators and the coordinator (protocol.md 5).
#include <gtest/gtest.h>

#include "protocol/rules_scene.hpp"

namespace leasehold::protocol {
namespace {

using enum decision;

class Operation : public testing::Test, public rules_scene {
 public:
  verdict submit(std::int64_t at) { return judge(at, operation(event_kind::submit)); }
  verdict withdraw(std::int64_t at) { return judge(at, operation(event_kind::withdraw)); }
  verdict resolve(std::int64_t at, const char* who = "") {
    return judge(at, operation(event_kind::resolve, who));
  }
  verdict reconcile(std::int64_t at, outcome how) {
    auto what = operation(event_kind::reconcile);
    what.ending = how;
    what.detail = "seen";
    return judge(at, what);
  }
  void freeze(std::int64_t at) {
    chosen.on_conflict = on_conflict::freeze;
    auto stranger = frame(event_kind::ack, at);
    stranger.from = holder{"b"};
    judge(at, stranger);
    ASSERT_TRUE(lease.frozen);
  }
  void leave_unresolved() {
    activate();
    cancel(1010);
    expire(1040);
    ASSERT_EQ(lease.state, lease_state::unresolved);
  }
};

TEST_F(Operation, SubmitMakesAVacantJobOnce) {
  EXPECT_EQ(of(submit(1000)), (said{accepted, reason::submitted, rule_id::submit_new}));
  EXPECT_EQ(rows.back().before, lease_state::none);
  EXPECT_EQ(lease.state, lease_state::vacant);
  EXPECT_EQ(lease.job.value, "L");
  EXPECT_EQ(of(submit(1001)), (said{ignored, reason::duplicate_request, rule_id::submit_known}));
}

TEST_F(Operation, AllButSubmitOfferAndAcquireNeedAKnownLease) {
  for (const auto kind : {event_kind::withdraw, event_kind::cancel, event_kind::revoke,
                          event_kind::resolve, event_kind::reconcile, event_kind::prove}) {
    EXPECT_EQ(of(judge(1000, operation(kind))),
              (said{rejected, reason::unknown_lease, rule_id::operation_unknown_lease}));
    EXPECT_EQ(lease, record{});
  }
}

TEST_F(Operation, AGrantToNobodyMakesNoLease) {
  for (const auto kind : {event_kind::offer, event_kind::acquire}) {
    EXPECT_EQ(of(judge(1000, operation(kind))),
              (said{rejected, reason::invalid_frame, rule_id::grant_nobody}));
    EXPECT_EQ(rows.back().before, lease_state::none);
    EXPECT_EQ(lease, record{});
  }
}

TEST_F(Operation, AnOfferSpendsNoneOfTheLeasesTime) {
  EXPECT_EQ(of(offer(1000)), (said{applied, reason::offered, rule_id::grant_offer}));
  EXPECT_EQ(rows.back().before, lease_state::vacant);
  EXPECT_EQ(lease.gen.value, 1);
  EXPECT_EQ(lease.expires_at.ms, 1050);
  EXPECT_EQ(lease.ack_deadline.ms, 1050);
  EXPECT_EQ(lease.acquired_at.ms, 0);
}

TEST_F(Operation, AnAcquireIsItsOwnAckAndEndsByMaxLifetime) {
  chosen.max_lifetime = duration{70};
  EXPECT_EQ(of(acquire(1000)), (said{accepted, reason::acquired, rule_id::grant_acquire}));
  EXPECT_EQ(lease.state, lease_state::active);
  EXPECT_EQ(lease.acked, ack_state::accepted);
  EXPECT_EQ(lease.ack_deadline.ms, 0);
  EXPECT_EQ(lease.expires_at.ms, 1070);
  EXPECT_EQ(lease.attempt, 0);
}

TEST_F(Operation, AGrantIsRefusedWhileTheLeaseIsLive) {
  offer(1000);
  EXPECT_EQ(of(offer(1001, "b")), (said{rejected, reason::already_held, rule_id::grant_held}));
  ack(1002);
  EXPECT_EQ(of(offer(1003, "b")), (said{rejected, reason::already_held, rule_id::grant_held}));
}

TEST_F(Operation, AGrantIsRefusedOfAFrozenLeaseAlsoWhenItIsNotLive) {
  offer(1000);
  freeze(1001);
  EXPECT_EQ(of(offer(1002)), (said{rejected, reason::lease_frozen, rule_id::grant_frozen}));
  EXPECT_EQ(of(offer(1060)), (said{rejected, reason::lease_frozen, rule_id::grant_frozen}));
  EXPECT_TRUE(rows.back().answer.flags.ownership_conflict);
}

TEST_F(Operation, AGrantIsRefusedOfASettledOrUnresolvedLease) {
  leave_unresolved();
  EXPECT_EQ(of(offer(1050)), (said{rejected, reason::lease_settled, rule_id::grant_settled}));
  prove(1051, 1);
  EXPECT_EQ(of(offer(1052)), (said{rejected, reason::lease_settled, rule_id::grant_settled}));
}

TEST_F(Operation, AGrantWaitsForItsTimeToTheMillisecond) {
  chosen.lock_delay = duration{10};
  acquire(1000);
  expire(1100);
  EXPECT_EQ(of(acquire(1109)), (said{rejected, reason::retry_not_due, rule_id::grant_early}));
  EXPECT_EQ(acquire(1110).reason, reason::acquired);
}

TEST_F(Operation, TheLastGenerationIsGrantedAndNoneAfterIt) {
  judge(1000, operation(event_kind::acquire, "a"), generation{highest_generation - 1});
  EXPECT_EQ(lease.gen.value, highest_generation);
  release(1001);
  EXPECT_EQ(of(acquire(1002)),
            (said{rejected, reason::generation_exhausted, rule_id::grant_exhausted}));
}

TEST_F(Operation, AGrantIsAboveTheFloorAndAboveItsOwnPast) {
  judge(1000, operation(event_kind::acquire, "a"), generation{7});
  EXPECT_EQ(lease.gen.value, 8);
  release(1001);
  judge(1002, operation(event_kind::acquire, "a"), generation{7});
  EXPECT_EQ(lease.gen.value, 9);
}

TEST_F(Operation, AGrantForgetsWhatBelongedToTheGenerationBefore) {
  activate();
  renew(1010, 1);
  progress(1010, 1);
  recover(1060);
  judge(1070, result(1070, outcome::failed, "d", true));
  offer(1080, "b");
  EXPECT_EQ(lease.renew_sequence.value, 0);
  EXPECT_EQ(lease.renew_time.ms, 0);
  EXPECT_EQ(lease.progress_sequence.value, 0);
  EXPECT_EQ(lease.progress_value, "");
  EXPECT_EQ(lease.terminal_result, outcome::none);
  EXPECT_FALSE(lease.reported);
  EXPECT_EQ(lease.graces, 0);
  EXPECT_EQ(lease.acquired_at.ms, 0);
  EXPECT_EQ(lease.last_sent.ms, 0);
  EXPECT_EQ(lease.attempt, 1);
}

TEST_F(Operation, EachKindOfLeaseRefusesTheOthersOperations) {
  acquire(1000);
  for (const auto kind : {event_kind::submit, event_kind::offer, event_kind::withdraw,
                          event_kind::cancel, event_kind::reconcile, event_kind::prove}) {
    EXPECT_EQ(of(judge(1001, operation(kind, "a"))),
              (said{rejected, reason::not_a_job, rule_id::operation_wrong_kind}));
  }
  rules_scene job;
  job.offer(1000);
  EXPECT_EQ(of(job.acquire(1001)),
            (said{rejected, reason::not_a_lock, rule_id::operation_wrong_kind}));
}

TEST_F(Operation, AWithdrawnOfferCostsNothing) {
  EXPECT_EQ(submit(1000).decision, accepted);
  EXPECT_EQ(of(withdraw(1000)),
            (said{ignored, reason::not_offered, rule_id::withdraw_not_offered}));
  offer(1000);
  EXPECT_EQ(of(withdraw(1001)),
            (said{applied, reason::offer_undeliverable, rule_id::withdraw_offered}));
  EXPECT_EQ(lease.state, lease_state::vacant);
  EXPECT_EQ(lease.acked, ack_state::withdrawn);
  EXPECT_EQ(lease.losses, 0);
  EXPECT_EQ(offer(1001).reason, reason::offered);
}

TEST_F(Operation, ACancelOfActiveWorkBoundsItsAuthority) {
  activate();
  EXPECT_EQ(of(cancel(1010)), (said{accepted, reason::cancel_requested, rule_id::cancel_active}));
  EXPECT_EQ(lease.cancel_deadline.ms, 1040);
  EXPECT_EQ(lease.expires_at.ms, 1040);
  EXPECT_EQ(of(cancel(1011)), (said{ignored, reason::duplicate_cancel, rule_id::cancel_duplicate}));
  EXPECT_EQ(lease.cancel_requested_at.ms, 1010);
}

TEST_F(Operation, ACancelNeverMakesAuthorityLonger) {
  chosen.cancel_grace = duration{1000};
  activate();
  cancel(1010);
  EXPECT_EQ(lease.cancel_deadline.ms, 2010);
  EXPECT_EQ(lease.expires_at.ms, 1100);
}

TEST_F(Operation, ACancelWithoutWorkSettlesAtOnce) {
  submit(1000);
  EXPECT_EQ(of(cancel(1001)),
            (said{accepted, reason::cancelled_before_grant, rule_id::cancel_free}));
  EXPECT_EQ(lease.state, lease_state::cancelled);
  EXPECT_EQ(of(cancel(1002)), (said{rejected, reason::lease_settled, rule_id::cancel_settled}));
  rules_scene job;
  job.offer(1000);
  EXPECT_EQ(of(job.cancel(1001)), (said{accepted, reason::offer_withdrawn, rule_id::cancel_free}));
}

TEST_F(Operation, ACancelWaitsForWorkThatIsUnproven) {
  activate();
  expire(1100);
  EXPECT_EQ(of(cancel(1110)),
            (said{accepted, reason::cancel_unreconciled, rule_id::cancel_unproven}));
  EXPECT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(lease.reconcile_deadline.ms, 1610);
  EXPECT_EQ(lease.terminal_result, outcome::none);
}

TEST_F(Operation, ARevokeKeepsTheOldHoldersTimeUnlessForced) {
  chosen.lock_delay = duration{5};
  activate();
  EXPECT_EQ(of(revoke(1010)), (said{applied, reason::revoked, rule_id::revoke_active}));
  EXPECT_EQ(lease.next_offer_at.ms, 1100);
  EXPECT_EQ(lease.attempt, 0);
  EXPECT_EQ(lease.unproven_count(), 1);
  EXPECT_EQ(of(revoke(1020)), (said{ignored, reason::not_held, rule_id::revoke_not_held}));
  EXPECT_EQ(of(revoke(1020, true)), (said{applied, reason::revoked, rule_id::revoke_sooner}));
  EXPECT_EQ(lease.next_offer_at.ms, 1025);
  EXPECT_EQ(of(revoke(1020, true)), (said{ignored, reason::not_held, rule_id::revoke_not_held}));
}

TEST_F(Operation, AForcedRevokeFreesTheLeaseAfterTheLockDelay) {
  chosen.lock_delay = duration{5};
  activate();
  revoke(1010, true);
  EXPECT_EQ(lease.next_offer_at.ms, 1015);
}

TEST_F(Operation, ARevokedOfferLeavesNothingUnproven) {
  offer(1000);
  freeze(1001);
  EXPECT_EQ(of(revoke(1010)), (said{applied, reason::revoked, rule_id::revoke_offered}));
  EXPECT_FALSE(lease.frozen);
  EXPECT_EQ(lease.unproven_count(), 0);
  EXPECT_EQ(offer(1010).reason, reason::offered);
}

TEST_F(Operation, ARevokeUnderACancelIsUnresolved) {
  activate();
  cancel(1010);
  EXPECT_EQ(revoke(1020).reason, reason::revoked);
  EXPECT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(lease.reconcile_deadline.ms, 1520);
}

TEST_F(Operation, ARevokeEndsTheConflictOfALeaseThatIsNotLive) {
  activate();
  freeze(1010);
  expire(1100);
  EXPECT_EQ(of(revoke(1110)), (said{applied, reason::conflict_revoked, rule_id::revoke_conflict}));
  EXPECT_EQ(lease.state, lease_state::expired);
  EXPECT_FALSE(lease.frozen);
}

TEST_F(Operation, AConflictIsResolvedByNamingTheRecordedHolder) {
  activate();
  EXPECT_EQ(of(resolve(1001, "a")),
            (said{ignored, reason::no_conflict, rule_id::resolve_no_conflict}));
  freeze(1010);
  EXPECT_EQ(of(resolve(1011, "b")),
            (said{rejected, reason::holder_mismatch, rule_id::resolve_mismatch}));
  EXPECT_TRUE(rows.back().answer.flags.ownership_conflict);
  EXPECT_EQ(of(resolve(1012, "a")),
            (said{applied, reason::conflict_resolved, rule_id::resolve_confirmed}));
  EXPECT_EQ(renew(1013, 1).reason, reason::renewed);
}

TEST_F(Operation, AConflictIsResolvedWithoutAHolderByRevoking) {
  activate();
  freeze(1010);
  EXPECT_EQ(of(resolve(1012)), (said{applied, reason::conflict_revoked, rule_id::resolve_revoked}));
  EXPECT_EQ(lease.state, lease_state::revoked);
  EXPECT_EQ(lease.next_offer_at.ms, 1100);
  EXPECT_EQ(lease.unproven_count(), 1);
}

TEST_F(Operation, AnOperatorStatesHowAnUnresolvedJobEnded) {
  activate();
  EXPECT_EQ(of(reconcile(1001, outcome::failed)),
            (said{rejected, reason::not_unresolved, rule_id::reconcile_not_unresolved}));
  cancel(1010);
  expire(1040);
  EXPECT_EQ(of(reconcile(1050, outcome::success)),
            (said{rejected, reason::invalid_frame, rule_id::reconcile_invalid}));
  EXPECT_EQ(of(reconcile(1050, outcome::failed)),
            (said{applied, reason::reconciled_by_operator, rule_id::reconcile_stated}));
  EXPECT_EQ(lease.state, lease_state::failed);
  EXPECT_EQ(lease.terminal_detail, "seen");
  EXPECT_EQ(lease.unproven_count(), 0);
}

TEST_F(Operation, AProofSettlesAnUnresolvedJobOnlyWithTheLastGeneration) {
  activate();
  expire(1100);
  offer(1100);
  ack(1100);
  cancel(1110);
  expire(1140);
  EXPECT_EQ(of(prove(1150, 3)), (said{ignored, reason::not_unproven, rule_id::prove_not_unproven}));
  EXPECT_EQ(of(prove(1150, 1)), (said{applied, reason::stop_proven, rule_id::prove_one}));
  EXPECT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(of(prove(1151, 2)), (said{applied, reason::reconciled_by_proof, rule_id::prove_last}));
  EXPECT_EQ(lease.state, lease_state::cancelled);
}

TEST_F(Operation, Only16UnprovenGenerationsAreKnownByName) {
  std::int64_t at = 1000;
  for (int i = 0; i < 17; ++i, at += 200) {
    offer(at);
    ack(at);
    expire(at + 100);
  }
  EXPECT_EQ(lease.unproven.size(), 16U);
  EXPECT_EQ(lease.unproven_nameless, 1);
  EXPECT_EQ(prove(at, 1).reason, reason::not_unproven);
  EXPECT_EQ(prove(at, 2).reason, reason::stop_proven);
  cancel(at);
  for (std::int64_t gen = 3; gen <= 17; ++gen)
    EXPECT_EQ(prove(at, gen).reason, reason::stop_proven);
  EXPECT_EQ(lease.state, lease_state::unresolved);
  EXPECT_EQ(lease.unproven_count(), 1);
  EXPECT_EQ(reconcile(at, outcome::cancelled).reason, reason::reconciled_by_operator);
  EXPECT_EQ(lease.unproven_count(), 0);
}

TEST_F(Operation, ARepeatedRequestIsAnsweredOnceAndAReusedIdRefused) {
  auto what = operation(event_kind::acquire, "a", "r");
  judge(1000, what);
  EXPECT_EQ(lease.requests.back().answered.value, 1);
  EXPECT_EQ(of(judge(1001, what)),
            (said{ignored, reason::duplicate_request, rule_id::repeated_request}));
  what.from = holder{"b"};
  EXPECT_EQ(of(judge(1001, what)),
            (said{rejected, reason::request_reused, rule_id::repeated_request}));
  EXPECT_EQ(judge(1001, operation(event_kind::revoke, "", "r")).reason, reason::request_reused);
}

TEST_F(Operation, AnOfferIsNotKnownByARequestId) {
  auto what = operation(event_kind::offer, "a", "r");
  judge(1000, what);
  EXPECT_TRUE(lease.requests.empty());
  EXPECT_EQ(judge(1001, what).reason, reason::already_held);
}

}  // namespace
}  // namespace leasehold::protocol
