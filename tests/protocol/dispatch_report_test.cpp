// What each result makes of a dispatch, what an operator may do to it, and how long it waits.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "dispatch_scene.hpp"

namespace leasehold::protocol {
namespace {

TEST(DispatchReport, EveryMismatchIsStaleAndWritesNothing) {
  auto r = opened();
  const auto right = claimed(r, 2'000);
  const auto wrong = [&](auto change) {
    auto said = right;
    change(said);
    expect_stale(r, said, 2'001);
  };
  wrong([](auto& s) { s.key.lease = lease_id{"another"}; });
  wrong([](auto& s) { s.key.tenant = tenant_id{"another"}; });
  wrong([](auto& s) { s.gen = generation{6}; });
  wrong([](auto& s) { s.owner = "another"; });
  wrong([](auto& s) { s.token = std::string(32, '0'); });
  wrong([](auto& s) { s.token.clear(); });
  wrong([](auto& s) { s.version = 0; });
  wrong([](auto& s) { s.version = 2; });
}

TEST(DispatchReport, AClaimThatIsOverReportsNothingThoughNobodyTookIt) {
  auto r = opened();
  const auto said = claimed(r, 2'000);
  auto in_time = r;
  dispatch_event event;
  EXPECT_EQ(report_dispatch(in_time, said, instant{2'099}, pace, event), reason::none);
  expect_stale(r, said, 2'100);
  expect_stale(r, said, 2'101);
}

TEST(DispatchReport, TheFormerOwnerIsRefusedOnceAnotherHasTheClaim) {
  auto r = opened();
  const auto former = claimed(r, 2'000);
  auto next = claim_of(r);
  next.owner = "another";
  next.token = std::string(32, 'f');
  ASSERT_EQ(claim_dispatch(r, next, instant{2'100}, pace), reason::none);
  expect_stale(r, former, 2'101);
}

TEST(DispatchReport, AResultIsReportedOnce) {
  auto r = opened();
  const auto said = claimed(r, 2'000);
  dispatch_event event;
  ASSERT_EQ(report_dispatch(r, said, instant{2'001}, pace, event), reason::none);
  expect_stale(r, said, 2'002);
}

TEST(DispatchReport, AResultEndsTheClaimAndIsAnEventOfTheRecordsVersion) {
  for (const auto said : all_dispatch_results) {
    auto r = opened();
    const auto event = reported(r, 2'000, said);
    EXPECT_EQ(r.lease_owner, "");
    EXPECT_EQ(r.lease_token, "");
    EXPECT_EQ(r.lease_expires_at, instant{});
    EXPECT_EQ(r.last_result, said);
    EXPECT_EQ(r.last_dispatched_at, instant{2'001});
    EXPECT_EQ(r.updated_at, instant{2'001});
    EXPECT_EQ(r.version, 2);
    EXPECT_EQ(event.key, job);
    EXPECT_EQ(event.gen, generation{7});
    EXPECT_EQ(event.version, 2);
    EXPECT_EQ(event.at, instant{2'001});
    EXPECT_EQ(event.dispatch_count, 1);
    EXPECT_EQ(event.result, said);
  }
}

struct outcome_row {
  dispatch_result said;
  dispatch_event_kind event;
  dispatch_status last_stage;  ///< of a record without a further stage
};
constexpr std::array outcomes{
    outcome_row{dispatch_result::termination_requested, dispatch_event_kind::cancel_dispatched,
                dispatch_status::dispatched},
    outcome_row{dispatch_result::already_exited, dispatch_event_kind::cancel_dispatched,
                dispatch_status::dispatched},
    outcome_row{dispatch_result::identity_mismatch, dispatch_event_kind::cancel_dispatch_blocked,
                dispatch_status::blocked},
    outcome_row{dispatch_result::pid_mismatch, dispatch_event_kind::cancel_dispatch_blocked,
                dispatch_status::blocked},
    outcome_row{dispatch_result::unsupported, dispatch_event_kind::cancel_dispatch_blocked,
                dispatch_status::blocked},
    outcome_row{dispatch_result::invalid, dispatch_event_kind::cancel_dispatch_blocked,
                dispatch_status::blocked},
    outcome_row{dispatch_result::controller_missing, dispatch_event_kind::cancel_dispatch_failed,
                dispatch_status::retry_wait},
    outcome_row{dispatch_result::handle_missing, dispatch_event_kind::cancel_dispatch_failed,
                dispatch_status::retry_wait},
    outcome_row{dispatch_result::dispatch_error, dispatch_event_kind::cancel_dispatch_failed,
                dispatch_status::retry_wait},
};
static_assert(outcomes.size() == all_dispatch_results.size());

TEST(DispatchReport, EachResultHasItsStatusAndEvent) {
  for (const auto& row : outcomes) {
    for (auto r : {opened(), in_process_stage()}) {
      const auto stage = r.stage;
      EXPECT_EQ(reported(r, 1'100, row.said).kind, row.event) << word(row.said);
      EXPECT_EQ(r.status, row.last_stage) << word(row.said);
      EXPECT_EQ(r.stage, stage);
      const bool waits = row.last_stage == dispatch_status::retry_wait;
      EXPECT_EQ(r.next_attempt_at, waits ? instant{1'111} : instant{}) << word(row.said);
    }
  }
}

TEST(DispatchReport, AnAcknowledgedStreamLeavesTheProcessStageForTheDeadline) {
  for (const auto at : {deadline.ms - 2, deadline.ms - 1, deadline.ms, deadline.ms + 1}) {
    auto r = opened(host);
    EXPECT_EQ(reported(r, at, dispatch_result::termination_requested).kind,
              dispatch_event_kind::cancel_dispatched);
    EXPECT_EQ(r.stage, dispatch_stage::process);
    EXPECT_EQ(r.status, dispatch_status::pending);
    EXPECT_EQ(r.next_attempt_at, deadline);
  }
}

TEST(DispatchReport, AProcessThatHasExitedNeedsNoFurtherStage) {
  auto r = opened(host);
  reported(r, 1'100, dispatch_result::already_exited);
  EXPECT_EQ(r.stage, dispatch_stage::stream);
  EXPECT_EQ(r.status, dispatch_status::dispatched);
}

TEST(DispatchReport, AMissingConnectionMovesToTheProcessOnceTheDeadlineIsPast) {
  // Reported one millisecond after it was claimed: before, at and after the deadline.
  for (const auto at : {deadline.ms - 2, deadline.ms - 1, deadline.ms}) {
    auto r = opened(host);
    reported(r, at, dispatch_result::controller_missing);
    const bool is_past = at + 1 >= deadline.ms;
    EXPECT_EQ(r.stage, is_past ? dispatch_stage::process : dispatch_stage::stream) << at;
    EXPECT_EQ(r.status, is_past ? dispatch_status::pending : dispatch_status::retry_wait);
    EXPECT_EQ(r.next_attempt_at, is_past ? instant{at + 1} : deadline);
  }
}

TEST(DispatchReport, WithoutAHandleTheStreamIsTriedAgainPastTheDeadline) {
  auto r = opened();
  reported(r, deadline.ms + 100, dispatch_result::controller_missing);
  EXPECT_EQ(r.stage, dispatch_stage::stream);
  EXPECT_EQ(r.status, dispatch_status::retry_wait);
  EXPECT_EQ(r.next_attempt_at, instant{deadline.ms + 111});
}

TEST(DispatchReport, APauseOfTheStreamEndsAtTheDeadlineWhenAProcessIsKnown) {
  auto with_handle = opened(host);
  auto without = opened();
  with_handle.dispatch_count = without.dispatch_count = 20;
  reported(with_handle, deadline.ms - 20, dispatch_result::controller_missing);
  reported(without, deadline.ms - 20, dispatch_result::controller_missing);
  EXPECT_EQ(with_handle.next_attempt_at, deadline);
  EXPECT_EQ(without.next_attempt_at, instant{deadline.ms - 19 + 60});
}

TEST(DispatchReport, EachFailureWaitsTwiceAsLongAndCounts) {
  auto r = opened();
  instant at{2'000};
  for (const std::int64_t pause : {10, 20, 40, 60, 60}) {
    const auto count = r.dispatch_count;
    reported(r, at.ms, dispatch_result::dispatch_error);
    EXPECT_EQ(r.dispatch_count, count + 1);
    EXPECT_EQ(r.next_attempt_at, instant{at.ms + 1 + pause});
    expect_refused(r, claim_of(r), r.next_attempt_at.ms - 1, reason::not_due);
    at = r.next_attempt_at;
  }
}

TEST(DispatchBackoff, ItDoublesToItsMost) {
  EXPECT_EQ(dispatch_backoff(pace, 1), duration{10});
  EXPECT_EQ(dispatch_backoff(pace, 2), duration{20});
  EXPECT_EQ(dispatch_backoff(pace, 3), duration{40});
  EXPECT_EQ(dispatch_backoff(pace, 4), duration{60});
}

TEST(DispatchBackoff, ItsMostIsMetBeforeAtAndAfter) {
  for (const std::int64_t most : {39, 40, 41}) {
    EXPECT_EQ(dispatch_backoff({duration{100}, duration{10}, duration{most}}, 3),
              duration{std::min<std::int64_t>(most, 40)});
  }
}

TEST(DispatchBackoff, ItsExponentIsBounded) {
  const dispatch_pace open{duration{100}, duration{1}, duration{max_number}};
  EXPECT_EQ(dispatch_backoff(open, most_backoff_exponent), duration{1 << 15});
  EXPECT_EQ(dispatch_backoff(open, most_backoff_exponent + 1), duration{1 << 16});
  EXPECT_EQ(dispatch_backoff(open, most_backoff_exponent + 2), duration{1 << 16});
  EXPECT_EQ(dispatch_backoff(open, std::numeric_limits<std::int64_t>::max()), duration{1 << 16});
}

TEST(DispatchBackoff, NoNumberOverflows) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(dispatch_backoff({duration{1}, duration{most}, duration{most}}, 1), duration{most});
  EXPECT_EQ(dispatch_backoff({duration{1}, duration{most}, duration{most}}, 2), duration{most});
  for (const std::int64_t count : {std::numeric_limits<std::int64_t>::min(), std::int64_t{0}}) {
    EXPECT_EQ(dispatch_backoff(pace, count), duration{10});
  }
}

TEST(DispatchOperation, RetryMakesAnyButAClosedRecordPendingAtOnce) {
  for (const auto status : {dispatch_status::pending, dispatch_status::retry_wait,
                            dispatch_status::dispatched, dispatch_status::blocked}) {
    auto r = in_process_stage();
    r.status = status;
    r.next_attempt_at = instant{9'000};
    dispatch_event event;
    ASSERT_EQ(operate_dispatch(r, dispatch_operation::retry, instant{2'000}, event), reason::none);
    EXPECT_EQ(r.status, dispatch_status::pending);
    EXPECT_EQ(r.stage, dispatch_stage::process);
    EXPECT_EQ(r.next_attempt_at, instant{2'000});
    EXPECT_EQ(event.kind, dispatch_event_kind::cancel_dispatch_retried);
    EXPECT_EQ(event.result, dispatch_result::none);
    EXPECT_EQ(event.version, 1);
    EXPECT_EQ(r.version, 1);
  }
}

TEST(DispatchOperation, ResolveClosesAnyButAClosedRecord) {
  for (const auto status : {dispatch_status::pending, dispatch_status::retry_wait,
                            dispatch_status::dispatched, dispatch_status::blocked}) {
    auto r = opened();
    r.status = status;
    dispatch_event event;
    ASSERT_EQ(operate_dispatch(r, dispatch_operation::resolve, instant{2'000}, event),
              reason::none);
    EXPECT_EQ(r.status, dispatch_status::closed);
    EXPECT_EQ(r.next_attempt_at, instant{});
    EXPECT_EQ(event.kind, dispatch_event_kind::cancel_dispatch_resolved);
  }
}

TEST(DispatchOperation, NothingIsDoneToAClosedRecordOrOneThatIsActedOn) {
  for (const auto what : {dispatch_operation::retry, dispatch_operation::resolve}) {
    dispatch_event event;
    auto closed = opened();
    closed.status = dispatch_status::closed;
    const auto before = closed;
    EXPECT_EQ(operate_dispatch(closed, what, instant{2'000}, event), reason::dispatch_closed);
    EXPECT_EQ(closed, before);

    auto held = opened();
    claimed(held, 2'000);
    const auto as_claimed = held;
    EXPECT_EQ(operate_dispatch(held, what, instant{2'099}, event), reason::claim_held);
    EXPECT_EQ(held, as_claimed);
    EXPECT_EQ(event, dispatch_event{});
    for (const std::int64_t at : {2'100, 2'101}) {
      auto over = as_claimed;
      EXPECT_EQ(operate_dispatch(over, what, instant{at}, event), reason::none);
      EXPECT_EQ(over.lease_token, "");
    }
    event = {};
  }
}

}  // namespace
}  // namespace leasehold::protocol
