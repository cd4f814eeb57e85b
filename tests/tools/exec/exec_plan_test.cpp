// What the options of exec mean, what a refusal means, and what a command finds in its environment.
#include "tools/exec/exec_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tools/exec/environment.hpp"
#include "tools/exec/exec_codes.hpp"

namespace leasehold::tests {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tools::exec_settings;
using tools::exit_code;
using tools::lock_refusal;
using tools::refusal_kind;
using tools::run_end;

exec_settings settings() {
  exec_settings chosen;
  chosen.program = "backup";
  chosen.host = "db1.example.com";
  chosen.command = {"true"};
  return chosen;
}

std::string fault_of(const exec_settings& chosen) { return make_exec_plan(chosen).fault; }

TEST(ExecPlan, DefaultsAreFifteenSecondsAndNoWaiting) {
  const auto plan = make_exec_plan(settings());
  EXPECT_THAT(plan.fault, IsEmpty());
  EXPECT_EQ(plan.acquire.request.term, milliseconds(15'000));
  EXPECT_EQ(plan.acquire.wait, milliseconds(0));
  EXPECT_EQ(plan.term.grace, milliseconds(3000));
  EXPECT_EQ(plan.conflict_exit_code, 75);
}

TEST(ExecPlan, TakesOneTargetNeitherNoneNorTwo) {
  auto chosen = settings();
  chosen.url = "https://example.com/";
  EXPECT_THAT(fault_of(chosen), HasSubstr("one target"));
  chosen.host.clear();
  EXPECT_THAT(fault_of(chosen), IsEmpty());
  EXPECT_EQ(make_exec_plan(chosen).acquire.request.name.kind, protocol::target_kind::url);
  chosen.url.clear();
  EXPECT_THAT(fault_of(chosen), HasSubstr("one target"));
}

TEST(ExecPlan, ATtlIsAtLeastHalfASecond) {
  auto chosen = settings();
  chosen.ttl = "499ms";
  EXPECT_THAT(fault_of(chosen), HasSubstr("at least 500 ms"));
  chosen.ttl = "500ms";
  EXPECT_THAT(fault_of(chosen), IsEmpty());
  chosen.ttl = "soon";
  EXPECT_THAT(fault_of(chosen), HasSubstr("--ttl \"soon\""));
}

TEST(ExecPlan, AGraceLeavesHalfOfTheTermToRenews) {
  auto chosen = settings();
  chosen.ttl = "10s";
  for (const auto* fits : {"0s", "3999ms", "4s"}) {
    chosen.grace = fits;
    EXPECT_THAT(fault_of(chosen), IsEmpty()) << fits;
  }
  chosen.grace = "4001ms";
  EXPECT_THAT(fault_of(chosen), HasSubstr("at most 4000 ms"));
}

TEST(ExecPlan, ThereMustBeACommand) {
  auto chosen = settings();
  chosen.command.clear();
  EXPECT_THAT(fault_of(chosen), HasSubstr("after --"));
}

TEST(ExecPlan, AHookIsAProgramOrALineForAShell) {
  auto chosen = settings();
  chosen.token_hook = "/bin/true";
  EXPECT_THAT(make_exec_plan(chosen).hook, ElementsAre("/bin/true"));
  chosen.token_hook = "/bin";
  EXPECT_THAT(make_exec_plan(chosen).hook, ElementsAre("/bin/sh", "-c", "/bin"));
  chosen.token_hook = "echo $LEASEHOLD_TOKEN > t";
  EXPECT_THAT(make_exec_plan(chosen).hook,
              ElementsAre("/bin/sh", "-c", "echo $LEASEHOLD_TOKEN > t"));
}

TEST(ExecPlan, TheInstanceOfARunIsSpelledAsInstancesAre) {
  const auto instance = tools::own_instance();
  EXPECT_THAT(instance, testing::MatchesRegex("[A-Za-z0-9._:-]{1,128}"));
  EXPECT_NE(make_exec_plan(settings()).acquire.request.request_id,
            make_exec_plan(settings()).acquire.request.request_id);
}

TEST(Refusal, WhatItMeansForWhoWantsTheLock) {
  EXPECT_EQ(tools::kind_of({409, "already_held", "", {}}), refusal_kind::held);
  EXPECT_EQ(tools::kind_of({409, "retry_not_due", "", {}}), refusal_kind::held);
  EXPECT_EQ(tools::kind_of({423, "lease_frozen", "", {}}), refusal_kind::held);
  EXPECT_EQ(tools::kind_of({409, "wait_deadline_passed", "", {}}), refusal_kind::waited_out);
  EXPECT_EQ(tools::kind_of({200, "duplicate_request", "", {}}), refusal_kind::grant_ended);
  EXPECT_EQ(tools::kind_of({202, "awaiting_grant", "", {}}), refusal_kind::later);
  EXPECT_EQ(tools::kind_of({429, "", "", {}}), refusal_kind::later);
  EXPECT_EQ(tools::kind_of({503, "standby", "", {}}), refusal_kind::later);
  EXPECT_EQ(tools::kind_of({400, "invalid_target", "", {}}), refusal_kind::final);
  EXPECT_EQ(tools::kind_of({403, "forbidden", "", {}}), refusal_kind::final);
  EXPECT_EQ(tools::kind_of({422, "invalid_policy", "", {}}), refusal_kind::final);
}

TEST(Refusal, WhichOnesTellAHolderThatItsAuthorityIsOver) {
  for (const auto& [status, reason] : {std::pair(412, "stale_generation"),
                                       {412, "holder_mismatch"},
                                       {410, "lease_revoked"},
                                       {410, "lease_expired"},
                                       {404, "unknown_lease"}}) {
    EXPECT_TRUE(tools::tells_loss({status, reason, "", {}})) << reason;
  }
  // A term that is not made longer still runs; a frozen lease may thaw; a proxy's 404 says nothing.
  for (const auto& [status, reason] : {std::pair(410, "max_lifetime_reached"),
                                       {423, "lease_frozen"},
                                       {401, "unauthenticated"},
                                       {503, "store_unavailable"},
                                       {404, ""}}) {
    EXPECT_FALSE(tools::tells_loss({status, reason, "", {}})) << reason;
  }
}

TEST(ExecCodes, OneForEachEnd) {
  const auto code = [](run_end::kind what, int number) {
    return static_cast<int>(code_of(run_end{what, number, {}, true}));
  };
  EXPECT_EQ(code(run_end::kind::exited, 0), 0);
  EXPECT_EQ(code(run_end::kind::exited, 255), 255);
  EXPECT_EQ(code(run_end::kind::not_started, ENOENT), 127);
  EXPECT_EQ(code(run_end::kind::not_started, EACCES), 126);
  EXPECT_EQ(code(run_end::kind::not_started, ENOEXEC), 126);
  EXPECT_EQ(code(run_end::kind::not_started, EAGAIN), 125);
  EXPECT_EQ(code(run_end::kind::lost, 0), 120);
  EXPECT_EQ(code(run_end::kind::watchdog_gone, 0), 125);
  EXPECT_EQ(static_cast<int>(tools::code_of_signal(15)), 143);
}

TEST(CommandEnvironment, HasTheTokenTheKeyAndTheDeadlineAndNothingElseOfOurs) {
  const char* caller[] = {"PATH=/bin", "LEASEHOLD_TOKEN_FILE=/secret", "LEASEHOLD_TOKEN=bearer",
                          "LEASEHOLD_URL=http://x", nullptr};
  const tools::lock_grant grant{"k:1", "acme/p/host:h//", "a/b", 42, {}};
  const tools::boot_time now(milliseconds(1'000));
  EXPECT_THAT(command_environment(caller, grant, now + milliseconds(15'000), now),
              ElementsAre("PATH=/bin", "LEASEHOLD_TOKEN=42", "LEASEHOLD_KEY=acme/p/host:h//",
                          "LEASEHOLD_LEASE_ID=k:1", "LEASEHOLD_DEADLINE=16000",
                          "LEASEHOLD_DEADLINE_MS=15000"));
}

}  // namespace
}  // namespace leasehold::tests
