// The frame of the program: its global options and the list of its subcommands.
#include "tools/subcommands.hpp"

namespace leasehold::tools {

void build_program(CLI::App& app, command_line& line) {
  app.name("leasehold");
  app.description("Talk to a Leasehold coordinator, work for it, and check what it decided.");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--url", line.url, "Where the coordinator answers")
      ->envname("LEASEHOLD_URL")
      ->capture_default_str();
  app.add_option("--token-file", line.token_file, "File that holds the bearer token")
      ->envname("LEASEHOLD_TOKEN_FILE");
  app.add_option("--ca-file", line.ca_file, "Certificates to trust for https (PEM)")
      ->envname("LEASEHOLD_CA_FILE");
  app.add_flag("--json", line.json, "Print JSON: one document, or one a line for lists");
#define LEASEHOLD_SUBCOMMAND(name) add_##name(app, line);
#include "tools/subcommands.def"
#undef LEASEHOLD_SUBCOMMAND
}

}  // namespace leasehold::tools
