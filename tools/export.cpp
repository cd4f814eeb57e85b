// `leasehold export`: every evidence row of the tenant as JSON lines.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

struct export_options {
  std::int64_t from = 1;
};

/// Page after page until one is empty.
exit_code export_rows(api& coordinator, const export_options& chosen) {
  std::int64_t from = chosen.from;
  for (;;) {
    query target("/v1/evidence");
    target.add("from", std::to_string(from));
    std::int64_t rows = 0;
    std::int64_t next = 0;
    const auto result = coordinator.page(
        target.target(),
        [&](std::string_view line) {
          fmt::print("{}\n", line);
          ++rows;
          return true;
        },
        next);
    if (result != exit_code::ok || rows == 0 || next <= from) return result;
    from = next;
  }
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
