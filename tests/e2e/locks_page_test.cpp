// docs/LOCKS.md: its examples are run, in their order, against the real server.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "live_server.hpp"

namespace leasehold::e2e {
namespace {

/// A block of commands, and what the page says that they print.
struct example {
  std::string commands;
  std::string prints;
  bool is_json = false;
};

std::vector<example> examples_of(const std::filesystem::path& page) {
  std::vector<example> out;
  std::istringstream in(content_of(page));
  std::string* block = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line == "```sh") {
      block = &out.emplace_back().commands;
    } else if (line == "```json" || line == "```text") {
      if (out.empty()) continue;
      out.back().is_json = line == "```json";
      block = &out.back().prints;
    } else if (line == "```") {
      block = nullptr;
    } else if (block != nullptr) {
      *block += line + '\n';
    }
  }
  return out;
}

/// The lines in an order of their own: commands that run side by side print in any.
std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  std::ranges::sort(out);
  return out;
}

/// The JSON values of a text, one after the other.
std::vector<json::value> values_of(std::string_view text) {
  std::vector<json::value> out;
  while (text.find_first_not_of(" \n") != std::string_view::npos) {
    json::stream_parser parser;
    json::error_code failed;
    const auto used = parser.write_some(text.data(), text.size(), failed);
    if (!failed && !parser.done()) parser.finish(failed);
    if (failed) {
      ADD_FAILURE() << "no JSON: " << text;
      return out;
    }
    out.push_back(parser.release());
    text.remove_prefix(used);
  }
  return out;
}

bool is_instant(const json::value& v) { return v.is_int64() && v.as_int64() > 1'000'000'000'000; }

/// Equal but for instants and the numbers of rows.
void expect_alike(const json::value& said, const json::value& got, const std::string& at) {
  if (said.is_object() && got.is_object()) {
    std::vector<std::string> names;
    std::vector<std::string> printed;
    for (const auto& each : said.as_object()) names.emplace_back(each.key());
    for (const auto& each : got.as_object()) printed.emplace_back(each.key());
    std::ranges::sort(names);
    std::ranges::sort(printed);
    EXPECT_EQ(names, printed) << at;
    for (const auto& each : said.as_object()) {
      const auto* other = got.as_object().if_contains(each.key());
      if (other != nullptr) expect_alike(each.value(), *other, at + "/" + std::string(each.key()));
    }
    return;
  }
  if (at.ends_with("/row") && said.is_int64() && got.is_int64()) return;
  if (is_instant(said) && is_instant(got)) return;
  EXPECT_EQ(said, got) << at;
}

TEST(LocksPage, ExamplesPrintWhatItSays) {
  live_server server(1);
  const tests::temporary_directory kept;
  for (const char* principal : {"client", "operator"}) {
    std::ofstream(kept.path() / principal)
        << "Authorization: Bearer " << server.token(principal) << '\n';
  }
  const std::vector<std::string> variables{"URL=" + server.url(),
                                           "TOKEN=" + (kept.path() / "client").string(),
                                           "OPERATOR=" + (kept.path() / "operator").string()};
  const auto page = std::filesystem::path(LEASEHOLD_SOURCE_DIR) / "docs/LOCKS.md";
  const auto examples = examples_of(page);
  int number = 0;
  for (const auto& each : examples) {
    // The others are for a program, a database or `leasehold exec`, which have tests of their own.
    if (each.commands.find("$URL") == std::string::npos) continue;
    ASSERT_FALSE(each.prints.empty()) << "an example that prints nothing:\n" << each.commands;
    const auto out = kept.path() / std::to_string(++number);
    program_run run("/bin/sh", {"-c", each.commands}, out, variables);
    EXPECT_EQ(run.wait(), 0) << each.commands;
    const auto printed = content_of(out);
    if (each.is_json) {
      const auto said = values_of(each.prints);
      const auto got = values_of(printed);
      ASSERT_EQ(said.size(), got.size()) << each.commands << printed;
      for (std::size_t i = 0; i < said.size(); ++i) expect_alike(said[i], got[i], "");
    } else {
      EXPECT_EQ(sorted_lines(printed), sorted_lines(each.prints));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << each.commands << printed;
  }
  EXPECT_GE(number, 10);
}

}  // namespace
}  // namespace leasehold::e2e
