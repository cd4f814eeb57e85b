// What makes a scenario file malformed, and how it is said.
#include <gtest/gtest.h>

#include "scenario/scenario_files.hpp"

namespace leasehold::tools {
namespace {

std::string fault_of(const std::string& text) {
  const auto parsed = read_scenario(text);
  const auto* bad = std::get_if<malformed_scenario>(&parsed);
  return bad == nullptr ? "" : bad->sentence;
}

std::string fault_of_step(const std::string& step) {
  return fault_of(R"({"steps": [)" + step + "]}");
}

struct malformed_case {
  const char* name;
  std::string text;
  std::string sentence;
};

class MalformedScenario : public testing::TestWithParam<malformed_case> {};

TEST_P(MalformedScenario, IsRefusedInOneSentenceThatNamesThePlace) {
  EXPECT_EQ(fault_of(GetParam().text), GetParam().sentence);
}

const std::string step_1 = R"({"steps": [{"at": 1, "op": "tick"}, )";

INSTANTIATE_TEST_SUITE_P(
    Files, MalformedScenario,
    testing::Values(
        malformed_case{"Empty", "", "not JSON: incomplete JSON (line 1)"},
        malformed_case{"Array", "[]", "a scenario must be an object"},
        malformed_case{"NoSteps", "{}", "the scenario has no \"steps\""},
        malformed_case{"TrailingText", "{\"steps\": []}\nx", "not JSON: extra data (line 2)"},
        malformed_case{"RepeatedKey", "{\"steps\": [],\n\"steps\": []}",
                       "the key \"steps\" stands twice in one object (line 2)"},
        malformed_case{"UnknownKey", R"({"steps": [], "more": 1})",
                       "a scenario has no key \"more\""},
        malformed_case{"UnknownPolicyKey", R"({"policy": {"ttl": 1}, "steps": []})",
                       "policy has no key \"ttl\""},
        malformed_case{"NegativePolicy", R"({"policy": {"max_losses": -1}, "steps": []})",
                       "policy: max_losses must be 0 or more, not -1"},
        malformed_case{"UnknownPolicyWord", R"({"policy": {"on_expiry": "extend"}, "steps": []})",
                       "policy: on_expiry must be one of reoffer|fail, not \"extend\""},
        malformed_case{"StepIsText", step_1 + R"("ack"]})", "step 2 must be an object"},
        malformed_case{"NoTime", step_1 + R"({"op": "tick"}]})", "step 2 has no \"at\""},
        malformed_case{"TimeIsZero", R"({"steps": [{"at": 0, "op": "tick"}]})",
                       "step 1: at must be from 1 to 2^53 - 1"},
        malformed_case{"TimeGoesBack",
                       R"({"steps": [{"at": 9, "op": "tick"}, {"at": 8, "op": "tick"}]})",
                       "step 2: at is 8, before the step that precedes it (9)"},
        malformed_case{"TimeIsAFraction", R"({"steps": [{"at": 1.0, "op": "tick"}]})",
                       "step 1: at must be an integer within 2^53 - 1 of 0"},
        malformed_case{"UnknownOperation", step_1 + R"({"at": 1, "op": "expire", "lease": "L"}]})",
                       "step 2: op is \"expire\", which is no operation"},
        malformed_case{"NoLease", step_1 + R"({"at": 1, "op": "ack"}]})",
                       "step 2 has no \"lease\""},
        malformed_case{"UnknownStepKey", step_1 + R"({"at": 1, "op": "tick", "ttl": 1}]})",
                       "step 2: ttl: a step has no such key"},
        malformed_case{
            "NumberTooLarge",
            step_1 + R"({"at": 1, "op": "ack", "lease": "L", "generation": 9007199254740992}]})",
            "step 2: generation must be an integer within 2^53 - 1 of 0"},
        malformed_case{"TextForTruth",
                       step_1 + R"({"at": 1, "op": "revoke", "lease": "L", "force": "yes"}]})",
                       "step 2: force must be true or false"},
        malformed_case{"UnknownColumn",
                       step_1 + R"({"at": 1, "op": "ack", "lease": "L", "expect": {"ttl": 1}}]})",
                       "step 2: expect names \"ttl\", which is no column"},
        malformed_case{"LineBreakInAName", step_1 + R"({"at": 1, "op": "a\nb"}]})",
                       "step 2: op is \"a\\nb\", which is no operation"}),
    [](const auto& tested) { return tested.param.name; });

TEST(ScenarioReader, RefusesInvalidUtf8AndLoneSurrogates) {
  EXPECT_NE(fault_of("{\"scenario\": \"\xff\", \"steps\": []}"), "");
  EXPECT_NE(fault_of(R"({"scenario": "\ud800", "steps": []})"), "");
}

TEST(ScenarioReader, RefusesNestingThatNoScenarioHas) {
  EXPECT_EQ(fault_of_step(std::string(20, '[') + std::string(20, ']')),
            "not JSON: too deep (line 1)");
}

TEST(ScenarioReader, TakesTheTimeOfTheStepForAFrameThatNamesNone) {
  const auto file = scenario_from(R"({"steps": [
    {"at": 7, "op": "ack", "lease": "L"}, {"at": 8, "op": "ack", "lease": "L", "sent_at": 0},
    {"at": 9, "op": "cancel", "lease": "L"}]})");
  ASSERT_EQ(file.steps.size(), 3U);
  EXPECT_EQ(file.steps[0].what->sent_at.ms, 7);
  EXPECT_EQ(file.steps[1].what->sent_at.ms, 0);
  EXPECT_EQ(file.steps[2].what->sent_at.ms, 0);
}

TEST(ScenarioReader, CallsAJobLikeItsLeaseUnlessItIsNamed) {
  const auto file = scenario_from(R"({"steps": [
    {"at": 7, "op": "submit", "lease": "L"}, {"at": 8, "op": "submit", "lease": "L", "job": "J"}]})");
  ASSERT_EQ(file.steps.size(), 2U);
  EXPECT_EQ(file.steps[0].what->job.value, "L");
  EXPECT_EQ(file.steps[1].what->job.value, "J");
}

TEST(ScenarioReader, KeepsAnOutcomeThatNobodyKnowsForTheRow) {
  const auto file =
      scenario_from(R"({"steps": [{"at": 7, "op": "result", "lease": "L", "outcome": "none"}]})");
  ASSERT_EQ(file.steps.size(), 1U);
  EXPECT_EQ(file.steps[0].what->ending, protocol::outcome::none);
  EXPECT_EQ(file.steps[0].what->unknown_outcome, "none");
}

TEST(ScenarioReader, TakesEveryPolicyKeyAndZeroForANumber) {
  std::string keys;
  for (const auto& key : protocol::policy_keys()) {
    const auto bar = key.words.find('|');
    keys += (keys.empty() ? "\"" : ", \"") + std::string(key.name) +
            "\": " + (key.words.empty() ? "0" : '"' + std::string(key.words.substr(bar + 1)) + '"');
  }
  const auto file = scenario_from(R"({"policy": {)" + keys + R"(}, "steps": []})");
  EXPECT_EQ(file.policy.lease_duration.ms, 0);
  EXPECT_EQ(file.policy.defer_limit, 0);
  EXPECT_EQ(file.policy.on_expiry, protocol::on_deadline::fail);
  EXPECT_EQ(file.policy.outage_expiry, protocol::outage_expiry::extend);
}

}  // namespace
}  // namespace leasehold::tools
