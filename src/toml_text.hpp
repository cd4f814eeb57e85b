// Files written in TOML: read whole, and the words for where one of them is wrong.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <variant>

namespace leasehold::server {

/// "FILE, line N", as the sentences about a file begin.
std::string place_of(const std::string& name, const toml::source_region& where);

/// The content as a table, or the one sentence about what in it is no TOML. `name` is how the file
/// is called in sentences.
std::variant<toml::table, std::string> parse_toml(std::string_view content,
                                                  const std::string& name);

}  // namespace leasehold::server
