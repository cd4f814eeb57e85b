// Cancel, whole: what becomes of a job that is cancelled, case by case, as one table of the final
// state, the reason, how its dispatch stands and the sentence that `leasehold job show` says.
#include <signal.h>
#include <sys/wait.h>

#include "cancel_scene.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::outcome;
using protocol::reason;

const std::string time_text = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)";
const std::string nothing_at_work = "The job is cancelled and nothing of it is still at work\\.";
const std::string nobody_has_authority =
    "Nobody has authority any more; waiting for a report or proof that earlier work has stopped\\.";
const std::string waits_for_the_end = "It was dispatched over the stream at " + time_text +
                                      "; waiting for the result, proof, or an operator\\.";

/// What happens, and how the cancel stands in the end.
struct cancel_case {
  std::string name;
  std::function<void(cancel_scene&)> happens;
  cancel_standing end;
};

void PrintTo(const cancel_case& each, std::ostream* out) { *out << each.name; }

/// Ends the lease at the deadline of its cancel, soon.
const json::object soon{{"cancel_grace_ms", 400}};

/// Nobody says a word until the authority is over.
void end_unresolved(cancel_scene& scene) {
  scene.submit(soon);
  scene.take();
  scene.hand->vanish();
  scene.cancel();
  EXPECT_TRUE(scene.server.reaches(scene.job, "unresolved"));
}

const std::vector<cancel_case> table{
    {"DuringADisconnectTheHolderHearsOfItWhenItIsBack",
     [](cancel_scene& scene) {
       scene.submit();
       scene.take();
       scene.hand->vanish();
       scene.cancel();
       scene.expect({"active", "cancel_requested", "retry_wait",
                     "The holder was asked to stop by cancel_deadline and has not answered yet\\. "
                     "Its holder is not connected; it is dispatched over the stream again at " +
                         time_text});
       scene.hand.emplace(scene.server, "w1");
       scene.hand->hello({{protocol::lease_id{scene.job}, {1}, {}}});
       EXPECT_TRUE(scene.hand->await<protocol::cancel_notice>());
       scene.tell(event_kind::cancel_ack);
       scene.expect({"active", "cancel_acknowledged", "dispatched", waits_for_the_end});
       scene.report(outcome::cancelled);
     },
     {"cancelled", "cancel_completed", "closed", nothing_at_work}},
    {"OfAnOfferItIsWithdrawn",
     [](cancel_scene& scene) {
       scene.submit();
       scene.hand.emplace(scene.server, "w1");
       scene.hand->hello();
       scene.hand->credit(1);
       EXPECT_TRUE(scene.hand->offer_of(scene.job));
       scene.cancel();
       EXPECT_TRUE(scene.hand->loss_of(scene.job));
     },
     {"cancelled", "offer_withdrawn", "none", nothing_at_work}},
    {"OfAJobThatFinishedJustBeforeItIsRefused",
     [](cancel_scene& scene) {
       scene.submit();
       scene.take();
       scene.report(outcome::success);
       EXPECT_EQ(scene.operate("cancel", {}, "client").body.at("reason"), "lease_settled");
     },
     {"completed", "lease_settled", "none", "completed"}},
    {"OfAJobThatFinishesJustAfterItIsRecordedAsItHappened",
     [](cancel_scene& scene) {
       scene.submit();
       scene.take();
       scene.cancel();
       EXPECT_EQ(scene.report(outcome::success).reason, reason::completed_despite_cancel);
     },
     {"completed", "completed_despite_cancel", "closed",
      "The holder finished before the cancel reached it\\."}},
    {"AcknowledgedByAWorkerThatNeverStopsItIsClosedByTheWindow",
     [](cancel_scene& scene) {
       scene.submit({{"cancel_grace_ms", 3'000},
                     {"reconcile_window_ms", 500},
                     {"on_unresolved", "fail"}});
       scene.take();
       scene.cancel();
       scene.tell(event_kind::cancel_ack);
       scene.expect({"active", "cancel_acknowledged", "dispatched",
                     "The holder has heard of the cancel and must stop by cancel_deadline\\. " +
                         waits_for_the_end});
     },
     {"failed", "reconcile_window_closed", "closed",
      "The job failed after the cancel was asked for\\."}},
    {"AcknowledgedByAWorkerThatNeverStopsItsProcessIsEnded",
     [](cancel_scene& scene) {
       working_process process("exec sleep 1000");
       scene.submit(soon);
       scene.take();
       scene.name_process(process);
       scene.cancel();
       scene.tell(event_kind::cancel_ack);
       const auto ended = process.wait();
       ASSERT_TRUE(ended);
       EXPECT_TRUE(WIFSIGNALED(*ended) && WTERMSIG(*ended) == SIGTERM);
     },
     {"cancelled", "reconciled_by_proof", "closed", nothing_at_work}},
    {"OfAProcessThatIgnoresTermItIsKilledAndProven",
     [](cancel_scene& scene) {
       working_process process("trap '' TERM; while :; do sleep 0.1; done");
       scene.submit(soon);
       scene.take();
       scene.name_process(process);
       scene.cancel();
       const auto ended = process.wait();
       ASSERT_TRUE(ended);
       EXPECT_TRUE(WIFSIGNALED(*ended) && WTERMSIG(*ended) == SIGKILL);
     },
     {"cancelled", "reconciled_by_proof", "closed", nothing_at_work}},
    {"OfACommandThatIgnoresTermTheWorkerKillsIt",
     [](cancel_scene& scene) {
       scene.submit();
       scene.run_worker("trap '' TERM; while :; do sleep 0.1; done", "3s");
       scene.cancel();
       scene.expect({"active", "cancel_acknowledged", "pending",
                     "It was dispatched over the stream at " + time_text +
                         "; its process is ended from " + time_text +
                         " on, if the job has not ended by then\\."});
     },
     {"cancelled", "cancel_completed", "closed", nothing_at_work}},
    {"OfAWorkerThatStandsStillItsCommandIsEndedAndProven",
     [](cancel_scene& scene) {
       scene.submit({{"cancel_grace_ms", 3'000}});
       // Its progress comes behind the name of its process.
       scene.run_worker("echo 'progress: on' >&3; exec sleep 1000");
       scene.expect({"active", "progress_recorded", "none", "active"});
       scene.worker().stand_still();
       scene.cancel();
       scene.expect({"active", "cancel_requested", "retry_wait",
                     "Its holder did not acknowledge it in time; it is dispatched over the stream "
                     "again at " +
                         time_text});
     },
     {"cancelled", "reconciled_by_proof", "closed", nothing_at_work}},
    {"OfAWorkerThatReleasesItIsCancelled",
     [](cancel_scene& scene) {
       scene.submit();
       scene.take();
       scene.cancel();
       EXPECT_EQ(scene.tell(event_kind::release).reason, reason::cancel_completed);
     },
     {"cancelled", "cancel_completed", "closed", nothing_at_work}},
    {"KilledBetweenTheAnswerAndTheDispatchTheNextCoordinatorDispatchesIt",
     [](cancel_scene& scene) {
       scene.submit();
       scene.take();
       scene.cancel();
       scene.server.kill();
       scene.server.start();
       scene.hand.emplace(scene.server, "w1");
       scene.hand->hello({{protocol::lease_id{scene.job}, {1}, {}}});
       EXPECT_TRUE(scene.hand->await<protocol::cancel_notice>());
       scene.tell(event_kind::cancel_ack);
       scene.expect({"active", "cancel_acknowledged", "dispatched", waits_for_the_end});
       scene.report(outcome::cancelled);
     },
     {"cancelled", "cancel_completed", "closed", nothing_at_work}},
    {"WithAnOlderGenerationUnprovenItWaitsForThatOnesReport",
     [](cancel_scene& scene) {
       scene.submit();
       scene.take();
       scene.hand->vanish();
       EXPECT_EQ(scene.operate("revoke", {{"force", true}}).status, 200);
       stream_peer& second = scene.take(2, "w2");
       scene.cancel();
       second.tell(second.frame(event_kind::cancel_ack, scene.job, 2));
       scene.report(outcome::cancelled, 2);
       scene.expect({"unresolved", "cancel_unreconciled", "closed",
                     nobody_has_authority +
                         " Its dispatch is closed: generation 2 has ended; work of an earlier one "
                         "is not dispatched\\."});
       scene.hand.emplace(scene.server, "w1");
       scene.hand->hello({{protocol::lease_id{scene.job}, {1}, {}}});
       EXPECT_EQ(scene.report(outcome::cancelled, 1).reason, reason::reconciled);
     },
     {"cancelled", "reconciled", "closed", nothing_at_work}},
    {"UnresolvedItIsReconciledByALateReport",
     [](cancel_scene& scene) {
       end_unresolved(scene);
       scene.expect({"unresolved", "cancel_unreconciled", "retry_wait",
                     nobody_has_authority + " Its holder is not connected"});
       scene.hand.emplace(scene.server, "w1");
       scene.hand->hello({{protocol::lease_id{scene.job}, {1}, {}}});
       EXPECT_EQ(scene.report(outcome::success).reason, reason::reconciled);
     },
     {"cancelled", "reconciled", "closed", nothing_at_work}},
    {"UnresolvedItIsReconciledByAnOperator",
     [](cancel_scene& scene) {
       end_unresolved(scene);
       EXPECT_EQ(scene.operate("reconcile", {{"outcome", "failed"}}).status, 200);
     },
     {"failed", "reconciled_by_operator", "closed",
      "The job failed after the cancel was asked for\\."}},
};

class Cancel : public testing::TestWithParam<std::tuple<cancel_store, cancel_case>> {};
INSTANTIATE_TEST_SUITE_P(Whole, Cancel,
                         testing::Combine(testing::ValuesIn(cancel_stores()),
                                          testing::ValuesIn(table)),
                         [](const auto& with) {
                           return std::get<0>(with.param).name + "_" +
                                  std::get<1>(with.param).name;
                         });

TEST_P(Cancel, EndsAsTheTableSays) {
  const auto& [store, what] = GetParam();
  cancel_scene scene(store);
  what.happens(scene);
  scene.expect(what.end);
}

}  // namespace
}  // namespace leasehold::e2e
