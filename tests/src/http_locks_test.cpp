// The fields of the calls about locks, one before, at and after their edges, and what is said of
// those that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using testing::HasSubstr;
using tests::api_rig;
using status_and_reason = std::pair<int, std::string>;

const std::string parent = "00-" + std::string(32, 'a') + "-" + std::string(16, 'b') + "-01";
const std::string lock_id = "k:" + std::string(64, 'a');

class http_locks_test : public testing::Test {
 protected:
  void SetUp() override {
    actors::acquire_request what;
    what.key = {protocol::tenant_id("t"), protocol::lease_id(lock_id)};
    what.canonical = "t/q/opaque:held//";
    what.holder = protocol::holder("client/default");
    what.spec.name = {"q", protocol::target_kind::opaque, "held", "", ""};
    rig.gateway.add_lock(what);
    rig.gateway.add_job("t", "j");
  }
  http_response ask(const std::string& path, const std::string& fields) {
    return rig.ask("POST", path, "client", "{" + fields + "}");
  }
  http_response acquire(const std::string& fields) {
    return ask("/v1/locks:acquire",
               R"("program":"q","target":{"opaque":"x"})" + (fields.empty() ? "" : "," + fields));
  }
  /// Of an acquire with these fields, which must be refused.
  status_and_reason refusal(const std::string& fields) {
    const auto response = acquire(fields);
    const auto body = api_rig::json(response);
    detail = body.contains("detail") ? std::string(body.at("detail").as_string()) : "accepted";
    return {response.status, std::string(body.at("reason").as_string())};
  }
  /// What of an acquire with these fields reached the coordinator.
  protocol::policy policy_of(const std::string& fields) {
    rig.gateway.acquired.clear();
    const auto response = acquire(fields);
    EXPECT_EQ(rig.gateway.acquired.size(), 1U) << response.body;
    return rig.gateway.acquired.empty() ? protocol::policy{}
                                        : rig.gateway.acquired.front().spec.policy;
  }

  api_rig rig;
  std::string detail;
};

TEST_F(http_locks_test, ATtlIsFromAMillisecondToThirtyDays) {
  const std::string range = "ttl_ms must be a whole number from 1 to 2592000000.";
  EXPECT_EQ(policy_of(R"("ttl_ms":1)").lease_duration.ms, 1);
  EXPECT_EQ(policy_of(R"("ttl_ms":2592000000)").lease_duration.ms, 2'592'000'000);
  for (const char* ms : {"-1", "0", "2592000001"}) {
    EXPECT_EQ(refusal(R"("ttl_ms":)" + std::string(ms)), status_and_reason(422, "invalid_policy"));
    EXPECT_EQ(detail, range) << ms;
  }
  for (const char* ms : {"1e3", "1.5", "\"1000\"", "null"}) {
    EXPECT_EQ(refusal(R"("ttl_ms":)" + std::string(ms)), status_and_reason(400, "invalid_frame"));
    EXPECT_EQ(detail, range) << ms;
  }
}

TEST_F(http_locks_test, ALockDelayIsAnHourAtMost) {
  EXPECT_EQ(policy_of(R"("lock_delay_ms":0)").lock_delay.ms, 0);
  EXPECT_EQ(policy_of(R"("lock_delay_ms":3599999)").lock_delay.ms, 3'599'999);
  EXPECT_EQ(policy_of(R"("lock_delay_ms":3600000)").lock_delay.ms, 3'600'000);
  for (const char* ms : {"-1", "3600001", "9007199254740991"}) {
    EXPECT_EQ(refusal(R"("lock_delay_ms":)" + std::string(ms)),
              status_and_reason(422, "invalid_policy"));
    EXPECT_EQ(detail, "lock_delay_ms must be a whole number from 0 to 3600000.") << ms;
  }
}

TEST_F(http_locks_test, AnEmptyTraceIdIsNone) {
  const std::string held =
      R"("lease_id":")" + lock_id + R"(","holder":"client/default","generation":1)";
  const std::vector<std::pair<std::string, std::string>> calls{
      {"/v1/locks:acquire", R"("program":"q","target":{"opaque":"x"})"},
      {"/v1/locks:renew", held + R"(,"sequence":1)"},
      {"/v1/locks:release", held},
      {"/v1/jobs", R"("queue":"q")"},
      {"/v1/jobs/j:cancel", R"("reason":"r")"}};
  for (const auto& [path, fields] : calls) {
    EXPECT_LT(ask(path, fields + R"(,"trace_id":"")").status, 300) << path;
    const auto refused = ask(path, fields + R"(,"trace_id":"<x>")");
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_EQ(api_rig::json(refused).at("trace_id"), "") << "what is no trace id is not repeated";
  }
  EXPECT_EQ(rig.gateway.acquired.back().spec.trace_id, "");
  EXPECT_EQ(rig.gateway.operated.back().second.trace_id, "");
}

TEST_F(http_locks_test, TheTraceOfTheHeadIsKeptUnlessTheBodyNamesAnother) {
  const auto trace_of = [&](const std::string& field) {
    auto request = api_rig::request("POST", "/v1/locks:acquire", "client",
                                    R"({"program":"q","target":{"opaque":"x"})" + field + "}");
    request.headers.emplace_back("traceparent", parent);
    rig.gateway.acquired.clear();
    const auto response = rig.ask(request);
    if (!rig.gateway.acquired.empty()) return rig.gateway.acquired.front().spec.trace_id;
    return "refused with " + std::string(api_rig::json(response).at("trace_id").as_string());
  };
  const std::string other = "00-" + std::string(32, 'c') + "-" + std::string(16, 'd') + "-00";
  EXPECT_EQ(trace_of(""), parent);
  EXPECT_EQ(trace_of(R"(,"trace_id":"")"), parent);
  EXPECT_EQ(trace_of(R"(,"trace_id":")" + other + "\""), other);
  EXPECT_EQ(trace_of(R"(,"trace_id":"none")"), "refused with " + parent);
}

TEST_F(http_locks_test, AnUnknownFieldIsMostLikelyTheOneThatBeginsWithIt) {
  EXPECT_EQ(refusal(R"("ttl":15000)"), status_and_reason(400, "invalid_frame"));
  EXPECT_EQ(detail, "There is no field \"ttl\"; did you mean ttl_ms?");
  refusal(R"("wait":15000)");
  EXPECT_THAT(detail, HasSubstr("did you mean wait_ms?"));
  refusal(R"("tlt_ms":15000)");
  EXPECT_THAT(detail, HasSubstr("did you mean ttl_ms?"));
  for (const char* name : {"", "lease_for"}) {
    refusal("\"" + std::string(name) + "\":15000");
    EXPECT_EQ(detail.find("did you mean"), std::string::npos) << detail;
  }
}

TEST_F(http_locks_test, AHostWithAControlCharacterIsToldSo) {
  const auto response = ask("/v1/locks:acquire", R"("program":"q","target":{"host":"a\u0000b"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(api_rig::json(response).at("detail"), "The host must hold no control character.");
}

}  // namespace
}  // namespace leasehold::server
