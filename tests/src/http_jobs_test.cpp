// Submitting, reading and operating on jobs: what bodies may hold, and what is shown to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using protocol::reason;
using testing::HasSubstr;
using testing::Not;
using tests::api_rig;

class http_jobs_test : public testing::Test {
 protected:
  std::pair<int, std::string> submit(const std::string& body) {
    const auto response = rig.ask("POST", "/v1/jobs", "client", body);
    const auto json = api_rig::json(response);
    return {response.status, std::string(json.at("reason").as_string())};
  }
  static std::pair<int, std::string> is(int status, const char* word) { return {status, word}; }
  const actors::job_spec& last_spec() const { return rig.gateway.submitted.back().spec; }

  api_rig rig;
};

TEST_F(http_jobs_test, ASubmitCarriesEveryFieldToTheCoordinator) {
  const std::string trace = "00-" + std::string(32, 'a') + "-" + std::string(16, 'b') + "-01";
  const auto response =
      rig.ask("POST", "/v1/jobs", "client",
              R"({"queue":"build","job_id":"j:1","payload":"grün","labels":{"os":"linux"},
      "priority":-5,"not_before":10,"not_after":20,"request_id":"r1","trace_id":")" +
                  trace + R"(","policy":{"max_attempts":3,"on_expiry":"fail"}})");
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(api_rig::header(response, "Location"), "/v1/jobs/j:1");
  const auto& sent = rig.gateway.submitted.back();
  EXPECT_EQ(sent.tenant.value, "t");
  EXPECT_EQ(sent.job->value, "j:1");
  EXPECT_EQ(sent.spec.queue, "build");
  EXPECT_EQ(sent.spec.payload, "grün");
  EXPECT_EQ(sent.spec.labels, (protocol::labels{{"os", "linux"}}));
  EXPECT_EQ(sent.spec.priority, -5);
  EXPECT_EQ(sent.spec.not_before.ms, 10);
  EXPECT_EQ(sent.spec.not_after.ms, 20);
  EXPECT_EQ(sent.spec.request.value, "r1");
  EXPECT_EQ(sent.spec.trace_id, trace);
  EXPECT_EQ(sent.spec.policy.max_attempts, 3);
  EXPECT_EQ(sent.spec.policy.on_expiry, protocol::on_deadline::fail);
  EXPECT_EQ(sent.spec.submitted_by, "client");
  const auto body = api_rig::json(response);
  EXPECT_EQ(body.at("request_id"), "r1");
  EXPECT_EQ(body.at("job").at("job_id"), "j:1");
}

TEST_F(http_jobs_test, APolicyIsTheQueuesWithTheBodysKeysOverIt) {
  options chosen;
  chosen.queues["build"].policy.max_attempts = 9;
  chosen.queues["build"].policy.max_losses = 8;
  rig.api->shared.chosen->replace(chosen);
  EXPECT_EQ(submit(R"({"queue":"build","policy":{"max_losses":2}})"), is(201, "submitted"));
  EXPECT_EQ(last_spec().policy.max_attempts, 9);
  EXPECT_EQ(last_spec().policy.max_losses, 2);
  EXPECT_EQ(submit(R"({"queue":"other"})"), is(201, "submitted"));
  EXPECT_EQ(last_spec().policy, protocol::policy{});
}

TEST_F(http_jobs_test, ARepeatedSubmitIsNoNewJob) {
  auto& job = rig.gateway.add_job("t", "j");
  rig.gateway.answer_with =
      actors::answer{protocol::decision::ignored, reason::duplicate_request, job, {}, false};
  EXPECT_EQ(submit(R"({"queue":"q"})"), is(200, "duplicate_request"));
}

TEST_F(http_jobs_test, WhatIsNoJsonObjectIsMalformed) {
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("7"), std::string("null"),
        std::string("{\"queue\":\"q\"} x"), std::string("{\"queue\":\"q\"}{}"),
        std::string("{\"queue\":\"q\",}"), std::string("{'queue':'q'}"),
        std::string("{\"queue\":\"q\",\"queue\":\"q\"}"),
        std::string("{\"queue\":\"q\",\"labels\":{\"a\":\"1\",\"a\":\"2\"}}"),
        std::string("\xEF\xBB\xBF{\"queue\":\"q\"}"), std::string("{\"queue\":\"\xff\"}"),
        std::string("{\"queue\":\"q\",\"priority\":9007199254740992}"),
        std::string("{\"queue\":\"q\",\"priority\":-9007199254740992}"),
        std::string("{\"queue\":\"q\",\"priority\":18446744073709551615}"),
        std::string("{\"queue\":\"q\",\"priority\":1e300}"),
        std::string("{\"queue\":\"q\",\"priority\":NaN}"),
        std::string("{\"queue\":\"q\" // x\n}")}) {
    EXPECT_EQ(submit(body), is(400, "malformed")) << body;
  }
  EXPECT_TRUE(rig.gateway.submitted.empty());
}

TEST_F(http_jobs_test, AFieldThatIsUnknownOrOutOfRangeIsInvalid) {
  for (const char* body : {"",
                           "{}",
                           R"({"queue":7})",
                           R"({"queue":""})",
                           R"({"queue":"a b"})",
                           R"({"queue":null})",
                           R"({"queue":"q","tenant":"u"})",
                           R"({"queue":"q","holder":"w"})",
                           R"({"queue":"q","priority":1001})",
                           R"({"queue":"q","priority":1.5})",
                           R"({"queue":"q","priority":"1"})",
                           R"({"queue":"q","job_id":"a/b"})",
                           R"({"queue":"q","job_id":"k:0"})",
                           R"({"queue":"q","labels":[]})",
                           R"({"queue":"q","labels":{"a b":"1"}})",
                           R"({"queue":"q","labels":{"a":1}})",
                           R"({"queue":"q","labels":{"a":"1\n"}})",
                           R"({"queue":"q","not_before":-1})",
                           R"({"queue":"q","not_before":5,"not_after":5})",
                           R"({"queue":"q","payload":"a","payload_base64":"YQ=="})",
                           R"({"queue":"q","payload_base64":"YQ"})",
                           R"({"queue":"q","payload_base64":"YR=="})",
                           R"({"queue":"q","payload_base64":"Y Q="})",
                           R"({"queue":"q","request_id":""})",
                           R"({"queue":"q","request_id":"a b"})",
                           R"({"queue":"q","trace_id":"x"})"}) {
    EXPECT_EQ(submit(body), is(400, "invalid_frame")) << body;
  }
  const auto response = rig.ask("POST", "/v1/jobs", "client", R"({"queu":"q"})");
  EXPECT_THAT(response.body, HasSubstr("queue"));
}

TEST_F(http_jobs_test, APolicyOutOfItsBoundsIsInvalidPolicy) {
  for (const char* keys :
       {R"({"lease_duration_ms":0})", R"({"lease_duration_ms":"5s"})", R"({"lease_duration":5})",
        R"({"on_expiry":"never"})", R"({"on_expiry":1})", R"({"max_lifetime_ms":1})",
        R"({"max_attempts":-1})", R"({"ack_timeout_ms":2592000001})", R"({"max_attempts":null})"}) {
    EXPECT_EQ(submit(std::string(R"({"queue":"q","policy":)") + keys + "}"),
              is(422, "invalid_policy"))
        << keys;
  }
}

TEST_F(http_jobs_test, ThePayloadsEdgeIsAt64KiB) {
  const auto with = [&](std::size_t bytes) {
    return submit(R"({"queue":"q","payload":")" + std::string(bytes, 'x') + "\"}");
  };
  EXPECT_EQ(with(65535), is(201, "submitted"));
  EXPECT_EQ(with(65536), is(201, "submitted"));
  EXPECT_EQ(with(65537), is(400, "invalid_frame"));
  EXPECT_EQ(submit(R"({"queue":"q","payload":")" + std::string(1 << 20, 'x') + "\"}"),
            is(413, "too_large"));
}

TEST_F(http_jobs_test, TheDepthsEdgeIsAt32) {
  const auto nested = [&](std::size_t depth) {
    return submit(R"({"queue":"q","x":)" + std::string(depth - 1, '[') +
                  std::string(depth - 1, ']') + "}");
  };
  EXPECT_EQ(nested(32), is(400, "invalid_frame"));  // read, and then no such field
  EXPECT_EQ(nested(33), is(400, "malformed"));
  EXPECT_EQ(nested(100'000), is(400, "malformed"));
}

TEST_F(http_jobs_test, APayloadOfBytesComesBackAsBytes) {
  EXPECT_EQ(submit(R"({"queue":"q","job_id":"b","payload_base64":"/wAB"})"), is(201, "submitted"));
  EXPECT_EQ(last_spec().payload, std::string("\xff\x00\x01", 3));
  const auto job = api_rig::json(rig.ask("GET", "/v1/jobs/b", "client"));
  EXPECT_EQ(job.at("payload_base64"), "/wAB");
  EXPECT_FALSE(job.contains("payload"));
}

TEST_F(http_jobs_test, ThePayloadIsShownToClientsAndWorkersAlone) {
  rig.gateway.add_job("t", "j");
  EXPECT_THAT(rig.ask("GET", "/v1/jobs/j", "client").body, HasSubstr("secret payload"));
  EXPECT_THAT(rig.ask("GET", "/v1/jobs/j", "worker").body, HasSubstr("secret payload"));
  EXPECT_THAT(rig.ask("GET", "/v1/jobs/j", "operator").body, Not(HasSubstr("secret payload")));
  for (const char* path : {"/v1/jobs", "/v1/jobs/j:why"}) {
    EXPECT_THAT(rig.ask("GET", path, "client").body, Not(HasSubstr("secret payload"))) << path;
  }
  EXPECT_THAT(rig.ask("POST", "/v1/jobs/j:cancel", "client").body,
              Not(HasSubstr("secret payload")));
}

TEST_F(http_jobs_test, AJobShowsEveryRecordColumnUnderItsName) {
  auto& job = rig.gateway.add_job("t", "j", "q", protocol::lease_state::unresolved);
  rig.gateway.change(job, [](protocol::record& r) {
    r.gen = {3};
    r.cancel_requested_at = {5};
    r.unproven = {{{2}, protocol::holder("w/1"), {44}}};
    r.unproven_nameless = 1;
  });
  const auto shown = api_rig::json(rig.ask("GET", "/v1/jobs/j", "client"));
  const std::set<std::string_view> of_rows{"step",
                                           "at",
                                           "origin",
                                           "event",
                                           "frame_generation",
                                           "frame_holder",
                                           "frame_sequence",
                                           "sent_at",
                                           "state_before",
                                           "stale_generation",
                                           "late_progress",
                                           "lease_expired",
                                           "ownership_conflict",
                                           "decision",
                                           "reason",
                                           "frame_value",
                                           "frame_outcome",
                                           "frame_detail",
                                           "frame_retryable"};
  for (const std::string_view column : protocol::replay_columns()) {
    EXPECT_TRUE(of_rows.contains(column) || shown.contains(column)) << column;
  }
  EXPECT_EQ(shown.at("generation"), 3);
  EXPECT_EQ(shown.at("unproven"), 2);
  EXPECT_EQ(shown.at("unproven_generations").at(0).at("generation"), 2);
  EXPECT_EQ(shown.at("unproven_generations").at(0).at("holder"), "w/1");
  EXPECT_EQ(shown.at("unproven_generations").at(0).at("last_sent"), 44);
  EXPECT_THAT(std::string(shown.at("cancel").as_string()), HasSubstr("proof"));
}

TEST_F(http_jobs_test, AWaitIsBounded) {
  rig.gateway.add_job("t", "j");
  EXPECT_EQ(rig.ask("GET", "/v1/jobs/j?wait_for=settled&wait_ms=60000", "client").status, 200);
  EXPECT_EQ(rig.gateway.awaited_until, rig.gateway.time + protocol::duration{60'000});
  EXPECT_EQ(rig.ask("GET", "/v1/jobs/j?wait_for=settled&wait_ms=0", "client").status, 200);
  for (const char* bad :
       {"wait_for=settled&wait_ms=60001", "wait_for=settled&wait_ms=-1", "wait_for=other",
        "wait_ms=5", "wait_for=settled&wait_for=settled", "unknown=1"}) {
    EXPECT_EQ(rig.ask("GET", std::string("/v1/jobs/j?") + bad, "client").status, 400) << bad;
  }
}

TEST_F(http_jobs_test, AListIsPagedToItsEnd) {
  for (const char* id : {"a", "b", "c"}) rig.gateway.add_job("t", id);
  auto page = api_rig::json(rig.ask("GET", "/v1/jobs?page_size=2", "client"));
  EXPECT_EQ(page.at("jobs").as_array().size(), 2U);
  const std::string next(page.at("next_page_token").as_string());
  page = api_rig::json(rig.ask("GET", "/v1/jobs?page_size=2&page_token=" + next, "client"));
  EXPECT_EQ(page.at("jobs").as_array().size(), 1U);
  EXPECT_EQ(page.at("next_page_token"), "");
  for (const char* bad :
       {"page_size=0", "page_size=1001", "state=asleep", "label=x", "page_size=2x"}) {
    EXPECT_EQ(rig.ask("GET", std::string("/v1/jobs?") + bad, "client").status, 400) << bad;
  }
}

TEST_F(http_jobs_test, APageTokenThatWasNotGivenIsRefused) {
  for (const char* id : {"a", "b", "c"}) rig.gateway.add_job("t", id);
  const auto page = api_rig::json(rig.ask("GET", "/v1/jobs?page_size=1", "client"));
  const std::string given(page.at("next_page_token").as_string());
  ASSERT_EQ(rig.ask("GET", "/v1/jobs?page_token=" + given, "client").status, 200);
  for (const std::string& bad :
       {std::string("zzz"), std::string("%00"), std::string("a"), std::string("."), given + "x",
        given + "%00", given.substr(1), given.substr(0, given.size() - 1)}) {
    const auto refused = rig.ask("GET", "/v1/jobs?page_token=" + bad, "client");
    EXPECT_EQ(refused.status, 400) << bad;
    EXPECT_EQ(api_rig::json(refused).at("reason"), "invalid_frame") << bad;
    EXPECT_THAT(refused.body, HasSubstr("page_token"));
  }
  // Nor is one of another tenant's list taken.
  EXPECT_EQ(rig.ask("GET", "/v1/jobs?page_token=" + given, "stranger").status, 400);
}

TEST_F(http_jobs_test, OperationsCarryTheirFields) {
  rig.gateway.add_job("t", "j");
  rig.ask("POST", "/v1/jobs/j:revoke", "operator",
          R"({"force":true,"reason":"stuck","request_id":"r"})");
  rig.ask("POST", "/v1/jobs/j:resolve", "operator", R"({"holder":"w/1"})");
  rig.ask("POST", "/v1/jobs/j:reconcile", "operator", R"({"outcome":"cancelled","detail":"seen"})");
  rig.ask("POST", "/v1/jobs/j:cancel", "operator", R"({"reason":"no need"})");
  const auto& done = rig.gateway.operated;
  ASSERT_EQ(done.size(), 4U);
  EXPECT_EQ(done[0].second.kind, protocol::event_kind::revoke);
  EXPECT_TRUE(done[0].second.force);
  EXPECT_EQ(done[0].second.detail, "stuck");
  EXPECT_EQ(done[0].second.request.value, "r");
  EXPECT_EQ(done[1].second.from.value, "w/1");
  EXPECT_EQ(done[2].second.ending, protocol::outcome::cancelled);
  EXPECT_EQ(done[2].second.detail, "seen");
  EXPECT_EQ(done[3].second.kind, protocol::event_kind::cancel);
  EXPECT_EQ(done[3].second.detail, "no need");
  for (const char* bad :
       {R"({"outcome":"success"})", R"({"outcome":"x"})", "{}", R"({"force":true})"}) {
    EXPECT_EQ(rig.ask("POST", "/v1/jobs/j:reconcile", "operator", bad).status, 400) << bad;
  }
}

TEST_F(http_jobs_test, ARedriveIsANewJobThatNamesTheOldOne) {
  auto& old = rig.gateway.add_job("t", "old", "q", protocol::lease_state::failed);
  EXPECT_EQ(rig.ask("POST", "/v1/jobs/old:redrive", "client", R"({"request_id":"again"})").status,
            201);
  EXPECT_EQ(last_spec().redrive_of.value, "old");
  EXPECT_EQ(last_spec().payload, old.spec->payload);
  EXPECT_EQ(last_spec().request.value, "again");
  EXPECT_EQ(last_spec().submitted_by, "client");
  rig.gateway.add_job("t", "busy", "q", protocol::lease_state::active);
  const auto refused = rig.ask("POST", "/v1/jobs/busy:redrive", "client");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(api_rig::json(refused).at("reason"), "not_settled");
}

TEST_F(http_jobs_test, AColonOfAnIdIsTakenForAVerbOnlyWhenItIsPlain) {
  rig.gateway.add_job("t", "a:why");
  EXPECT_EQ(rig.ask("GET", "/v1/jobs/a%3Awhy", "client").status, 200);
  EXPECT_EQ(api_rig::json(rig.ask("GET", "/v1/jobs/a%3Awhy:why", "client")).at("word"),
            "no_worker");
  EXPECT_EQ(rig.ask("GET", "/v1/jobs/a:why", "client").status, 404);
  EXPECT_EQ(rig.ask("GET", "/v1/jobs/a%2Fb", "client").status, 404);
}

TEST_F(http_jobs_test, WorkersAndQueuesAreThoseOfTheTenant) {
  rig.gateway.all_workers = {
      {protocol::tenant_id("t"), protocol::holder("w/1"), 1, "c 1", {{"q", 2}}, {{"q", 1}}, {5}},
      {protocol::tenant_id("u"), protocol::holder("x/1"), 2, "c 1", {}, {}, {5}}};
  rig.gateway.all_queues.resize(2);
  rig.gateway.all_queues[0].tenant = protocol::tenant_id("t");
  rig.gateway.all_queues[0].queue = "q";
  rig.gateway.all_queues[1].tenant = protocol::tenant_id("u");
  const auto workers =
      api_rig::json(rig.ask("GET", "/v1/workers", "operator")).at("workers").as_array();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].at("holder"), "w/1");
  EXPECT_EQ(workers[0].at("slots").at("q"), 2);
  const auto queues =
      api_rig::json(rig.ask("GET", "/v1/queues", "operator")).at("queues").as_array();
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0].at("queue"), "q");
}

}  // namespace
}  // namespace leasehold::server
