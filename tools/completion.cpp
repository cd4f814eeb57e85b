// `leasehold completion bash`: made from the program's own options, so that it cannot fall behind
// them.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tools/output.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tools {
namespace {

/// The words that may stand after `path` ("leasehold job", for instance).
std::string words_of(const CLI::App& command) {
  std::string words;
  for (const auto* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    words += inner->get_name() + ' ';
  }
  for (const auto* at = &command; at != nullptr; at = at->get_parent()) {
    for (const auto* option : at->get_options()) {
      for (const auto& name : option->get_lnames()) words += "--" + name + ' ';
    }
  }
  return words;
}

void add_cases(const CLI::App& command, const std::string& path, std::string& out) {
  out += fmt::format("    '{}') words='{}' ;;\n", path, words_of(command));
  for (const auto* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    add_cases(*inner, path + ' ' + inner->get_name(), out);
  }
}

std::string subcommand_pattern(const CLI::App& command) {
  std::string out;
  for (const auto* inner : command.get_subcommands([](const CLI::App*) { return true; })) {
    out += (out.empty() ? "" : "|") + inner->get_name();
    if (const auto deeper = subcommand_pattern(*inner); !deeper.empty()) out += '|' + deeper;
  }
  return out;
}

std::string bash_script(const CLI::App& app) {
  std::string cases;
  add_cases(app, "leasehold", cases);
  return fmt::format(
      R"(# bash completion for leasehold; load it with: source <(leasehold completion bash)
_leasehold() {{
  local word path=leasehold words='' current="${{COMP_WORDS[COMP_CWORD]}}"
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in
      {0}) path="$path $word" ;;
    esac
  done
  case "$path" in
{1}  esac
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
    --*file|--data|--lines|--token-hook) COMPREPLY=($(compgen -f -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  esac
}}
complete -o default -F _leasehold leasehold
)",
      subcommand_pattern(app), cases);
}

}  // namespace

void add_completion(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->require_subcommand(1);
  auto* bash = command->add_subcommand("bash", "For bash: source <(leasehold completion bash)");
  bash->callback([&app, &line] {
    write_out(bash_script(app));
    line.result = exit_code::ok;
  });
}

}  // namespace leasehold::tools
