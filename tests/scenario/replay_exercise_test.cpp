// The learner's exercise: inputs without labels, and the grade of what a learner made of them.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "scenario/scenario_files.hpp"
#include "tools/replay.hpp"

namespace leasehold::tools {
namespace {

const char* const two_steps = R"({"scenario": "s", "steps": [
  {"at": 5, "op": "offer", "lease": "L", "holder": "a"},
  {"at": 6, "op": "tick"},
  {"at": 7, "op": "ack", "lease": "L", "generation": 1, "holder": "b"}]})";

std::string grade(const std::string& answers, grade_count& count) {
  const auto parsed = read_answers(answers);
  if (const auto* bad = std::get_if<malformed_answers>(&parsed)) return bad->sentence;
  std::string out;
  grade_steps("f.json", scenario_from(two_steps), std::get<learners_answers>(parsed), count, out);
  return out;
}

TEST(HiddenLabels, NameEveryInputAndThePolicyAndNothingThatWasDecided) {
  std::string out;
  print_inputs("f.json", scenario_from(two_steps), out);
  const auto first = boost::json::parse(out.substr(0, out.find('\n'))).as_object();
  EXPECT_EQ(first.at("file"), "f.json");
  EXPECT_EQ(first.at("step"), 1);
  EXPECT_EQ(first.at("event"), "offer");
  EXPECT_EQ(first.at("frame_holder"), "a");
  EXPECT_EQ(first.at("policy").at("lease_duration_ms"), 30000);
  for (const auto* label :
       {"decision", "reason", "state", "state_before", "generation", "expires_at",
        "stale_generation", "late_progress", "lease_expired", "attempt"}) {
    EXPECT_FALSE(first.contains(label)) << label;
  }
}

TEST(Grade, CountsAnswersByFileScenarioOrNeither) {
  for (const std::string name : {R"("file": "f.json", )", R"("scenario": "s", )", ""}) {
    grade_count count;
    std::string lines = "{";
    lines += name;
    lines += R"("step": 1, "decision": "applied", "reason": "offered"})";
    lines += "\n\n{";
    lines += name;
    lines += R"("step": 3, "decision": "rejected", "reason": "ownership_conflict"})";
    const auto out = grade(lines, count);
    EXPECT_EQ(out, "");
    EXPECT_EQ(count.steps, 2);
    EXPECT_EQ(count.right, 2);
  }
}

TEST(Grade, NamesTheRightAnswerOfEachStepThatIsWrongOrMissing) {
  grade_count count;
  const auto out =
      grade(R"({"step": 3, "decision": "rejected", "reason": "holder_mismatch"})", count);
  EXPECT_EQ(
      out,
      "f.json: step 1 (offer): no answer, right is applied offered\n"
      "f.json: step 3 (ack): rejected holder_mismatch, right is rejected ownership_conflict\n");
  EXPECT_EQ(count.steps, 2);
  EXPECT_EQ(count.right, 0);
}

TEST(Grade, RefusesAnswersThatCannotBeRead) {
  grade_count count;
  EXPECT_EQ(grade("{}", count), "line 1: an answer needs an integer \"step\"");
  EXPECT_EQ(grade(R"({"step": 1, "decision": "applied"})", count),
            "line 1: an answer needs the strings \"decision\" and \"reason\"");
  const std::string once = R"({"step": 1, "decision": "applied", "reason": "offered"})";
  EXPECT_EQ(grade(once + "\n" + once, count), "line 2: step 1 was answered before");
}

}  // namespace
}  // namespace leasehold::tools
