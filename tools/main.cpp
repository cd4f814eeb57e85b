// leasehold: the program for people and scripts. Everything is in tools/*.cpp.
#include "tools/subcommands.hpp"

int main(int argc, char** argv) {
  CLI::App app;
  leasehold::tools::command_line line;
  leasehold::tools::build_program(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    const bool asked_for_help = app.exit(wrong) == 0;
    return asked_for_help ? 0 : static_cast<int>(leasehold::tools::exit_code::malformed);
  }
  return static_cast<int>(line.result);
}
