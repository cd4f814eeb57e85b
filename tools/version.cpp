// `leasehold version`: which program, which rules, which formats.
#include <fmt/format.h>

#include <cstdio>

#include "leasehold/protocol/rules.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {

void add_version(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("version", "Print the versions of the program and its rules");
  command->callback([&line] {
    const auto* shape = line.json ? "{{\"leasehold\": \"{}\", \"rule_version\": {}}}\n"
                                  : "leasehold {} (rules {})\n";
    fmt::print(fmt::runtime(shape), LEASEHOLD_VERSION, protocol::rule_version);
  });
}

}  // namespace leasehold::tools
