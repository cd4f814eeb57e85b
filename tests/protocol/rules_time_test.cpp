// Deadlines, recovery and arithmetic at its limits (protocol.md 3 and 5).
#include <gtest/gtest.h>

#include "protocol/rules_scene.hpp"

namespace leasehold::protocol {
namespace {

using enum decision;

class Time : public testing::Test, public rules_scene {};

TEST_F(Time, ADeadlineHasPassedAtItselfAndIsDatedThere) {
  activate();
  expire(1099);
  EXPECT_TRUE(rows.empty());
  expire(1100);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at.ms, 1100);
  EXPECT_FALSE(rows[0].derived);
  rules_scene late;
  late.activate();
  late.expire(5000);
  EXPECT_EQ(late.rows[0].at.ms, 1100);
  EXPECT_EQ(late.lease, lease);
}

TEST_F(Time, AMissedAckIsALossWithBackoffFromTheDeadline) {
  chosen.retry_backoff = duration{10};
  offer(1000);
  expire(2000);
  EXPECT_EQ(of(rows[0].answer),
            (said{applied, reason::ack_deadline_missed, rule_id::expire_offered}));
  EXPECT_TRUE(rows[0].answer.flags.lease_expired);
  EXPECT_EQ(lease.next_offer_at.ms, 1060);
  EXPECT_EQ(lease.losses, 1);
  EXPECT_EQ(lease.unproven_count(), 0);
}

TEST_F(Time, AMissedAckFailsTheJobByPolicyOrByItsLastLoss) {
  chosen.max_losses = 1;
  offer(1000);
  expire(1050);
  EXPECT_EQ(of(rows[0].answer),
            (said{applied, reason::losses_exhausted, rule_id::expire_offered_fail}));
  rules_scene strict;
  strict.chosen.on_ack_timeout = on_deadline::fail;
  strict.chosen.max_losses = 1;
  strict.offer(1000);
  strict.expire(1050);
  EXPECT_EQ(of(strict.rows[0].answer),
            (said{applied, reason::ack_deadline_missed, rule_id::expire_offered_fail}));
  EXPECT_EQ(strict.lease.state, lease_state::failed);
}

TEST_F(Time, AnExpiryWaitsForTheLongerOfBackoffAndLockDelay) {
  chosen.retry_backoff = duration{10};
  chosen.lock_delay = duration{7};
  activate();
  expire(1100);
  EXPECT_EQ(of(rows[0].answer), (said{applied, reason::lease_expired, rule_id::expire_active}));
  EXPECT_EQ(lease.next_offer_at.ms, 1110);
  EXPECT_EQ(lease.unproven_count(), 1);
  rules_scene lock;
  lock.chosen = chosen;
  lock.acquire(1000);
  lock.expire(1100);
  EXPECT_EQ(lock.lease.next_offer_at.ms, 1107);
}

TEST_F(Time, AnExpiryNamesTheLifetimeWhereThatWasTheEnd) {
  chosen.max_lifetime = duration{120};
  activate();
  renew(1050, 1);
  expire(1120);
  EXPECT_EQ(of(rows[0].answer),
            (said{applied, reason::max_lifetime_reached, rule_id::expire_active}));
}

TEST_F(Time, AnExpiryFailsAJobByPolicyOrByItsLastAttemptButNeverALock) {
  chosen.max_attempts = 1;
  activate();
  expire(1100);
  EXPECT_EQ(of(rows[0].answer),
            (said{applied, reason::attempts_exhausted, rule_id::expire_active_fail}));
  rules_scene strict;
  strict.chosen.on_expiry = on_deadline::fail;
  strict.activate();
  strict.expire(1100);
  EXPECT_EQ(of(strict.rows[0].answer),
            (said{applied, reason::lease_expired, rule_id::expire_active_fail}));
  rules_scene lock;
  lock.chosen.on_expiry = on_deadline::fail;
  lock.chosen.max_attempts = 1;
  lock.acquire(1000);
  lock.expire(1100);
  EXPECT_EQ(lock.lease.state, lease_state::expired);
}

TEST_F(Time, AnUnresolvedLeaseWaitsForAnOperatorOnceItsWindowClosed) {
  activate();
  cancel(1010);
  expire(1539);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(of(rows[0].answer),
            (said{applied, reason::cancel_unreconciled, rule_id::expire_active_cancelled}));
  EXPECT_EQ(lease.reconcile_deadline.ms, 1540);
  expire(1540);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(of(rows[0].answer),
            (said{applied, reason::reconcile_window_closed, rule_id::window_closed_wait}));
  EXPECT_EQ(next_deadline(lease), std::nullopt);
  EXPECT_EQ(judge(1600, result(1600, outcome::cancelled)).reason, reason::reconciled);
}

TEST_F(Time, AnUnresolvedLeaseFailsByPolicyWithoutAResult) {
  chosen.on_unresolved = on_unresolved::fail;
  activate();
  cancel(1010);
  expire(9999);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].at.ms, 1540);
  EXPECT_EQ(rows[1].answer.rule, rule_id::window_closed_fail);
  EXPECT_EQ(lease.state, lease_state::failed);
  EXPECT_EQ(lease.terminal_result, outcome::none);
}

TEST_F(Time, AnExpiryStillRunsWhileTheLeaseIsFrozen) {
  chosen.on_conflict = on_conflict::freeze;
  activate();
  auto stranger = frame(event_kind::ack, 1010);
  stranger.from = holder{"b"};
  judge(1010, stranger);
  expire(1100);
  EXPECT_EQ(lease.state, lease_state::expired);
  EXPECT_TRUE(lease.frozen);
}

TEST_F(Time, ARecoveryGraceExtendsOnlyWhatWouldEndBeforeIt) {
  activate();
  recover(1080);
  EXPECT_TRUE(rows.empty());
  recover(1081);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(of(rows[0].answer), (said{applied, reason::recovery_grace, rule_id::grace}));
  EXPECT_EQ(lease.expires_at.ms, 1101);
  EXPECT_EQ(lease.graces, 1);
}

TEST_F(Time, ARecoveryGraceIsGivenThreeTimesAtMost) {
  activate();
  for (std::int64_t at = 1090; at < 1094; ++at) recover(at);
  EXPECT_EQ(lease.graces, 3);
  EXPECT_EQ(lease.expires_at.ms, 1112);
}

TEST_F(Time, ARecoveryGraceIsCappedByDurationLifetimeAndCancel) {
  chosen.recovery_grace = duration{500};
  activate();
  recover(1050);
  EXPECT_EQ(lease.expires_at.ms, 1150);
  rules_scene mortal;
  mortal.chosen.recovery_grace = duration{500};
  mortal.chosen.max_lifetime = duration{110};
  mortal.activate();
  mortal.recover(1050);
  EXPECT_EQ(mortal.lease.expires_at.ms, 1110);
  rules_scene cancelled;
  cancelled.activate();
  cancelled.cancel(1010);
  cancelled.recover(1039);
  EXPECT_TRUE(cancelled.rows.empty());
}

TEST_F(Time, ARecoveryGraceMovesTheAckDeadlineOfAnOffer) {
  offer(1000);
  recover(1049);
  EXPECT_EQ(lease.expires_at.ms, 1069);
  EXPECT_EQ(lease.ack_deadline.ms, 1069);
}

TEST_F(Time, AnOutageEndsALeaseUnlessThePolicyExtendsIt) {
  activate();
  recover(1100);
  EXPECT_EQ(lease.state, lease_state::expired);
  rules_scene spared;
  spared.chosen.outage_expiry = outage_expiry::extend;
  spared.activate();
  spared.recover(5000);
  ASSERT_EQ(spared.rows.size(), 1U);
  EXPECT_EQ(spared.lease.expires_at.ms, 5020);
  spared.chosen.recovery_grace = duration{0};
  spared.recover(5020);
  EXPECT_EQ(spared.lease.state, lease_state::expired);
}

TEST_F(Time, BackoffDoublesUpToItsMaximum) {
  chosen.retry_backoff = duration{10};
  chosen.retry_backoff_max = duration{45};
  EXPECT_EQ(backoff(chosen, 0).ms, 0);
  EXPECT_EQ(backoff(chosen, 1).ms, 10);
  EXPECT_EQ(backoff(chosen, 3).ms, 40);
  EXPECT_EQ(backoff(chosen, 4).ms, 45);
  EXPECT_EQ(backoff(chosen, max_number).ms, 45);
  chosen.retry_backoff_max = duration{max_number};
  EXPECT_EQ(backoff(chosen, 33).ms, std::int64_t{10} << 32);
  EXPECT_EQ(backoff(chosen, 34).ms, std::int64_t{10} << 32);
  chosen.retry_backoff = duration{0};
  EXPECT_EQ(backoff(chosen, 5).ms, 0);
}

TEST_F(Time, SumsOfAbsurdNumbersSaturate) {
  constexpr auto absurd = std::numeric_limits<std::int64_t>::max();
  chosen.ack_timeout = chosen.lease_duration = chosen.cancel_grace = duration{absurd};
  chosen.max_clock_skew = chosen.reconcile_window = chosen.lock_delay = duration{absurd};
  offer(max_number);
  EXPECT_EQ(lease.expires_at.ms, max_number);
  rules_scene early;
  early.chosen = chosen;
  early.activate();
  EXPECT_EQ(early.lease.expires_at.ms, max_number);
  EXPECT_EQ(early.judge(1010, early.sequenced(event_kind::renew, absurd, absurd)).reason,
            reason::renewed);
  EXPECT_EQ(early.lease.renew_sequence.value, absurd);
  early.revoke(1020);
  EXPECT_EQ(early.lease.next_offer_at.ms, max_number);
}

}  // namespace
}  // namespace leasehold::protocol
