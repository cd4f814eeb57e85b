#include "scenario/scenario_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace leasehold::tools {

std::vector<std::filesystem::path> scenario_paths(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  const auto root = std::filesystem::path(LEASEHOLD_SOURCE_DIR) / "tests/scenario" / folder;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

scenario scenario_from(const std::string& text) {
  auto parsed = read_scenario(text);
  if (const auto* bad = std::get_if<malformed_scenario>(&parsed)) {
    ADD_FAILURE() << bad->sentence;
    return {};
  }
  return std::get<scenario>(std::move(parsed));
}

}  // namespace leasehold::tools
