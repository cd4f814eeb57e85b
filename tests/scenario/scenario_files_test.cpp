// What the scenario files claim, and the rows that replay prints for the random ones.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <sstream>

#include "scenario/scenario_files.hpp"
#include "tools/replay.hpp"

namespace leasehold::tools {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Compact JSON with its members in their order: equal texts are equal values in equal order.
std::string compact(const std::string& line) {
  return boost::json::serialize(boost::json::parse(line));
}

std::string rows_of(const std::filesystem::path& path) {
  std::string rows;
  print_rows(scenario_from(text_of(path)), rows);
  return rows;
}

TEST(ScenarioFiles, HoldTheirExpectations) {
  check_count count;
  std::string differences;
  for (const auto& path : scenario_paths()) {
    check_rows(path.filename().string(), scenario_from(text_of(path)), count, differences);
  }
  EXPECT_EQ(differences, "");
  EXPECT_EQ(count.differences, 0);
  EXPECT_GE(count.files, 34);
  EXPECT_GE(count.expectations, 437);
}

TEST(ScenarioFiles, RandomOnesPrintExactlyTheRowsBesideThem) {
  const auto paths = scenario_paths("random");
  ASSERT_GE(paths.size(), 40U);
  for (const auto& path : paths) {
    const auto printed = lines_of(rows_of(path));
    const auto wanted = lines_of(text_of(std::filesystem::path(path).replace_extension(".rows")));
    ASSERT_EQ(printed.size(), wanted.size()) << path;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(printed[i], compact(wanted[i])) << path << " row " << i + 1;
    }
  }
}

TEST(ScenarioFiles, MeetEveryReasonThatReplayCanGive) {
  std::set<protocol::reason> met;
  const auto hear = [&](std::size_t, const protocol::row& what, const protocol::record&) {
    met.insert(what.answer.reason);
  };
  for (const auto* folder : {"", "random"}) {
    for (const auto& path : scenario_paths(folder)) {
      const auto file = scenario_from(text_of(path));
      scenario_run run(file.policy, hear);
      for (const auto& step : file.steps) run.take(step);
    }
  }
  for (const auto& entry : protocol::all_reasons()) {
    const bool of_the_session_or_api = entry.number >= 200;
    using enum protocol::reason;
    const bool of_the_store = entry.code == clock_anchored || entry.code == history_based ||
                              entry.code == forgotten || entry.code == backup_restored;
    // Waiting for a lock ends in a grant or a refusal; the wait itself is told outside the rules,
    // as is what is known of a process.
    const bool of_the_line = entry.code == awaiting_grant || entry.code == process_registered;
    // It takes 2^53 - 1 grants; the unit tests reach it.
    const bool out_of_reach = entry.code == protocol::reason::generation_exhausted;
    if (of_the_session_or_api || of_the_store || of_the_line || out_of_reach) continue;
    EXPECT_TRUE(met.contains(entry.code)) << entry.word;
  }
}

TEST(ScenarioFiles, LeaveNoRecordThatBreaksAnInvariant) {
  for (const auto* folder : {"", "random"}) {
    for (const auto& path : scenario_paths(folder)) {
      const auto file = scenario_from(text_of(path));
      scenario_run run(file.policy, [&](std::size_t step, const protocol::row&, const auto& after) {
        EXPECT_EQ(broken_invariant(after), std::nullopt) << path << " step " << step;
      });
      for (const auto& step : file.steps) run.take(step);
    }
  }
}

TEST(Check, CountsEachColumnThatDiffersAndNamesItsPlace) {
  const auto file = scenario_from(R"({"steps": [
    {"at": 5, "op": "offer", "lease": "L", "holder": "a", "expect": {"state": "active", "at": 5}},
    {"at": 6, "op": "tick", "expect": {"at": 6}}],
    "final": {"L": {"generation": 2}, "M": {"state": "none"}}})");
  check_count count;
  std::string out;
  check_rows("f", file, count, out);
  EXPECT_EQ(count.files, 1);
  EXPECT_EQ(count.expectations, 5);
  EXPECT_EQ(count.differences, 4);
  EXPECT_EQ(out,
            "f: step 1 (offer): state is \"offered\", expected \"active\"\n"
            "f: step 2 (tick): at is in no row, expected 6\n"
            "f: final L: generation is 1, expected 2\n"
            "f: final M: state is in no row, expected \"none\"\n");
}

TEST(Run, PassesDeadlinesOfAllLeasesByTimeAndThenByName) {
  const auto file = scenario_from(R"({"policy": {"ack_timeout_ms": 10}, "steps": [
    {"at": 1, "op": "offer", "lease": "b", "holder": "w"},
    {"at": 1, "op": "offer", "lease": "a", "holder": "w"},
    {"at": 2, "op": "offer", "lease": "A", "holder": "w"},
    {"at": 12, "op": "tick"}]})");
  std::vector<std::string> passed;
  scenario_run run(file.policy,
                   [&](std::size_t step, const protocol::row& what, const auto& after) {
                     if (what.kind != protocol::event_kind::expire) return;
                     passed.push_back(after.lease.value + '@' + std::to_string(what.at.ms) + '#' +
                                      std::to_string(step));
                   });
  for (const auto& step : file.steps) run.take(step);
  EXPECT_EQ(passed, (std::vector<std::string>{"a@11#4", "b@11#4", "A@12#4"}));
}

}  // namespace
}  // namespace leasehold::tools
