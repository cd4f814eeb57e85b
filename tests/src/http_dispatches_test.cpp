// Cancellation dispatches over HTTP and as people read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "src/dispatch_advice.hpp"
#include "src/dispatch_census.hpp"
#include "src/http_api_evidence.hpp"
#include "src/store/evidence_json.hpp"
#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::api_rig;

constexpr const char* secret = "5ec2e75ec2e75ec2e75ec2e75ec2e75e";

class http_dispatches_test : public testing::Test {
 protected:
  http_dispatches_test() {
    rig.store->dispatches().set_clock([this] { return now; });
    rig.gateway.add_job("t", "a");
    rig.gateway.add_job("t", "b");
    rig.gateway.add_job("t", "c", "other");
    rig.gateway.add_job("u", "d");
    for (const char* job : {"a", "b", "c"}) cancel("t", job);
    cancel("u", "d");
  }

  static protocol::lease_key key(const char* tenant, const char* job) {
    return {protocol::tenant_id(tenant), protocol::lease_id(job)};
  }
  void cancel(const char* tenant, const char* job) {
    protocol::dispatch_change what;
    what.key = key(tenant, job);
    what.gen = {1};
    what.at = what.cancel_requested_at = now;
    what.cancel_deadline = now + protocol::duration{10'000};
    rig.store->dispatches().apply({what});
  }
  protocol::dispatch_record claim(const char* job) {
    protocol::dispatch_claim asked;
    asked.key = key("t", job);
    asked.gen = {1};
    asked.cancel_requested_at = protocol::instant{1'000};
    asked.owner = "node-1";
    asked.token = secret;
    protocol::dispatch_record claimed;
    rig.store->dispatches().claim({asked}, {},
                                  [&](auto said) { claimed = std::get<0>(said).at(0).record; });
    EXPECT_EQ(claimed.status, dispatch_status::leased);
    return claimed;
  }
  void report(const char* job, dispatch_result result) {
    const auto claimed = claim(job);
    rig.store->dispatches().report(
        {{key("t", job), {1}, claimed.lease_owner, secret, claimed.version, result}}, {},
        [](auto said) { EXPECT_EQ(std::get<0>(said).at(0).why, protocol::reason::none); });
  }
  json::object get(const std::string& target, const std::string& who = "operator") {
    const auto said = rig.ask("GET", target, who);
    EXPECT_EQ(said.status, 200) << said.body;
    return api_rig::json(said);
  }
  static std::vector<std::string> jobs_in(const json::object& page) {
    std::vector<std::string> out;
    for (const auto& each : page.at("dispatches").as_array()) {
      out.emplace_back(each.at("job_id").as_string());
    }
    return out;
  }
  std::string refusal(const std::string& target, const std::string& body = "{}") {
    const auto said = rig.ask("POST", target, "operator", body);
    return std::to_string(said.status) + " " +
           std::string(api_rig::json(said).at("reason").as_string());
  }

  protocol::instant now{1'000};
  api_rig rig;
};

TEST_F(http_dispatches_test, TheListIsOfTheCallersTenant) {
  EXPECT_THAT(jobs_in(get("/v1/dispatches")), ElementsAre("a", "b", "c"));
  EXPECT_THAT(jobs_in(get("/v1/dispatches", "auditor")), ElementsAre("a", "b", "c"));
  EXPECT_THAT(jobs_in(get("/v1/dispatches", "stranger")), ElementsAre("d"));
}

TEST_F(http_dispatches_test, TheListIsNarrowedByStatusAndStage) {
  report("a", dispatch_result::identity_mismatch);
  report("b", dispatch_result::controller_missing);
  EXPECT_THAT(jobs_in(get("/v1/dispatches?status=blocked")), ElementsAre("a"));
  EXPECT_THAT(jobs_in(get("/v1/dispatches?status=pending&status=retry_wait")),
              ElementsAre("b", "c"));
  EXPECT_THAT(jobs_in(get("/v1/dispatches?stage=stream")), ElementsAre("a", "b", "c"));
  EXPECT_THAT(jobs_in(get("/v1/dispatches?stage=process")), ElementsAre());
  for (const char* bad : {"status=lost", "stage=", "page_size=0", "page_size=65", "page_token=x"}) {
    EXPECT_EQ(rig.ask("GET", std::string("/v1/dispatches?") + bad, "operator").status, 400) << bad;
  }
}

TEST_F(http_dispatches_test, PagesTogetherAreTheList) {
  std::vector<std::string> all;
  std::string token;
  do {
    const auto page =
        get("/v1/dispatches?page_size=1" + (token.empty() ? "" : "&page_token=" + token));
    const auto jobs = jobs_in(page);
    EXPECT_LE(jobs.size(), 1U);
    all.insert(all.end(), jobs.begin(), jobs.end());
    token = page.at("next_page_token").as_string();
    for (auto at = token.find('='); at != std::string::npos; at = token.find('=')) {
      token.replace(at, 1, "%3D");
    }
    for (auto at = token.find('+'); at != std::string::npos; at = token.find('+')) {
      token.replace(at, 1, "%2B");
    }
  } while (!token.empty());
  EXPECT_THAT(all, ElementsAre("a", "b", "c"));
}

TEST_F(http_dispatches_test, OneIsShownWithItsEventsAndWhatToCheck) {
  report("a", dispatch_result::controller_missing);
  const auto shown = get("/v1/dispatches/a");
  const auto& one = shown.at("dispatch").as_object();
  EXPECT_EQ(one.at("status"), "retry_wait");
  EXPECT_EQ(one.at("last_result"), "controller_missing");
  EXPECT_EQ(one.at("dispatch_count"), 1);
  EXPECT_EQ(one.at("next_attempt_at"), 2'000);
  EXPECT_THAT(std::string(one.at("check").as_string()), HasSubstr("leasehold workers"));
  const auto& events = shown.at("events").as_array();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].at("dispatch_event"), "cancel_dispatch_failed");
  EXPECT_EQ(events[0].at("result"), "controller_missing");
  EXPECT_EQ(shown.at("events_complete"), true);
}

TEST_F(http_dispatches_test, ATokenIsNeverShown) {
  claim("a");
  for (const char* target : {"/v1/dispatches", "/v1/dispatches/a", "/v1/jobs/a/evidence"}) {
    const auto said = rig.ask("GET", target, "operator");
    EXPECT_EQ(said.status, 200) << target;
    EXPECT_THAT(said.body, AllOf(Not(HasSubstr(secret)), Not(HasSubstr("lease_token")))) << target;
  }
  EXPECT_THAT(rig.ask("GET", "/v1/dispatches/a", "operator").body, HasSubstr("node-1"));
}

TEST_F(http_dispatches_test, WhatIsUnknownOrAnothersReadsTheSame) {
  rig.gateway.add_job("t", "calm");
  for (const char* job : {"d", "none", "bad%20id"}) {
    const auto path = std::string("/v1/dispatches/") + job;
    EXPECT_EQ(rig.ask("GET", path, "operator").status, 404) << job;
    EXPECT_EQ(refusal(path + ":retry"), "404 unknown_dispatch") << job;
    EXPECT_EQ(refusal(path + ":resolve", R"({"reason":"x"})"), "404 unknown_dispatch") << job;
  }
  EXPECT_EQ(refusal("/v1/dispatches/calm:retry"), "404 unknown_dispatch");
}

TEST_F(http_dispatches_test, ARetryOfABlockedOneIsPendingAtOnce) {
  report("a", dispatch_result::pid_mismatch);
  const auto said = rig.ask("POST", "/v1/dispatches/a:retry", "operator", "{}");
  EXPECT_EQ(said.status, 200) << said.body;
  const auto body = api_rig::json(said);
  EXPECT_EQ(body.at("dispatch").at("status"), "pending");
  EXPECT_EQ(body.at("dispatch").at("next_attempt_at"), now.ms);
  EXPECT_EQ(get("/v1/dispatches/a").at("events").as_array().back().at("dispatch_event"),
            "cancel_dispatch_retried");
}

TEST_F(http_dispatches_test, AResolveWantsAReasonAndIsDoneOnce) {
  EXPECT_EQ(refusal("/v1/dispatches/a:resolve"), "400 invalid_frame");
  EXPECT_EQ(refusal("/v1/dispatches/a:resolve", R"({"reason":""})"), "400 invalid_frame");
  EXPECT_EQ(refusal("/v1/dispatches/a:resolve", R"({"reason":"x","by":"me"})"),
            "400 invalid_frame");
  const auto said =
      rig.ask("POST", "/v1/dispatches/a:resolve", "operator", R"({"reason":"switched off"})");
  EXPECT_EQ(said.status, 200) << said.body;
  EXPECT_EQ(api_rig::json(said).at("dispatch").at("status"), "closed");
  EXPECT_EQ(refusal("/v1/dispatches/a:resolve", R"({"reason":"again"})"), "409 dispatch_closed");
  EXPECT_EQ(refusal("/v1/dispatches/a:retry"), "409 dispatch_closed");
}

TEST_F(http_dispatches_test, WhatIsClaimedIsLeftToItsClaimant) {
  claim("a");
  EXPECT_EQ(refusal("/v1/dispatches/a:retry"), "409 claim_held");
  EXPECT_EQ(refusal("/v1/dispatches/a:resolve", R"({"reason":"x"})"), "409 claim_held");
}

TEST_F(http_dispatches_test, TablesThatCannotBeReadRefuseForNow) {
  rig.store->dispatches().fail_next(actors::store_error::kind::busy);
  EXPECT_EQ(rig.ask("GET", "/v1/dispatches", "operator").status, 429);
  rig.store->dispatches().fail_next(actors::store_error::kind::io);
  EXPECT_EQ(rig.ask("GET", "/v1/dispatches", "operator").status, 503);
}

TEST_F(http_dispatches_test, MetricsCountThemAndTellTheAgeOfTheOldest) {
  report("a", dispatch_result::invalid);
  rig.gateway.time = {6'000};
  const auto page = rig.ask("GET", "/metrics", "operator").body;
  EXPECT_THAT(page, HasSubstr("leasehold_dispatches{status=\"blocked\",result=\"invalid\",stage="
                              "\"stream\"} 1"));
  EXPECT_THAT(page, HasSubstr("leasehold_dispatches{status=\"pending\",result=\"none\",stage="
                              "\"stream\"} 3"));
  EXPECT_THAT(
      page, HasSubstr("leasehold_dispatch_oldest_seconds{status=\"pending\",stage=\"stream\"} 5"));
  rig.store->dispatches().fail_next(actors::store_error::kind::io);
  EXPECT_EQ(rig.ask("GET", "/metrics", "operator").body, page) << "counted once a second";
}

TEST(dispatch_advice, EveryCaseSaysWhyAndWhatToCheck) {
  std::set<std::string> said;
  for (const auto status : protocol::all_dispatch_statuses) {
    for (const auto stage : protocol::all_dispatch_stages) {
      for (int r = 0; r <= static_cast<int>(dispatch_result::dispatch_error); ++r) {
        const auto advice = advice_on(status, stage, static_cast<dispatch_result>(r));
        EXPECT_THAT(advice.why, testing::EndsWith("."));
        EXPECT_FALSE(advice.check.empty());
        said.insert(advice.why);
      }
    }
  }
  // Only `pending` tells the stages apart by why it stands there.
  EXPECT_EQ(said.size(), 7U * 10U);
}

TEST(dispatch_advice, OfABlockedOneNeverTellsToKillByTheNumber) {
  for (const auto result : {dispatch_result::identity_mismatch, dispatch_result::pid_mismatch,
                            dispatch_result::invalid}) {
    const auto advice = advice_on(dispatch_status::blocked, dispatch_stage::process, result);
    EXPECT_THAT(advice.why, HasSubstr("nothing was signalled"));
    EXPECT_THAT(std::string(advice.check),
                AllOf(HasSubstr("Never kill by the number alone"), HasSubstr("dispatch resolve"),
                      HasSubstr("job reconcile")));
  }
}

}  // namespace
}  // namespace leasehold::server
