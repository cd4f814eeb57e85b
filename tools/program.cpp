// The frame of the program: its global options and the list of its subcommands.
#include "tools/subcommands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/config_units.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

/// The innermost command that was understood.
const CLI::App* innermost(const CLI::App* app) {
  const auto inner = app->get_subcommands();
  return inner.empty() ? app : innermost(inner.back());
}

/// The first word that was meant to be a subcommand and is none; empty: there is no such word.
std::string unknown_word(const CLI::App& program, const CLI::App& command) {
  if (command.get_subcommands([](const CLI::App*) { return true; }).empty()) return {};
  const auto left = program.remaining(true);
  const auto found =
      std::ranges::find_if(left, [](const std::string& word) { return !word.starts_with('-'); });
  return found == left.end() ? std::string() : *found;
}

std::string failure_text(const CLI::App* program, const CLI::Error& wrong) {
  const auto* command = innermost(program);
  const auto word = unknown_word(*program, *command);
  if (word.empty()) return CLI::FailureMessage::simple(program, wrong);
  std::vector<std::string> names;
  for (const auto* each : command->get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(each->get_name());
  }
  const auto nearest = server::nearest_word(word, names);
  const std::string path = command == program ? "" : " " + command->get_name();
  return fmt::format("leasehold{}: there is no subcommand \"{}\"{}\nleasehold{} --help shows all\n",
                     path, printable(word),
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest), path);
}

/// What stands behind the first "--" of the last `left` words.
std::vector<std::string> words_behind_mark(const std::vector<std::string>& words,
                                           std::size_t left) {
  const auto begin = words.end() - static_cast<std::ptrdiff_t>(std::min(left, words.size()));
  const auto mark = std::find(begin, words.end(), "--");
  return mark == words.end() ? std::vector<std::string>()
                             : std::vector<std::string>(mark + 1, words.end());
}

}  // namespace

void add_command_words(CLI::App& command, command_line& line, std::vector<std::string>& into) {
  command.add_option("command", into, "-- CMD ARGS...: what to run");
  auto typed = std::make_shared<std::vector<std::string>>();
  command.preparse_callback(
      [&line, typed](std::size_t left) { *typed = words_behind_mark(line.words, left); });
  command.parse_complete_callback([typed, &into] {
    if (!typed->empty()) into = *typed;
  });
}

void build_program(CLI::App& app, command_line& line) {
  app.name("leasehold");
  app.description("Talk to a Leasehold coordinator, work for it, and check what it decided.");
  app.require_subcommand(1);
  app.fallthrough();
  app.failure_message(failure_text);
  app.add_option("--url", line.url,
                 "Where the coordinator answers; several of one store with commas between")
      ->envname("LEASEHOLD_URL")
      ->capture_default_str();
  app.add_option("--token-file", line.token_file, "File that holds the bearer token")
      ->envname("LEASEHOLD_TOKEN_FILE");
  app.add_option("--ca-file", line.ca_file, "Certificates to trust for https (PEM)")
      ->envname("LEASEHOLD_CA_FILE");
  auto* certificate =
      app.add_option("--cert-file", line.cert_file, "Client certificate for https (PEM)")
          ->envname("LEASEHOLD_CERT_FILE");
  auto* key = app.add_option("--key-file", line.key_file, "Key of the client certificate (PEM)")
                  ->envname("LEASEHOLD_KEY_FILE")
                  ->needs(certificate);
  certificate->needs(key);
  app.add_flag("--json", line.json, "Print JSON: one document, or one a line for lists");
#define LEASEHOLD_SUBCOMMAND(name) add_##name(app, line);
#include "tools/subcommands.def"
#undef LEASEHOLD_SUBCOMMAND
}

}  // namespace leasehold::tools
