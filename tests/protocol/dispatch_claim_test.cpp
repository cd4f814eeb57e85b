// Who may claim a dispatch, and when: each line of the claim table, with its edges.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "dispatch_scene.hpp"

namespace leasehold::protocol {
namespace {

TEST(DispatchClaim, ANewRecordIsPendingInTheStreamStageAndDueAtOnce) {
  const auto r = opened(host);
  EXPECT_EQ(r.key, job);
  EXPECT_EQ(r.gen, generation{7});
  EXPECT_EQ(r.status, dispatch_status::pending);
  EXPECT_EQ(r.stage, dispatch_stage::stream);
  EXPECT_EQ(r.host, host);
  EXPECT_EQ(r.next_attempt_at, instant{});
  EXPECT_EQ(r.cancel_requested_at, cancelled);
  EXPECT_EQ(r.cancel_deadline, deadline);
  EXPECT_EQ(r.created_at, cancelled);
  EXPECT_EQ(r.version, 0);
}

TEST(DispatchClaim, AClaimCountsAndNamesItsOwnerTokenAndEnd) {
  auto r = opened();
  EXPECT_EQ(claim_dispatch(r, claim_of(r), instant{1'010}, pace), reason::none);
  EXPECT_EQ(r.status, dispatch_status::leased);
  EXPECT_EQ(r.version, 1);
  EXPECT_EQ(r.dispatch_count, 1);
  EXPECT_EQ(r.lease_owner, "me");
  EXPECT_EQ(r.lease_token, token);
  EXPECT_EQ(r.lease_expires_at, instant{1'110});
  EXPECT_EQ(r.updated_at, instant{1'010});
  EXPECT_EQ(r.created_at, cancelled);
}

TEST(DispatchClaim, NoClaimIsLongerThanItsHardBound) {
  for (const auto& [asked, length] :
       std::array{std::pair{longest_claim.ms - 1, longest_claim.ms - 1},
                  std::pair{longest_claim.ms, longest_claim.ms},
                  std::pair{longest_claim.ms + 1, longest_claim.ms},
                  std::pair{std::numeric_limits<std::int64_t>::max(), longest_claim.ms}}) {
    auto r = opened();
    auto longer = pace;
    longer.claim = duration{asked};
    ASSERT_EQ(claim_dispatch(r, claim_of(r), instant{2'000}, longer), reason::none);
    EXPECT_EQ(r.lease_expires_at, instant{2'000 + length});
  }
}

TEST(DispatchClaim, AnotherAttemptCancelStageOrHostIsAMismatch) {
  const auto r = in_process_stage();
  const auto wrong = [&](auto change) {
    auto asked = claim_of(r);
    change(asked);
    expect_refused(r, asked, 2'000, reason::attempt_mismatch);
  };
  wrong([](auto& c) { c.gen = generation{6}; });
  wrong([](auto& c) { c.gen = generation{8}; });
  wrong([](auto& c) { c.cancel_requested_at = instant{999}; });
  wrong([](auto& c) { c.cancel_requested_at = instant{1'001}; });
  wrong([](auto& c) { c.key.lease = lease_id{"another"}; });
  wrong([](auto& c) { c.key.tenant = tenant_id{"another"}; });
  wrong([](auto& c) { c.stage = dispatch_stage::stream; });
  wrong([](auto& c) { c.host = "another"; });
  wrong([](auto& c) { c.host.clear(); });
}

TEST(DispatchClaim, TheStreamStageAsksForNoHost) {
  auto r = opened(host);
  auto asked = claim_of(r);
  asked.host = "whatever";
  EXPECT_EQ(claim_dispatch(r, asked, instant{2'000}, pace), reason::none);
  asked.stage = dispatch_stage::process;
  expect_refused(opened(host), asked, 2'000, reason::attempt_mismatch);
}

TEST(DispatchClaim, DispatchedBlockedAndClosedAreNeverClaimed) {
  for (const auto& [status, why] :
       std::array{std::pair{dispatch_status::dispatched, reason::dispatch_done},
                  std::pair{dispatch_status::blocked, reason::dispatch_blocked},
                  std::pair{dispatch_status::closed, reason::dispatch_closed}}) {
    auto r = in_process_stage();
    r.status = status;
    expect_refused(r, claim_of(r), max_number, why);
  }
}

TEST(DispatchClaim, NothingIsClaimedBeforeItsTime) {
  for (const auto status : {dispatch_status::pending, dispatch_status::retry_wait}) {
    auto r = opened();
    r.status = status;
    r.next_attempt_at = instant{2'000};
    expect_refused(r, claim_of(r), 1'999, reason::not_due);
    for (const std::int64_t at : {2'000, 2'001}) {
      auto due = r;
      EXPECT_EQ(claim_dispatch(due, claim_of(due), instant{at}, pace), reason::none);
    }
  }
}

TEST(DispatchClaim, AClaimIsHeldUntilItExpiresAndThenTakenOverWithAnotherTokenAndVersion) {
  auto r = opened();
  claimed(r, 2'000);
  auto second = claim_of(r);
  second.owner = "another";
  second.token = std::string(32, 'f');
  expect_refused(r, second, 2'000, reason::claim_held);
  expect_refused(r, second, 2'099, reason::claim_held);
  for (const std::int64_t at : {2'100, 2'101}) {
    auto taken = r;
    EXPECT_EQ(claim_dispatch(taken, second, instant{at}, pace), reason::none);
    EXPECT_EQ(taken.version, 2);
    EXPECT_EQ(taken.dispatch_count, 2);
    EXPECT_EQ(taken.lease_owner, "another");
    EXPECT_EQ(taken.lease_token, second.token);
    EXPECT_EQ(taken.lease_expires_at, instant{at + 100});
  }
}

TEST(DispatchClaim, TheOwnerItselfDoesNotClaimTwice) {
  auto r = opened();
  claimed(r, 2'000);
  expect_refused(r, claim_of(r), 2'050, reason::claim_held);
}

}  // namespace
}  // namespace leasehold::protocol
