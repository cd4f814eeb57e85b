// A history that was written as a scenario must replay to the decisions that it tells of. Every
// scenario file of the tree serves as a history.
#include "tools/scenario_export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/http_api_job.hpp"
#include "tests/tools/live_rows.hpp"
#include "tools/replay.hpp"

namespace leasehold::tests {
namespace {

namespace json = boost::json;
using tools::not_exportable;
using tools::scenario_of;

/// Checks an exported text the way `leasehold replay --check` does; yields what differs.
std::string differences(const std::string& text) {
  auto parsed = tools::read_scenario(text);
  if (const auto* fault = std::get_if<tools::malformed_scenario>(&parsed)) return fault->sentence;
  tools::check_count count;
  std::string out;
  tools::check_rows("export", std::get<tools::scenario>(parsed), count, out);
  EXPECT_GT(count.expectations, 0);
  return out;
}

class every_scenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(every_scenario, ReplaysTheSameAfterItWasExported) {
  const auto history = run_live(GetParam());
  for (const auto& [lease, lived] : history.leases) {
    const auto exported = scenario_of(lived.lines, server::to_json(history.policy), lease);
    if (const auto* why = std::get_if<not_exportable>(&exported)) {
      ADD_FAILURE() << lease << ": " << why->sentence;
      continue;
    }
    const auto& text = std::get<std::string>(exported);
    EXPECT_EQ(differences(text), "") << text;
  }
}

std::string name_of(const testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name =
      info.param.parent_path().filename().string() + '_' + info.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(tree, every_scenario, testing::ValuesIn(scenario_files()), name_of);

json::object line(std::int64_t row, std::int64_t at, const char* event,
                  const char* origin = "client") {
  return {{"row", row},
          {"at", at},
          {"event", event},
          {"origin", origin},
          {"lease_id", "L1"},
          {"job_id", "L1"},
          {"generation", 0},
          {"decision", "accepted"},
          {"reason", "submitted"},
          {"state", "vacant"},
          {"deferred_row", 0}};
}

TEST(ScenarioExport, AHistoryThatBeginsWithABaseRowIsRefused) {
  const auto exported = scenario_of({line(7, 10, "base", "coordinator")}, {}, "cut");
  ASSERT_TRUE(std::holds_alternative<not_exportable>(exported));
  EXPECT_THAT(std::get<not_exportable>(exported).sentence, testing::HasSubstr("base row 7"));
}

TEST(ScenarioExport, AGrantThatSkipsGenerationsIsRefused) {
  auto offer = line(2, 20, "offer", "coordinator");
  offer["generation"] = 5;
  const auto exported = scenario_of({line(1, 10, "submit"), offer}, {}, "restored");
  ASSERT_TRUE(std::holds_alternative<not_exportable>(exported));
  EXPECT_THAT(std::get<not_exportable>(exported).sentence, testing::HasSubstr("generation 5"));
}

TEST(ScenarioExport, AnEventThatAScenarioCannotSayIsNamed) {
  const auto exported = scenario_of({line(1, 10, "forget")}, {}, "forgotten");
  ASSERT_TRUE(std::holds_alternative<not_exportable>(exported));
  EXPECT_THAT(std::get<not_exportable>(exported).sentence, testing::HasSubstr("\"forget\""));
}

TEST(ScenarioExport, RowsMayComeInAnyOrder) {
  const auto exported =
      scenario_of({line(2, 20, "cancel"), line(1, 10, "submit")}, {}, "any order");
  const auto& text = std::get<std::string>(exported);
  EXPECT_LT(text.find("submit"), text.find("cancel"));
}

TEST(ScenarioExport, NoRowsAreNoScenario) {
  EXPECT_TRUE(std::holds_alternative<not_exportable>(scenario_of({}, {}, "nothing")));
}

}  // namespace
}  // namespace leasehold::tests
