#include "src/toml_text.hpp"

#include "src/config_text.hpp"

namespace leasehold::server {

std::string place_of(const std::string& name, const toml::source_region& where) {
  return name + ", line " + std::to_string(where.begin.line);
}

std::variant<toml::table, std::string> parse_toml(std::string_view content,
                                                  const std::string& name) {
  try {
    return toml::parse(content, name);
  } catch (const toml::parse_error& bad) {
    return place_of(name, bad.source()) + ": " + config_text::printable(bad.description()) + ".";
  }
}

}  // namespace leasehold::server
