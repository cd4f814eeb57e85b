// `leasehold reasons`: what each reason means; docs/REASONS.md is what --markdown prints.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "leasehold/protocol/reason.hpp"
#include "tools/json_fields.hpp"
#include "tools/output.hpp"
#include "tools/reasons.hpp"
#include "tools/subcommands.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

void print_table() {
  table shown({"REASON", "NUMBER", "CLASS", "STATUS", "MEANING"});
  for (const auto& entry : protocol::all_reasons()) {
    shown.add({std::string(entry.word), std::to_string(entry.number),
               std::string(protocol::word(entry.refusal_class)), std::to_string(entry.http_status),
               std::string(entry.text)});
  }
  write_out(shown.text());
}

void print_lines() {
  for (const auto& entry : protocol::all_reasons()) {
    print_json({{"reason", entry.word},
                {"number", entry.number},
                {"class", protocol::word(entry.refusal_class)},
                {"status", entry.http_status},
                {"text", entry.text}});
  }
}

}  // namespace

void add_reasons(CLI::App& app, command_line& line) {
  auto as_page = std::make_shared<bool>(false);
  auto* command = app.add_subcommand("reasons", "What each reason means");
  command->add_flag("--markdown", *as_page, "As docs/REASONS.md");
  command->footer(
      "Examples:\n  leasehold reasons\n  leasehold reasons --markdown > docs/REASONS.md");
  command->callback([&line, as_page] {
    if (*as_page) {
      write_out(reasons_page());
    } else if (line.json) {
      print_lines();
    } else {
      print_table();
    }
  });
}

}  // namespace leasehold::tools
