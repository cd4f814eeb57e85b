// The scenario files of this folder, for the tests beside them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/scenario.hpp"

namespace leasehold::tools {

/// tests/scenario/*.json, or those of a folder below, in the order of their names.
std::vector<std::filesystem::path> scenario_paths(const std::string& folder = {});

/// The text of a file that must exist.
std::string text_of(const std::filesystem::path& path);

/// A text that must be a scenario.
scenario scenario_from(const std::string& text);

}  // namespace leasehold::tools
