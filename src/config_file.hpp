// The configuration file: TOML into settings, each with the line it stands in.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/config_keys.hpp"

namespace leasehold::server {

/// What could not be read, in one sentence that names the file and the line.
struct config_fault {
  std::string sentence;
};

/// `name` is how the file is called in sentences.
std::variant<std::vector<setting>, config_fault> parse_config(std::string_view content,
                                                              const std::string& name);
std::variant<std::vector<setting>, config_fault> read_config_file(const std::string& path);

}  // namespace leasehold::server
