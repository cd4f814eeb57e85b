// The table targets.tsv: what is typed, and what it comes down to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "src/keys/normalise.hpp"

namespace leasehold::keys {
namespace {

using protocol::lock_name;
using protocol::target_kind;

struct table_row {
  int line = 0;
  lock_name typed;
  std::string normalised;
  std::string part_of_refusal;  ///< empty: it is accepted
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == '\t') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "\\x") == 0) {
      out += static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

std::vector<table_row> read_table() {
  std::ifstream in(LEASEHOLD_SOURCE_DIR "/tests/keys/targets.tsv");
  std::vector<table_row> out;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto cells = split(line);
    if (cells.front() == "same" && !out.empty() && cells.size() == 2) {
      out.push_back(out.back());
    } else {
      const auto kind = protocol::target_kind_from_word(cells.front());
      if (!kind || cells.size() != (cells[2] == "REFUSED" ? 4U : 3U)) {
        ADD_FAILURE() << "line " << number << " cannot be read";
        continue;
      }
      out.push_back({number,
                     {"p", *kind, {}, {}, {}},
                     unescape(cells[2]),
                     cells.size() == 4 ? cells[3] : ""});
    }
    out.back().line = number;
    out.back().typed.target = unescape(cells[1]);
  }
  return out;
}

TEST(Targets, ComeDownToWhatTheTableSays) {
  for (const table_row& row : read_table()) {
    SCOPED_TRACE("line " + std::to_string(row.line));
    const auto made = normalise(row.typed);
    const auto* name = std::get_if<lock_name>(&made);
    if (!row.part_of_refusal.empty()) {
      ASSERT_EQ(name, nullptr) << name->target;
      EXPECT_THAT(std::get<refusal>(made).sentence, testing::HasSubstr(row.part_of_refusal));
      continue;
    }
    ASSERT_NE(name, nullptr) << std::get<refusal>(made).sentence;
    EXPECT_EQ(name->target, row.normalised);
    EXPECT_EQ(normalise(*name), made) << "normalising twice is not normalising once";
  }
}

TEST(Targets, AreNeverRepeatedByARefusal) {
  for (const auto kind : {target_kind::host, target_kind::ip, target_kind::cidr, target_kind::url,
                          target_kind::opaque}) {
    const auto made = normalise({"p", kind, "http://me:hunter2@a/\n", "", ""});
    ASSERT_TRUE(std::holds_alternative<refusal>(made)) << protocol::word(kind);
    EXPECT_EQ(std::get<refusal>(made).sentence.find("hunter2"), std::string::npos);
  }
}

TEST(Targets, TheTableHasEveryKindBothWays) {
  std::set<std::pair<target_kind, bool>> met;
  const auto table = read_table();
  for (const table_row& row : table) met.emplace(row.typed.kind, row.part_of_refusal.empty());
  EXPECT_EQ(met.size(), 10U);
  EXPECT_GE(table.size(), 80U);
}

}  // namespace
}  // namespace leasehold::keys
