// `leasehold export`: every evidence row of the tenant as JSON lines.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/evidence_pages.hpp"
#include "tools/output.hpp"

namespace leasehold::tools {
namespace {

struct export_options {
  std::int64_t from = 1;
};

/// All rows up to where the log ended at the beginning.
exit_code export_rows(api& coordinator, const export_options& chosen) {
  std::int64_t newest = 0;
  const auto asked = ask_newest_row(coordinator, newest);
  if (asked != exit_code::ok) return asked;
  return each_row(coordinator, {chosen.from, newest}, [](std::string_view line) {
    print("{}\n", line);
    return !output_is_lost();
  });
}

}  // namespace

void add_export(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<export_options>();
  auto* command = app.add_subcommand("export", "Every evidence row as JSON lines");
  command->add_option("--from", chosen->from, "Begin with this row")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53))
      ->capture_default_str();
  command->footer(
      "Examples:\n  leasehold export > rows.jsonl\n  leasehold export --from 120001 >> rows.jsonl");
  command->callback([&line, chosen] {
    line.result = api::open(line, [&](api& c) { return export_rows(c, *chosen); });
  });
}

}  // namespace leasehold::tools
