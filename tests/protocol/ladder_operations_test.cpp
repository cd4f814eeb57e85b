// What clients, operators and the coordinator can do, walked over every state: the table of the
// library and the ladder of ifs give the same decision, reason and flags everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/protocol/ladder_cases.hpp"

namespace leasehold::ladder {
namespace {

using namespace protocol;

constexpr event_kind every_operation[] = {
    event_kind::submit,  event_kind::offer,     event_kind::withdraw,
    event_kind::acquire, event_kind::cancel,    event_kind::revoke,
    event_kind::resolve, event_kind::reconcile, event_kind::prove};

std::vector<event> every_input() {
  std::vector<event> out;
  for (const event_kind kind : every_operation) {
    for (const char* from : {"", "a", "b"}) {
      for (const std::int64_t gen : {0, 1, 2, 3}) {
        for (const outcome how :
             {outcome::none, outcome::success, outcome::failed, outcome::cancelled}) {
          for (const bool force : {false, true}) {
            for (const char* id : {"", "new", "acquired", "cancelled", "revoked", "resolved",
                                   "reconciled", "released"}) {
              event what;
              what.kind = kind;
              what.lease = lease_id{"L"};
              what.job = job_id{"J"};
              what.from = holder{from};
              what.gen = kind == event_kind::prove ? generation{gen} : generation{};
              what.ending = kind == event_kind::reconcile ? how : outcome::none;
              what.force = kind == event_kind::revoke && force;
              what.request = request_id{id};
              out.push_back(what);
            }
            if (kind != event_kind::revoke) break;
          }
          if (kind != event_kind::reconcile) break;
        }
        if (kind != event_kind::prove) break;
      }
    }
  }
  return out;
}

void remember_requests(record& lease) {
  lease.requests = {asked("acquired", event_kind::acquire, 0, "a"),
                    asked("cancelled", event_kind::cancel, 0, ""),
                    asked("revoked", event_kind::revoke, 0, ""),
                    asked("resolved", event_kind::resolve, 0, "a"),
                    asked("reconciled", event_kind::reconcile, 0, ""),
                    asked("released", event_kind::release, 3, "a")};
  lease.requests[2].force = true;
  lease.requests[4].ending = outcome::failed;
}

TEST(LadderOfOperations, EveryOperationMeetsTheSameAnswerAsOnThePage) {
  const std::vector<event> inputs = every_input();
  const policy chosen = usual_policy();
  comparison walk;
  for (int number = 1; number <= static_cast<int>(lease_state::cancelled); ++number) {
    const auto state = static_cast<lease_state>(number);
    if (state == lease_state::acked) continue;
    for (const lease_kind kind : {lease_kind::job, lease_kind::lock}) {
      for (const bool frozen : {false, true}) {
        for (const bool cancel : {false, true}) {
          for (int unproven = 0; unproven < unproven_variants; ++unproven) {
            for (const std::int64_t next : {0, 9'999, 10'000, 10'001, 10'100, 10'101}) {
              record lease = lease_in(state, kind);
              if (frozen && is_settled(state)) continue;
              if (cancel && is_grantable(state)) continue;
              if (cancel && state == lease_state::offered) continue;
              lease.frozen = frozen;
              if (cancel) lease.cancel_requested_at = instant{9'700};
              set_unproven(lease, unproven);
              lease.next_offer_at = instant{next};
              remember_requests(lease);
              for (const event& what : inputs) walk.operation(lease, chosen, what);
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_THAT(walk.reasons(), testing::IsSupersetOf({"offered",
                                                     "acquired",
                                                     "cancel_requested",
                                                     "cancelled_before_grant",
                                                     "revoked",
                                                     "conflict_resolved",
                                                     "conflict_revoked",
                                                     "reconciled_by_operator",
                                                     "reconciled_by_proof",
                                                     "stop_proven",
                                                     "cancel_unreconciled",
                                                     "offer_undeliverable",
                                                     "duplicate_request",
                                                     "duplicate_cancel",
                                                     "not_offered",
                                                     "not_held",
                                                     "no_conflict",
                                                     "not_unproven",
                                                     "invalid_frame",
                                                     "request_reused",
                                                     "holder_mismatch",
                                                     "lease_settled",
                                                     "lease_frozen",
                                                     "not_a_job",
                                                     "not_a_lock",
                                                     "already_held",
                                                     "retry_not_due",
                                                     "not_unresolved",
                                                     "offer_withdrawn"}));
}

TEST(LadderOfOperations, OnlySubmitOfferAndAcquireMakeALease) {
  comparison walk;
  for (const event& what : every_input()) walk.operation(record{}, usual_policy(), what);
  EXPECT_EQ(walk.differences(), "");
  EXPECT_EQ(walk.reasons(), (std::set<std::string>{"submitted", "offered", "acquired",
                                                   "unknown_lease", "invalid_frame"}));
}

TEST(LadderOfOperations, TheLastPossibleGenerationIsGrantedAndNoneAfterIt) {
  comparison walk;
  for (const std::int64_t gen : {max_number - 2, max_number - 1, max_number}) {
    for (const lease_kind kind : {lease_kind::job, lease_kind::lock}) {
      record lease = lease_in(lease_state::released, kind);
      lease.gen = generation{gen};
      for (const event& what : every_input()) walk.operation(lease, usual_policy(), what);
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_THAT(walk.reasons(),
              testing::IsSupersetOf({"generation_exhausted", "offered", "acquired"}));
}

}  // namespace
}  // namespace leasehold::ladder
