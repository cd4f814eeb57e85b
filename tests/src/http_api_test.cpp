// What a request meets before its route, and the shape of every refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using protocol::reason;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using tests::api_rig;

class http_api_test : public testing::Test {
 protected:
  void SetUp() override {
    rig.gateway.add_job("t", "j");
    rig.gateway.add_job("t", "done", "q", protocol::lease_state::completed);
  }
  /// Of the upgrade to a worker's stream.
  int stream_status() {
    auto request = api_rig::request("GET", "/v1/stream", "worker");
    request.headers.emplace_back("sec-websocket-protocol", "leasehold.v1.protobuf");
    const auto answer = rig.http->upgrade(request);
    const auto* refused = std::get_if<upgrade_refused>(&answer);
    return refused != nullptr ? refused->response.status : 101;
  }
  /// Status and reason of a refusal whose shape is checked on the way.
  static std::pair<int, std::string> refusal(const http_response& response) {
    const auto body = api_rig::json(response);
    EXPECT_EQ(api_rig::header(response, "Content-Type"), "application/problem+json");
    for (const char* member :
         {"type", "title", "status", "detail", "reason", "request_id", "trace_id"}) {
      EXPECT_TRUE(body.contains(member)) << member << " in " << response.body;
    }
    EXPECT_EQ(body.at("status"), response.status);
    const std::string word(body.at("reason").as_string());
    EXPECT_EQ(std::string(body.at("type").as_string()), "urn:leasehold:reason:" + word);
    return {response.status, word};
  }
  static std::pair<int, std::string> is(int status, const char* word) { return {status, word}; }
  static std::string lock_id() { return "k:" + std::string(64, 'a'); }
  /// A lock of the program "q", held by the principal "client".
  void add_lock() {
    actors::acquire_request what;
    what.key = {protocol::tenant_id("t"), protocol::lease_id(lock_id())};
    what.canonical = "t/q/opaque:held//";
    what.holder = protocol::holder("client/default");
    what.spec.name = {"q", protocol::target_kind::opaque, "held", "", ""};
    rig.gateway.add_lock(what);
  }

  api_rig rig;
};

TEST_F(http_api_test, EveryReasonOfTheListBecomesItsProblem) {
  add_lock();
  const std::string holder = R"("lease_id":")" + lock_id() + R"(","holder":"client/default")";
  const std::vector<std::pair<std::string, std::string>> calls{
      {"/v1/jobs", R"({"queue":"q"})"},
      {"/v1/jobs/j:cancel", "{}"},
      {"/v1/locks:acquire", R"({"program":"q","target":{"opaque":"x"}})"},
      {"/v1/locks:renew", "{" + holder + R"(,"generation":1,"sequence":1})"},
      {"/v1/locks:release", "{" + holder + R"(,"generation":1})"},
  };
  for (const auto& [path, body] : calls) {
    for (const auto& entry : protocol::all_reasons()) {
      rig.gateway.answer_with =
          actors::answer{protocol::decision::rejected, entry.code, std::nullopt, {2500}, false, {}};
      const auto response = rig.ask("POST", path, "client", body);
      EXPECT_EQ(refusal(response), is(entry.http_status, std::string(entry.word).c_str()));
      const auto json = api_rig::json(response);
      EXPECT_EQ(json.at("title").as_string(), entry.text);
      EXPECT_EQ(json.at("detail").as_string(), entry.text);
      EXPECT_EQ(json.at("class").as_string(), protocol::word(entry.refusal_class));
      const bool retry = entry.refusal_class == protocol::reason_class::retryable ||
                         entry.refusal_class == protocol::reason_class::unknown_outcome ||
                         entry.refusal_class == protocol::reason_class::pending;
      EXPECT_EQ(api_rig::header(response, "Retry-After"), retry ? "3" : "") << entry.word;
      EXPECT_EQ(json.contains("retry_after_ms"), retry) << entry.word;
      EXPECT_EQ(!api_rig::header(response, "WWW-Authenticate").empty(), entry.http_status == 401);
    }
  }
}

TEST_F(http_api_test, TheHeadAndTheBodySayTheSameTimeToComeBack) {
  struct told {
    std::int64_t wait_ms;
    const char* seconds;
    std::int64_t ms;
  };
  for (const auto& entry : protocol::all_reasons()) {
    for (const told& each :
         {told{0, "1", 1000}, {1, "1", 1}, {1000, "1", 1000}, {1001, "2", 1001}}) {
      problem what;
      what.reason = entry.code;
      what.retry_after = {each.wait_ms};
      const auto response = to_response(what);
      const auto body = api_rig::json(response);
      const std::string seconds = api_rig::header(response, "Retry-After");
      EXPECT_EQ(body.contains("retry_after_ms"), !seconds.empty()) << entry.word;
      if (seconds.empty()) continue;
      EXPECT_EQ(seconds, each.seconds) << entry.word;
      EXPECT_EQ(body.at("retry_after_ms"), each.ms) << entry.word;
    }
  }
  rig.unready = reason::draining;
  const auto response = rig.ask("POST", "/v1/jobs", "client", R"({"queue":"q"})");
  EXPECT_EQ(api_rig::header(response, "Retry-After"), "1");
  EXPECT_EQ(api_rig::json(response).at("retry_after_ms"), 1000);
}

TEST_F(http_api_test, EveryReasonOfTheListIsToldWhereItRefusesNothing) {
  add_lock();
  const std::string body =
      R"({"holder":"client/default","generation":1,"lease_id":")" + lock_id() + "\"}";
  for (const auto what :
       {protocol::decision::accepted, protocol::decision::applied, protocol::decision::ignored}) {
    for (const auto& entry : protocol::all_reasons()) {
      const auto& lock =
          rig.gateway.jobs.at({protocol::tenant_id("t"), protocol::lease_id(lock_id())});
      rig.gateway.answer_with = actors::answer{what, entry.code, lock, {2500}, false, {}};
      const auto response = rig.ask("POST", "/v1/locks:release", "client", body);
      EXPECT_EQ(response.status, 200) << entry.word;
      EXPECT_EQ(api_rig::header(response, "Content-Type"), "application/json");
      EXPECT_EQ(api_rig::header(response, "Retry-After"), "");
      const auto json = api_rig::json(response);
      EXPECT_EQ(json.at("decision").as_string(), protocol::word(what));
      EXPECT_EQ(json.at("reason").as_string(), entry.word);
    }
  }
}

TEST_F(http_api_test, ARefusalTellsTheLeaseToWhomMaySeeIt) {
  auto& job = rig.gateway.add_job("t", "held", "q", protocol::lease_state::active);
  rig.gateway.change(job, [](protocol::record& r) {
    r.gen = {7};
    r.expires_at = {99};
  });
  rig.gateway.answer_with =
      actors::answer{protocol::decision::rejected, reason::already_held, job, {}, false};
  const auto body = api_rig::json(rig.ask("POST", "/v1/jobs/held:cancel", "client", "{}"));
  EXPECT_EQ(body.at("lease").at("state"), "active");
  EXPECT_EQ(body.at("lease").at("generation"), 7);
  EXPECT_EQ(body.at("lease").at("expires_at"), 99);
}

TEST_F(http_api_test, AnUnknownPathAndAWrongMethodAreToldApart) {
  EXPECT_EQ(refusal(rig.ask("GET", "/v2/jobs", "client")), is(404, "no_such_route"));
  EXPECT_EQ(refusal(rig.ask("GET", "/v1/jobs/", "client")), is(404, "no_such_route"));
  const auto response = rig.ask("DELETE", "/v1/jobs", "client");
  EXPECT_EQ(refusal(response), is(405, "method_not_allowed"));
  EXPECT_EQ(api_rig::header(response, "Allow"), "POST, GET");
  EXPECT_EQ(refusal(rig.ask("GET", "/v1/jobs?queue=%zz", "client")), is(400, "malformed"));
  EXPECT_EQ(refusal(rig.ask("GET", "v1", "client")), is(400, "malformed"));
}

TEST_F(http_api_test, AWrongTokenAndNoTokenAreAnsweredAlike) {
  const auto none = rig.ask("GET", "/v1/jobs", "");
  const auto wrong = rig.ask("GET", "/v1/jobs", "lh_wrong");
  EXPECT_EQ(refusal(none), is(401, "unauthenticated"));
  auto a = api_rig::json(none);
  auto b = api_rig::json(wrong);
  a.erase("request_id");
  b.erase("request_id");
  EXPECT_EQ(a, b);
  EXPECT_THAT(wrong.body, Not(HasSubstr("lh_wrong")));
}

TEST_F(http_api_test, AnotherTenantsJobReadsAsOneThatNeverWas) {
  for (const char* path : {"/v1/jobs/j", "/v1/jobs/j:why", "/v1/jobs/j/evidence"}) {
    EXPECT_EQ(refusal(rig.ask("GET", path, "stranger")), is(404, "unknown_lease")) << path;
  }
  for (const char* verb : {"cancel", "redrive", "revoke", "resolve"}) {
    const auto theirs = rig.ask("POST", std::string("/v1/jobs/j:") + verb, "stranger");
    const auto nobodys = rig.ask("POST", std::string("/v1/jobs/nobodys:") + verb, "stranger");
    EXPECT_EQ(refusal(theirs), is(404, "unknown_lease")) << verb;
    EXPECT_EQ(refusal(nobodys), refusal(theirs));
  }
  EXPECT_TRUE(rig.gateway.operated.empty());
  EXPECT_EQ(api_rig::json(rig.ask("GET", "/v1/jobs", "stranger")).at("jobs").as_array().size(), 0U);
}

TEST_F(http_api_test, AQueueThatIsNotGrantedIsForbidden) {
  rig.gateway.add_job("t", "other", "r");
  EXPECT_EQ(rig.ask("GET", "/v1/jobs/j", "narrow").status, 200);
  EXPECT_EQ(refusal(rig.ask("GET", "/v1/jobs/other", "narrow")), is(403, "forbidden"));
  EXPECT_EQ(refusal(rig.ask("POST", "/v1/jobs/other:cancel", "narrow")), is(403, "forbidden"));
  EXPECT_EQ(refusal(rig.ask("POST", "/v1/jobs", "narrow", R"({"queue":"r"})")),
            is(403, "forbidden"));
  EXPECT_EQ(refusal(rig.ask("GET", "/v1/jobs?queue=r", "narrow")), is(403, "forbidden"));
  EXPECT_THAT(rig.ask("GET", "/v1/jobs", "narrow").body, Not(HasSubstr("\"other\"")));
}

TEST_F(http_api_test, ABrowserIsLetInByItsOriginOnly) {
  auto request = api_rig::request("GET", "/v1/jobs", "client");
  request.headers.emplace_back("origin", "https://evil.example");
  EXPECT_EQ(refusal(rig.ask(request)), is(403, "forbidden"));
  options chosen;
  chosen.allowed_origins = {"https://good.example"};
  rig.api->shared.chosen->replace(chosen);
  EXPECT_EQ(rig.ask(request).status, 403);
  request.headers.back().second = "https://good.example";
  EXPECT_EQ(rig.ask(request).status, 200);
}

TEST_F(http_api_test, APrincipalOverItsRateIsToldWhenToComeBack) {
  auto all = api_rig::everybody();
  all.entries[1].who.requests_per_second = 1;
  rig.api->shared.principals->replace(all);
  EXPECT_EQ(rig.ask("GET", "/v1/jobs", "client").status, 200);
  EXPECT_EQ(rig.ask("GET", "/v1/jobs", "client").status, 200);
  const auto over = rig.ask("GET", "/v1/jobs", "client");
  EXPECT_EQ(refusal(over), is(429, "rate_limited"));
  EXPECT_EQ(api_rig::header(over, "Retry-After"), "1");
  rig.gateway.time.ms += 999;
  EXPECT_EQ(rig.ask("GET", "/v1/jobs", "client").status, 429);
  rig.gateway.time.ms += 1;
  EXPECT_EQ(rig.ask("GET", "/v1/jobs", "client").status, 200);
  EXPECT_EQ(rig.ask("GET", "/v1/jobs", "operator").status, 200);
}

TEST_F(http_api_test, ReadinessSaysWhyNot) {
  EXPECT_EQ(rig.ask("GET", "/readyz", "").status, 200);
  for (const reason why : {reason::draining, reason::store_unavailable, reason::not_ready}) {
    rig.unready = why;
    EXPECT_EQ(refusal(rig.ask("GET", "/readyz", "")).second, protocol::word(why));
    EXPECT_EQ(rig.ask("GET", "/healthz", "").status, 200);
  }
  rig.unready = reason::none;
  rig.full = true;
  EXPECT_EQ(refusal(rig.ask("GET", "/readyz", "")), is(503, "not_ready"));
  EXPECT_EQ(rig.ask("GET", "/healthz", "").status, 200);
  rig.unready = reason::draining;
  EXPECT_EQ(refusal(rig.ask("POST", "/v1/jobs", "client", R"({"queue":"q"})")),
            is(503, "draining"));
  EXPECT_EQ(stream_status(), 503);
}

TEST_F(http_api_test, MetricsWithoutACredentialAreForThisMachineAndOnlyWhenChosen) {
  auto local = api_rig::request("GET", "/metrics", "");
  local.peer = "127.0.0.1";
  EXPECT_EQ(rig.ask(local).status, 401);
  options chosen;
  chosen.metrics_on_loopback = true;
  rig.api->shared.chosen->replace(chosen);
  EXPECT_EQ(rig.ask(local).status, 200);
  EXPECT_EQ(rig.ask("GET", "/metrics", "").status, 401);
}

TEST_F(http_api_test, TheRequestIdIsTheCallersOrOneThatWasMade) {
  auto request = api_rig::request("GET", "/v1/jobs/none", "client");
  EXPECT_EQ(api_rig::json(rig.ask(request)).at("request_id").as_string().size(), 16U);
  request.headers.emplace_back("x-request-id", "r-1");
  request.headers.emplace_back("traceparent",
                               "00-" + std::string(32, 'a') + "-" + std::string(16, 'b') + "-01");
  const auto body = api_rig::json(rig.ask(request));
  EXPECT_EQ(body.at("request_id"), "r-1");
  EXPECT_THAT(std::string(body.at("trace_id").as_string()), HasSubstr("aaaa"));
}

TEST_F(http_api_test, AnUpgradePathIsNoPageAndAPageNoUpgrade) {
  EXPECT_EQ(refusal(rig.ask("GET", "/v1/stream", "worker")), is(400, "malformed"));
  const auto answer = rig.http->upgrade(api_rig::request("GET", "/v1/jobs", "client"));
  ASSERT_TRUE(std::holds_alternative<upgrade_refused>(answer));
  EXPECT_EQ(refusal(std::get<upgrade_refused>(answer).response), is(400, "malformed"));
}

TEST_F(http_api_test, RefusalsAreCountedByReason) {
  rig.ask("GET", "/v1/jobs", "");
  rig.ask("GET", "/v1/jobs", "auditor");
  EXPECT_THAT(rig.ask("GET", "/metrics", "auditor").body,
              AllOf(HasSubstr("leasehold_refusals_total{reason=\"unauthenticated\"} 1"),
                    HasSubstr("leasehold_refusals_total{reason=\"forbidden\"} 1")));
}

}  // namespace
}  // namespace leasehold::server
