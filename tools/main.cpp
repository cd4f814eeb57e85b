// leasehold: the program for people and scripts. Everything is in tools/*.cpp.
#include <algorithm>
#include <sstream>

#include "src/store/hidden_passwords.hpp"
#include "tools/output.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {
namespace {

/// A caller of `exec` reads its code as that of a command, where 2 is nothing special.
exit_code usage_code(const CLI::App& app) {
  return app.got_subcommand("exec") ? exit_code::exec_failed : exit_code::malformed;
}

exit_code run(int argc, char** argv) {
  CLI::App app;
  command_line line;
  line.words.assign(argv + std::min(argc, 1), argv + argc);
  build_program(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    std::ostringstream out;
    std::ostringstream error;
    const bool asked_for_help = app.exit(wrong, out, error) == 0;
    write_out(out.str());
    write_error(storage::hide_passwords(error.str()));
    return asked_for_help ? exit_code::ok : usage_code(app);
  }
  return line.result;
}

}  // namespace
}  // namespace leasehold::tools

int main(int argc, char** argv) {
  leasehold::tools::begin_output();
  return static_cast<int>(leasehold::tools::finish_output(leasehold::tools::run(argc, argv)));
}
