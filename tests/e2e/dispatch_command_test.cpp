// `leasehold dispatch` and what people see of a dispatch elsewhere, on a live coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "live_server.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What failed waits for longer than a test takes.
const std::vector<std::string> slow_retries{"--dispatch-backoff", "1h", "--dispatch-backoff-max",
                                            "1h"};

/// A cancelled job whose holder is away, so that its dispatch waits for the next attempt.
class dispatch_command : public testing::Test {
 protected:
  dispatch_command() : server_(1, slow_retries) {
    for (const char* name : {"client", "operator", "stranger"}) {
      const auto file = kept_.path() / name;
      std::ofstream(file) << server_.token(name);
      std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    }
    server_.submit("j", {{"lease_duration_ms", 3'600'000}, {"cancel_grace_ms", 3'600'000}});
    stream_peer hand(server_, "w1");
    hand.hello();
    hand.credit(1);
    EXPECT_TRUE(hand.offer_of("j"));
    hand.start("j", 1);
    hand.vanish();
    EXPECT_EQ(server_.post("/v1/jobs/j:cancel").status, 200);
    EXPECT_TRUE(eventually([this] { return status() == "retry_wait"; })) << server_.log();
  }

  program_end run(std::vector<std::string> words, const std::string& who = "operator") {
    std::vector<std::string> all{"--url", server_.url(), "--token-file",
                                 (kept_.path() / who).string()};
    all.insert(all.end(), words.begin(), words.end());
    return run_leasehold(all);
  }
  std::string status() {
    const auto said = server_.get("/v1/dispatches/j", "operator");
    return said.status == 200 ? std::string(said.body.at("dispatch").at("status").as_string()) : "";
  }

  live_server server_;
  tests::temporary_directory kept_;
};

TEST_F(dispatch_command, ListAndShowSayWhyItStandsThereAndWhatToCheck) {
  const auto listed = run({"dispatch", "list", "--status", "retry_wait"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.output, AllOf(HasSubstr("controller_missing"), HasSubstr("stream")));
  EXPECT_THAT(run({"dispatch", "list", "--status", "blocked", "--status", "closed"}).output,
              Not(HasSubstr("stream")));
  EXPECT_THAT(run({"--json", "dispatch", "list", "--all"}).output, HasSubstr(R"("job_id":"j")"));
  const auto shown = run({"dispatch", "show", "j"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.output, AllOf(HasSubstr("nobody to ask"), HasSubstr("leasehold workers"),
                                  HasSubstr("cancel_dispatch_failed")));
}

TEST_F(dispatch_command, WhatCannotBeDoneIsRefusedWithItsReason) {
  EXPECT_EQ(run({"dispatch", "show", "none"}).exit_code, 3);
  EXPECT_THAT(run({"dispatch", "show", "none"}).output, HasSubstr("unknown_dispatch"));
  EXPECT_EQ(run({"dispatch", "list"}, "client").exit_code, 5);
  EXPECT_EQ(run({"dispatch", "resolve", "j"}).exit_code, 2);
  EXPECT_EQ(run({"dispatch", "list", "--status", "lost"}).exit_code, 2);
}

TEST_F(dispatch_command, ARetryIsMadeAtOnceAndAResolveEndsIt) {
  EXPECT_EQ(run({"dispatch", "retry", "j", "--reason", "again"}).exit_code, 0);
  const auto claims = [this] {
    return server_.get("/v1/dispatches/j", "operator").body.at("dispatch").at("dispatch_count");
  };
  EXPECT_TRUE(eventually([&] { return claims() == 2 && status() == "retry_wait"; }));
  const auto done = run({"dispatch", "resolve", "j", "--reason", "switched off"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_THAT(done.output, HasSubstr("now closed"));
  EXPECT_THAT(run({"dispatch", "resolve", "j", "--reason", "x"}).output,
              HasSubstr("dispatch_closed"));
  EXPECT_TRUE(server_.has_logged("dispatch resolved by an operator"));
  EXPECT_THAT(server_.log(), HasSubstr("switched off"));
  EXPECT_EQ(server_.job("j").at("state"), "active") << "a resolve settles no job";
}

TEST_F(dispatch_command, TheEvidenceShowsItBetweenTheRowsInEveryForm) {
  std::istringstream lines(run({"--json", "job", "evidence", "j"}).output);
  std::int64_t before = 0;
  int events = 0;
  const auto file = kept_.path() / "lines";
  std::ofstream kept(file);
  for (std::string line; std::getline(lines, line);) {
    kept << line << '\n';
    const auto each = json::parse(line).as_object();
    EXPECT_GE(each.at("at").as_int64(), before) << line;
    before = each.at("at").as_int64();
    events += each.contains("dispatch_event") ? 1 : 0;
  }
  kept.close();
  EXPECT_EQ(events, 1);
  EXPECT_THAT(run({"job", "evidence", "j"}).output,
              AllOf(HasSubstr("cancel_dispatch_failed"), HasSubstr("controller_missing")));
  EXPECT_EQ(run({"verify", "--lines", file.string()}).exit_code, 0);
  EXPECT_EQ(run({"job", "evidence", "j", "--as-scenario"}, "client").exit_code, 0);
  std::istringstream csv(run({"job", "evidence", "j", "--csv"}).output);
  std::string head;
  std::getline(csv, head);
  bool seen = false;
  for (std::string line; std::getline(csv, line);) {
    if (line.find("cancel_dispatch_failed") == std::string::npos) continue;
    seen = true;
    EXPECT_EQ(std::ranges::count(line, ','), std::ranges::count(head, ','));
  }
  EXPECT_TRUE(seen);
}

TEST_F(dispatch_command, MetricsTellOfIt) {
  EXPECT_THAT(server_.metrics(),
              AllOf(HasSubstr("leasehold_dispatches{status=\"retry_wait\",result=\"controller_"
                              "missing\",stage=\"stream\"} 1"),
                    HasSubstr("leasehold_store_info{kind=\"sqlite\"} 1")));
}

}  // namespace
}  // namespace leasehold::e2e
