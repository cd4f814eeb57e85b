// docs/PROTOCOL.md against what the program prints.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "leasehold/protocol/evidence.hpp"
#include "src/store/evidence_json.hpp"
#include "tools/replay.hpp"

namespace leasehold::tests {
namespace {

namespace json = boost::json;

std::string text_of(const std::string& path) {
  std::ifstream in(std::filesystem::path(LEASEHOLD_SOURCE_DIR) / path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct documented_column {
  std::string name;
  std::string type;
};

/// The tables of the section about rows, one after the other.
std::vector<documented_column> documented_columns() {
  const auto page = text_of("docs/PROTOCOL.md");
  const auto section = page.substr(page.find("\n## 8. "));
  static const std::regex line(R"(\n\| `(\w+)` \| (text|number|flag) \| \w+ \| [^|\n]{4,} \|)");
  std::vector<documented_column> out;
  for (std::sregex_iterator at(section.begin(), section.end(), line), end; at != end; ++at) {
    out.push_back({(*at)[1], (*at)[2]});
  }
  return out;
}

std::string type_of(const json::value& value) {
  return value.is_string() ? "text" : value.is_bool() ? "flag" : "number";
}

/// Every row that a scenario gives.
std::vector<json::object> rows_of(const std::string& file) {
  const auto read = tools::read_scenario(text_of("tests/scenario/" + file));
  std::string lines;
  tools::print_rows(std::get<tools::scenario>(read), lines);
  std::vector<json::object> out;
  std::istringstream in(lines);
  for (std::string each; std::getline(in, each);) out.push_back(json::parse(each).as_object());
  return out;
}

TEST(ProtocolPage, ListsEveryColumnInItsOrder) {
  std::vector<std::string> listed;
  for (const auto& column : documented_columns()) listed.push_back(column.name);
  std::vector<std::string> printed;
  for (const auto columns : {protocol::replay_columns(), protocol::live_columns()}) {
    printed.insert(printed.end(), columns.begin(), columns.end());
  }
  EXPECT_EQ(listed, printed);
}

TEST(ProtocolPage, GivesColumnsTheTypeThatReplayPrints) {
  const auto columns = documented_columns();
  const auto rows = rows_of("probe-2-ack-is-not-completion.json");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), protocol::replay_columns().size());
    auto column = columns.begin();
    for (const auto& [name, value] : row) {
      EXPECT_EQ(std::string(name), column->name);
      EXPECT_EQ(type_of(value), column->type) << name;
      ++column;
    }
  }
}

TEST(ProtocolPage, GivesColumnsTheTypeThatTheEvidenceHas) {
  std::string line;
  storage::append_evidence_line(line, {}, {}, {}, nullptr);
  const auto row = json::parse(line).as_object();
  for (const auto& column : documented_columns()) {
    const auto* value = row.if_contains(column.name);
    ASSERT_NE(value, nullptr) << column.name;
    EXPECT_EQ(type_of(*value), column.type) << column.name;
  }
  for (const auto* name : {"force", "session_epoch", "derived", "attachment"}) {
    EXPECT_TRUE(row.contains(name)) << name;
    EXPECT_NE(text_of("docs/PROTOCOL.md").find('`' + std::string(name) + '`'), std::string::npos);
  }
}

}  // namespace
}  // namespace leasehold::tests
