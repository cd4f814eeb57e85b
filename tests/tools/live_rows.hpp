// What a coordinator would have written into its evidence, made from a scenario file: the same rows
// with the live columns, as objects of exported lines.
#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/scenario.hpp"

namespace leasehold::tests {

struct live_lease {
  std::vector<boost::json::object> lines;
};

struct live_history {
  protocol::policy policy;
  std::map<std::string, live_lease> leases;
};

/// Fails the test when the file is malformed.
live_history run_live(const std::filesystem::path& file);

/// All scenario files of the tree.
std::vector<std::filesystem::path> scenario_files();

}  // namespace leasehold::tests
