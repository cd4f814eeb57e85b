// Records rebuilt from exported lines alone. Every scenario file of the tree serves as a history.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "src/http_api_job.hpp"
#include "tests/tools/live_rows.hpp"
#include "tools/rebuilt_jobs.hpp"

namespace leasehold::tests {
namespace {

namespace json = boost::json;
using tools::rebuilt_jobs;

/// Feeds the policy and all lines, as if each lease's rows had been exported one after the other.
rebuilt_jobs rebuild(const live_history& history) {
  rebuilt_jobs out;
  EXPECT_EQ(out.take(history.policy_line), std::nullopt);
  for (const auto& [lease, lived] : history.leases) {
    for (const auto& line : lived.lines) EXPECT_EQ(out.take(line), std::nullopt);
  }
  return out;
}

class every_history : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(every_history, GivesTheSameRecordsFromItsLinesAlone) {
  const auto history = run_live(GetParam());
  const auto rebuilt = rebuild(history);
  for (const auto& wrong : rebuilt.wrong_rows()) {
    ADD_FAILURE() << "row " << wrong.row.value << " " << wrong.column << ": " << wrong.sentence;
  }
  auto jobs = rebuilt.jobs();
  for (const auto& [lease, lived] : history.leases) {
    if (lived.last.kind != protocol::lease_kind::job) continue;
    auto& job = jobs[lived.last.job.value];
    const actors::job_view shown{{},
                                 std::make_shared<protocol::record>(lived.last),
                                 std::make_shared<actors::job_spec>(),
                                 {},
                                 {}};
    auto wanted = server::to_json(shown, false);
    for (const char* other : {"policy", "policy_id", "row"}) {
      wanted.erase(other);
      job.erase(other);
    }
    EXPECT_EQ(json::serialize(job), json::serialize(wanted));
  }
}

std::string name_of(const testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name =
      info.param.parent_path().filename().string() + '_' + info.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(tree, every_history, testing::ValuesIn(scenario_files()), name_of);

live_history one_history() {
  return run_live(LEASEHOLD_SOURCE_DIR "/tests/scenario/probe-3-progress-12-after-14.json");
}

TEST(RebuiltJobs, ADecisionThatDoesNotFollowIsNamedByRowAndColumn) {
  auto history = one_history();
  auto& line = history.leases.begin()->second.lines.back();
  line["reason"] = line["reason"] == "stale_sequence" ? "renewed" : "stale_sequence";
  const auto wrong = rebuild(history).wrong_rows();
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_EQ(wrong.front().row.value, line["row"].as_int64());
  EXPECT_EQ(wrong.front().column, "reason");
}

TEST(RebuiltJobs, AMissingLineIsNoticedAtTheNextRow) {
  auto history = one_history();
  auto& lines = history.leases.begin()->second.lines;
  ASSERT_GT(lines.size(), 3U);
  lines.erase(lines.begin() + 2);
  EXPECT_FALSE(rebuild(history).wrong_rows().empty());
}

TEST(RebuiltJobs, ALineWithAnUnknownWordIsRefusedByItsColumn) {
  auto history = one_history();
  auto line = history.leases.begin()->second.lines.front();
  line["decision"] = "perhaps";
  rebuilt_jobs out;
  const auto fault = out.take(line);
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(*fault, testing::HasSubstr("decision"));
}

TEST(RebuiltJobs, ABaseRowCannotBeRebuiltFromLines) {
  rebuilt_jobs out;
  EXPECT_TRUE(out.take({{"event", "base"}, {"row", 9}}).has_value());
}

}  // namespace
}  // namespace leasehold::tests
