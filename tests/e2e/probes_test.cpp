// The four decisive failure probes [L14] on a live coordinator.
#include <gmock/gmock.h>

#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::decision;
using protocol::event_kind;
using protocol::outcome;
using protocol::reason;

class probes : public on_threads {};
LEASEHOLD_ON_THREADS(probes);

/// Raises the lease's generation to `gen` by taking and handing back, and ACKs that one.
void raise_to(stream_peer& worker, const std::string& job, std::int64_t gen) {
  for (std::int64_t i = 1; i <= gen; ++i) {
    const auto offer = worker.offer_of(job);
    ASSERT_TRUE(offer);
    ASSERT_EQ(offer->standing.gen.value, i);
    worker.start(job, i);
    if (i < gen) {
      ASSERT_EQ(worker.tell(worker.frame(event_kind::release, job, i)).reason, reason::released);
    }
  }
}

TEST_P(probes, OneALateRenewOfGeneration7IsStaleAndGeneration8IsKept) {
  live_server server(GetParam());
  stream_peer former(server, "w1");
  former.hello();
  former.credit(1);
  // Two seconds and a half: long enough for the few frames of generation 8, whatever else runs.
  server.submit("p1", {{"lease_duration_ms", 2500}, {"max_clock_skew_ms", 60000}});
  raise_to(former, "p1", 7);
  former.credit(0);
  const auto renewed = former.tell(former.frame(event_kind::renew, "p1", 7, 1));
  EXPECT_EQ(renewed.reason, reason::renewed);

  const auto lost = former.loss_of("p1");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lost.why, protocol::loss::expired);
  EXPECT_EQ(lost->lost.gen.value, 7);

  stream_peer next(server, "w2", 'b');
  next.hello();
  next.credit(1);
  const auto offer = next.offer_of("p1");
  ASSERT_TRUE(offer);
  ASSERT_EQ(offer->standing.gen.value, 8);
  next.start("p1", 8);
  const auto late = former.tell(former.frame(event_kind::renew, "p1", 7, 2));
  EXPECT_EQ(late.decision, decision::rejected);
  EXPECT_EQ(late.reason, reason::stale_generation);
  EXPECT_EQ(late.outcome, protocol::reason_class::permanent);
  EXPECT_EQ(late.standing.gen.value, 8);
  EXPECT_EQ(next.tell(next.result("p1", 8, outcome::success)).reason, reason::completed);

  const auto rows = server.evidence("p1");
  const auto stale = last_row(rows, "renew");
  expect_columns(stale, {{"decision", "rejected"},
                         {"reason", "stale_generation"},
                         {"stale_generation", true},
                         {"frame_generation", 7},
                         {"frame_holder", former.holder().value},
                         {"frame_sequence", 2},
                         {"rule", "6"},
                         {"generation", 8},
                         {"holder_identity", next.holder().value},
                         {"state_before", "active"},
                         {"state", "active"}});
  EXPECT_EQ(standing_of(stale), standing_of(last_row(rows, "activate")));
  expect_columns(last_row(rows, "expire"),
                 {{"generation", 7}, {"reason", "lease_expired"}, {"lease_expired", true}});
  expect_replayable(server, "p1");
  expect_proven(server);
}

TEST_P(probes, TwoAnAckWithoutAResultExpiresAndIsNeverCompleted) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("p2", {{"lease_duration_ms", 300},
                       {"retry_backoff_ms", 3'600'000},
                       {"retry_backoff_max_ms", 3'600'000}});
  ASSERT_TRUE(worker.offer_of("p2"));
  const auto began = worker.start("p2", 1);
  const auto lost = worker.loss_of("p2");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lost.why, protocol::loss::expired);

  const auto job = server.job("p2");
  expect_columns(job, {{"state", "expired"},
                       {"ack_state", "accepted"},
                       {"terminal_result", "none"},
                       {"attempt", 1},
                       {"unproven", 1}});
  // A success that comes now was not reported with authority: it proves the end of the work, and no
  // more.
  const auto late = worker.tell(worker.result("p2", 1, outcome::success));
  EXPECT_EQ(late.decision, decision::rejected);
  EXPECT_EQ(late.reason, reason::lease_expired);
  expect_columns(server.job("p2"),
                 {{"state", "expired"}, {"terminal_result", "none"}, {"unproven", 0}});

  const auto rows = server.evidence("p2");
  expect_columns(last_row(rows, "expire"), {{"at", began.acquired_at.ms + 300},
                                            {"origin", "coordinator"},
                                            {"decision", "applied"},
                                            {"reason", "lease_expired"},
                                            {"lease_expired", true},
                                            {"state_before", "active"},
                                            {"state", "expired"},
                                            {"terminal_result", "none"}});
  expect_columns(last_row(rows, "result"),
                 {{"decision", "rejected"}, {"reason", "lease_expired"}, {"lease_expired", true}});
  expect_columns(last_row(rows, "stop"), {{"reason", "holder_reported_stop"}, {"rule", "7b"}});
  for (const auto& row : rows) EXPECT_NE(row.at("state"), "completed");
  expect_replayable(server, "p2");
  expect_proven(server);
}

TEST_P(probes, ThreeProgress12After14IsEvidenceAndTheValueStays) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  worker.credit(1);
  server.submit("p3", {{"lease_duration_ms", 3'600'000}, {"max_clock_skew_ms", 60000}});
  ASSERT_TRUE(worker.offer_of("p3"));
  worker.start("p3", 1);
  EXPECT_EQ(worker.tell(worker.progress("p3", 1, 14, "fourteen")).reason,
            reason::progress_recorded);
  const auto late = worker.tell(worker.progress("p3", 1, 12, "twelve"));
  EXPECT_EQ(late.decision, decision::ignored);
  EXPECT_EQ(late.reason, reason::late_progress);
  EXPECT_EQ(late.standing.progress_sequence.value, 14);
  expect_columns(server.job("p3"), {{"progress_sequence", 14}, {"progress_value", "fourteen"}});

  const auto rows = server.evidence("p3");
  const auto row = last_row(rows, "progress");
  expect_columns(row, {{"decision", "ignored"},
                       {"reason", "late_progress"},
                       {"late_progress", true},
                       {"frame_sequence", 12},
                       {"frame_value", "twelve"},
                       {"progress_sequence", 14},
                       {"progress_value", "fourteen"},
                       {"rule", "progress.late"}});
  EXPECT_EQ(standing_of(row), standing_of(rows.at(rows.size() - 2)));
  expect_replayable(server, "p3");
  expect_proven(server);
}

TEST_P(probes, FourACancelDuringADisconnectIsKeptAndNeedsReconciliation) {
  live_server server(GetParam());
  std::optional<stream_peer> worker(std::in_place, server, "w1");
  worker->hello();
  worker->credit(1);
  server.submit("p4", {{"lease_duration_ms", 3'600'000},
                       {"cancel_grace_ms", 300},
                       {"reconcile_window_ms", 3'600'000},
                       {"max_clock_skew_ms", 60000}});
  ASSERT_TRUE(worker->offer_of("p4"));
  worker->start("p4", 1);
  worker->vanish();
  const auto cancelled = server.post("/v1/jobs/p4:cancel", {{"reason", "no longer wanted"}});
  EXPECT_EQ(cancelled.status, 200) << cancelled.text;
  EXPECT_EQ(cancelled.body.at("reason"), "cancel_requested");
  ASSERT_TRUE(server.reaches("p4", "unresolved"));

  worker.emplace(server, "w1");
  const auto back = worker->hello({{protocol::lease_id{"p4"}, {1}, {}}});
  EXPECT_TRUE(back.resumed.empty());
  ASSERT_EQ(back.lost.size(), 1U);
  EXPECT_EQ(back.lost[0].why, protocol::loss::expired);
  const auto late = worker->tell(worker->progress("p4", 1, 1, "nearly done"));
  EXPECT_EQ(late.decision, decision::rejected);
  EXPECT_EQ(late.reason, reason::lease_expired);
  EXPECT_TRUE(late.standing.cancel_requested);
  expect_columns(server.job("p4"), {{"state", "unresolved"},
                                    {"terminal_result", "none"},
                                    {"progress_value", ""},
                                    {"unproven", 1}});
  expect_columns(last_row(server.evidence("p4"), "progress"),
                 {{"late_progress", true}, {"lease_expired", true}, {"state", "unresolved"}});

  const auto end = worker->tell(worker->result("p4", 1, outcome::success, "it was done"));
  EXPECT_EQ(end.decision, decision::accepted);
  EXPECT_EQ(end.reason, reason::reconciled);
  // What was done after the cancel and without authority is no success.
  expect_columns(server.job("p4"), {{"state", "cancelled"},
                                    {"terminal_result", "cancelled"},
                                    {"terminal_detail", "it was done"},
                                    {"unproven", 0}});
  const auto rows = server.evidence("p4");
  expect_columns(last_row(rows, "cancel"),
                 {{"decision", "accepted"}, {"reason", "cancel_requested"}, {"state", "active"}});
  expect_columns(last_row(rows, "expire"),
                 {{"reason", "cancel_unreconciled"}, {"state", "unresolved"}});
  expect_replayable(server, "p4");
  expect_proven(server);
}

TEST_P(probes, FourACancelDuringADisconnectIsToldAtTheReturnAndOutlivesLateProgress) {
  live_server server(GetParam());
  std::optional<stream_peer> worker(std::in_place, server, "w1");
  worker->hello();
  worker->credit(1);
  server.submit("p5", {{"lease_duration_ms", 3'600'000},
                       {"cancel_grace_ms", 3'600'000},
                       {"max_clock_skew_ms", 60000}});
  ASSERT_TRUE(worker->offer_of("p5"));
  worker->start("p5", 1);
  EXPECT_EQ(worker->tell(worker->progress("p5", 1, 1, "half")).reason, reason::progress_recorded);
  worker->vanish();
  EXPECT_EQ(server.post("/v1/jobs/p5:cancel").body.at("reason"), "cancel_requested");

  worker.emplace(server, "w1");
  const auto back = worker->hello({{protocol::lease_id{"p5"}, {1}, {}}});
  ASSERT_EQ(back.resumed.size(), 1U);
  EXPECT_TRUE(back.resumed[0].cancel_requested);
  const auto late = worker->tell(worker->progress("p5", 1, 2, "more"));
  EXPECT_EQ(late.decision, decision::ignored);
  EXPECT_EQ(late.reason, reason::progress_after_cancel);
  EXPECT_TRUE(late.standing.cancel_requested);
  expect_columns(last_row(server.evidence("p5"), "progress"),
                 {{"late_progress", true}, {"progress_value", "half"}, {"progress_sequence", 1}});
  EXPECT_EQ(worker->tell(worker->frame(event_kind::cancel_ack, "p5", 1)).reason,
            reason::cancel_acknowledged);
  expect_columns(server.job("p5"), {{"state", "active"}, {"terminal_result", "none"}});
  EXPECT_EQ(worker->tell(worker->result("p5", 1, outcome::cancelled)).reason,
            reason::cancel_completed);
  expect_columns(server.job("p5"), {{"state", "cancelled"}, {"terminal_result", "cancelled"}});
  expect_replayable(server, "p5");
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
