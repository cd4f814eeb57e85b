// How a subcommand joins the program: one file, one function, one line in subcommands.def.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "tools/exit_codes.hpp"

namespace leasehold::tools {

/// What all subcommands share. `--url`, `--token-file` and `--json` are options of the program
/// itself and may stand before or after the subcommand's name.
struct command_line {
  std::string url = "http://127.0.0.1:7878";  ///< one, or several with commas between
  std::string token_file;                     ///< empty: LEASEHOLD_TOKEN_FILE, else none
  std::string ca_file;    ///< trusted certificates for https; empty: the system's
  std::string cert_file;  ///< client certificate for https, with key_file; empty: none
  std::string key_file;
  bool json = false;
  std::vector<std::string> words;    ///< all of it as typed, without the program's name
  exit_code result = exit_code::ok;  ///< what the process returns; a subcommand's callback sets it
};

// Each adds its subcommand to the program. Options live in a shared_ptr that the callback holds;
// the callback runs after everything was parsed, and sets `line.result`.
#define LEASEHOLD_SUBCOMMAND(name) void add_##name(CLI::App& app, command_line& line);
#include "tools/subcommands.def"
#undef LEASEHOLD_SUBCOMMAND

/// Adds "-- CMD ARGS..." to a subcommand. After the parsing, `into` has the words behind "--" as
/// they were typed: the parser itself takes one such as "[a,b]" for a list.
void add_command_words(CLI::App& command, command_line& line, std::vector<std::string>& into);

/// The program with all its subcommands; `line` must outlive it.
void build_program(CLI::App& app, command_line& line);

}  // namespace leasehold::tools
