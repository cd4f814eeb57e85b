// What a job says of the dispatch of its cancel: one sentence for each way in which it stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/http_api_job.hpp"
#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using protocol::dispatch_record;
using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;
using testing::HasSubstr;
using testing::Not;
using tests::api_rig;

/// 2026-01-01T00:00:00Z.
constexpr protocol::instant newyear{1'767'225'600'000};

protocol::record cancelled_job() {
  protocol::record r;
  r.job = protocol::job_id{"j"};
  r.gen = {3};
  r.state = protocol::lease_state::active;
  r.cancel_requested_at = newyear;
  return r;
}

dispatch_record standing(dispatch_stage stage, dispatch_status status, dispatch_result last) {
  dispatch_record d;
  d.gen = {3};
  d.stage = stage;
  d.status = status;
  d.last_result = last;
  d.last_dispatched_at = newyear + protocol::duration{1'000};
  d.next_attempt_at = newyear + protocol::duration{61'000};
  return d;
}

TEST(DispatchSentence, SaysWhatWasDoneAndWhatIsWaitedFor) {
  using enum dispatch_status;
  using enum dispatch_result;
  constexpr auto stream = dispatch_stage::stream;
  constexpr auto process = dispatch_stage::process;
  struct row {
    dispatch_record dispatch;
    const char* sentence;
  };
  const std::vector<row> table{
      {standing(stream, pending, none), "It waits to be dispatched over the stream."},
      {standing(stream, leased, none), "It is being dispatched over the stream."},
      {standing(stream, retry_wait, controller_missing),
       "Its holder is not connected; it is dispatched over the stream again at "
       "2026-01-01T00:01:01Z."},
      {standing(stream, retry_wait, dispatch_error),
       "Its holder did not acknowledge it in time; it is dispatched over the stream again at "
       "2026-01-01T00:01:01Z."},
      {standing(stream, dispatched, termination_requested),
       "It was dispatched over the stream at 2026-01-01T00:00:01Z; waiting for the result, proof, "
       "or an operator."},
      {standing(process, pending, termination_requested),
       "It was dispatched over the stream at 2026-01-01T00:00:01Z; its process is ended from "
       "2026-01-01T00:01:01Z on, if the job has not ended by then."},
      {standing(process, pending, controller_missing),
       "It waits to be dispatched to its process, from 2026-01-01T00:01:01Z on."},
      {standing(process, leased, none), "It is being dispatched to its process."},
      {standing(process, retry_wait, handle_missing),
       "No process is registered for it; it is dispatched to its process again at "
       "2026-01-01T00:01:01Z."},
      {standing(process, retry_wait, dispatch_error),
       "Its process could not be signalled; it is dispatched to its process again at "
       "2026-01-01T00:01:01Z."},
      {standing(process, dispatched, termination_requested),
       "It was dispatched to its process at 2026-01-01T00:00:01Z; waiting for the result, proof, or "
       "an operator."},
      {standing(process, dispatched, already_exited),
       "Its process was found to have exited at 2026-01-01T00:00:01Z; the coordinator settles it."},
      {standing(process, blocked, identity_mismatch),
       "Its dispatch is blocked (identity_mismatch): the process is not provably the one; an "
       "operator must look (leasehold dispatch show j)."},
      {standing(stream, closed, none),
       "An operator resolved its dispatch: nothing more is done to end the work."},
  };
  for (const auto& each : table) {
    EXPECT_EQ(dispatch_sentence(cancelled_job(), each.dispatch), each.sentence);
  }
}

TEST(DispatchSentence, OfAClosedOneWhoseAttemptHasEndedNamesTheGeneration) {
  auto job = cancelled_job();
  job.state = protocol::lease_state::unresolved;
  job.unproven = {{{2}, protocol::holder{"w/1"}, {}}};
  const auto closed = standing(dispatch_stage::stream, dispatch_status::closed,
                               dispatch_result::termination_requested);
  EXPECT_EQ(dispatch_sentence(job, closed),
            "Its dispatch is closed: generation 3 has ended; work of an earlier one is not "
            "dispatched.");
}

class job_dispatch_test : public testing::Test {
 protected:
  job_dispatch_test() {
    auto& job = rig.gateway.add_job("t", "j", "q", protocol::lease_state::active);
    rig.gateway.change(job, [](protocol::record& r) {
      r.gen = {3};
      r.cancel_requested_at = newyear;
      r.cancel_deadline = newyear + protocol::duration{10'000};
    });
  }
  void open() {
    protocol::dispatch_change change;
    change.key = {protocol::tenant_id{"t"}, protocol::lease_id{"j"}};
    change.gen = {3};
    change.at = change.cancel_requested_at = newyear;
    rig.store->dispatches().apply({change});
  }
  std::string told() {
    const auto shown = api_rig::json(rig.ask("GET", "/v1/jobs/j", "client"));
    return std::string(shown.at("cancel").as_string());
  }
  api_rig rig;
};

TEST_F(job_dispatch_test, AJobTellsItBehindWhereItsCancelStands) {
  open();
  EXPECT_EQ(told(),
            "The holder was asked to stop by cancel_deadline and has not answered yet. It waits to "
            "be dispatched over the stream.");
}

TEST_F(job_dispatch_test, WithoutARecordNothingIsAdded) {
  EXPECT_EQ(told(), "The holder was asked to stop by cancel_deadline and has not answered yet.");
}

TEST_F(job_dispatch_test, TablesThatCannotBeReadTakeNothingElseAway) {
  open();
  rig.store->dispatches().fail_next(actors::store_error::kind::busy);
  EXPECT_THAT(told(), HasSubstr("How its dispatch stands cannot be read just now."));
}

TEST_F(job_dispatch_test, AJobThatHasEndedNeedsNone) {
  open();
  auto& job = rig.gateway.add_job("t", "over", "q", protocol::lease_state::cancelled);
  rig.gateway.change(job, [](protocol::record& r) { r.cancel_requested_at = newyear; });
  rig.store->dispatches().fail_next(actors::store_error::kind::busy);
  const auto shown = api_rig::json(rig.ask("GET", "/v1/jobs/over", "client"));
  EXPECT_THAT(std::string(shown.at("cancel").as_string()), Not(HasSubstr("dispatch")));
}

}  // namespace
}  // namespace leasehold::server
