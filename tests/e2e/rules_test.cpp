// Every rule of protocol.md 4 that can be met from outside, met from outside.
#include "rule_cases.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::outcome;
using protocol::reason;

class rules : public on_threads {
 protected:
  rule_world world{GetParam()};

  void TearDown() override {
    EXPECT_EQ(world.server.get("/healthz").status, 200);
    expect_proven(world.server);
  }

  void play(const std::vector<rule_case>& cases) {
    for (const auto& each : cases) {
      SCOPED_TRACE("rule " + std::string(each.rule) + ": " + std::string(each.name));
      rule_scene scene(world, std::string(each.name));
      const auto said = each.play(scene);
      EXPECT_EQ(protocol::word(said.decision), protocol::word(each.decision));
      EXPECT_EQ(protocol::word(said.reason), protocol::word(each.reason));
      EXPECT_EQ(protocol::word(said.outcome), protocol::word(each.outcome));
      EXPECT_EQ(said.retry_after.ms > 0, each.outcome == protocol::reason_class::retryable);
      expect_row(scene, each, said);
    }
  }

 private:
  /// The newest row that names the rule says the same as the answer did.
  void expect_row(const rule_scene& scene, const rule_case& each,
                  const protocol::frame_verdict& said) {
    if (each.rule.empty() || each.reason == reason::unknown_lease) return;
    const auto rows = world.server.evidence(scene.lease());
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      if (row->at("rule").as_string() != each.rule) continue;
      expect_columns(*row, {{"decision", protocol::word(each.decision)},
                            {"reason", protocol::word(each.reason)},
                            {"frame_id", said.answers},
                            {"origin", "worker"}});
      return;
    }
    ADD_FAILURE() << "no row names the rule";
  }
};
LEASEHOLD_ON_THREADS(rules);

TEST_P(rules, OfEveryFrameAreAnsweredAsThePageSays) { play(general_cases()); }
TEST_P(rules, OfAnOfferedLeaseAreAnsweredAsThePageSays) { play(offered_cases()); }
TEST_P(rules, OfAnActiveLeaseAreAnsweredAsThePageSays) { play(active_cases()); }

TEST_P(rules, AFrameAboutAnUnknownLeaseLeavesARowOfNoLease) {
  rule_scene scene(world, "nobody");
  EXPECT_EQ(scene.tell(scene.renew(7)).reason, reason::unknown_lease);
  const auto rows = world.server.all_evidence();
  expect_columns(last_row(rows, "renew"), {{"rule", "1"},
                                           {"lease_id", "nobody"},
                                           {"job_id", ""},
                                           {"state_before", "none"},
                                           {"state", "none"},
                                           {"kind", "none"},
                                           {"generation", 0},
                                           {"frame_generation", 1},
                                           {"frame_sequence", 7},
                                           {"decision", "rejected"},
                                           {"reason", "unknown_lease"}});
  // A job of that name which comes later begins a history of its own.
  scene.active();
  EXPECT_EQ(world.server.evidence("nobody").front().at("event"), "submit");
}

TEST_P(rules, AConflictThatTheStoredGrantDecidesLeavesTheHolderItsLease) {
  rule_scene scene(world, "conflict");
  scene.active();
  EXPECT_EQ(scene.tell_as_other(scene.renew(1)).reason, reason::ownership_conflict);
  EXPECT_TRUE(eventually([&] { return world.server.job("conflict").at("frozen") == false; }));
  EXPECT_EQ(scene.tell(scene.renew(1)).reason, reason::renewed);
  const auto rows = world.server.evidence("conflict");
  expect_columns(last_row(rows, "resolve"), {{"origin", "coordinator"},
                                             {"decision", "applied"},
                                             {"reason", "record_confirms_holder"},
                                             {"rule", "7a"}});
}

TEST_P(rules, AFrozenLeaseStaysSoUntilAnOperatorConfirmsItsHolder) {
  rule_scene scene(world, "frozen");
  scene.frozen();
  EXPECT_EQ(scene.tell(scene.result(outcome::success)).reason, reason::lease_frozen);
  expect_columns(world.server.job("frozen"), {{"frozen", true}, {"state", "active"}});
  scene.operate("resolve", {{"holder", world.worker.holder().value}});
  EXPECT_EQ(scene.tell(scene.result(outcome::success)).reason, reason::completed);
}

TEST_P(rules, ALateReportProvesThatTheWorkOfARevokedGenerationStopped) {
  rule_scene scene(world, "proof");
  scene.revoked();
  EXPECT_EQ(world.server.job("proof").at("unproven"), 1);
  EXPECT_EQ(scene.tell(scene.result(outcome::success)).reason, reason::lease_revoked);
  EXPECT_EQ(world.server.job("proof").at("unproven"), 0);
  expect_columns(last_row(world.server.evidence("proof"), "stop"),
                 {{"rule", "7b"}, {"reason", "holder_reported_stop"}});
}

TEST_P(rules, TheLastProgressInsideAResultIsJudgedBeforeIt) {
  rule_scene scene(world, "last-words");
  scene.active();
  auto end = scene.result(outcome::success);
  end.last_progress_sequence = {9};
  end.last_progress_value = "all";
  EXPECT_EQ(scene.tell(std::move(end)).reason, reason::completed);
  expect_columns(world.server.job("last-words"),
                 {{"progress_sequence", 9}, {"progress_value", "all"}, {"state", "completed"}});
}

TEST_P(rules, AMissedOfferMayNotBeAckedAfterItsDeadline) {
  rule_scene scene(world, "missed");
  world.server.submit("missed", {{"ack_timeout_ms", 1},
                                 {"retry_backoff_ms", 3'600'000},
                                 {"retry_backoff_max_ms", 3'600'000}});
  ASSERT_TRUE(world.server.reaches("missed", "expired"));
  world.worker.offer_of("missed");
  EXPECT_EQ(scene.tell(scene.frame(event_kind::ack)).reason, reason::lease_expired);
  expect_columns(last_row(world.server.evidence("missed"), "expire"),
                 {{"reason", "ack_deadline_missed"}, {"lease_expired", true}, {"losses", 1}});
}

}  // namespace
}  // namespace leasehold::e2e
