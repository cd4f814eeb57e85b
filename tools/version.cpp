// `leasehold version`: which program, which rules, which formats.
#include "leasehold/protocol/rules.hpp"
#include "tools/output.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {

void add_version(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("version", "Print the versions of the program and its rules");
  command->callback([&line] {
    if (line.json) {
      print("{{\"leasehold\": \"{}\", \"rule_version\": {}}}\n", LEASEHOLD_VERSION,
            protocol::rule_version);
    } else {
      print("leasehold {} (rules {})\n", LEASEHOLD_VERSION, protocol::rule_version);
    }
  });
}

}  // namespace leasehold::tools
