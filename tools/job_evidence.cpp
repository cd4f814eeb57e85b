// `leasehold job evidence`: the evidence matrix of one job, in four forms.
#include "tools/job_evidence.hpp"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/evidence_rows.hpp"
#include "tools/job_text.hpp"
#include "tools/output.hpp"
#include "tools/scenario_export.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct evidence_options {
  std::string job;
  bool csv = false;
  bool as_scenario = false;
};

exit_code print_scenario(api& coordinator, const std::string& job, std::vector<json::object> rows) {
  return coordinator.get(job_path(job), [&](const json::object& answer) {
    const auto& policy = object_in(job_in(answer), "policy");
    auto scenario = scenario_of(std::move(rows), policy, "history of " + job);
    if (const auto* why = std::get_if<not_exportable>(&scenario)) {
      return complain(exit_code::differs, fmt::format("{}: {}", job, why->sentence));
    }
    write_out(std::get<std::string>(scenario));
    return exit_code::ok;
  });
}

exit_code show_evidence(api& coordinator, const evidence_options& chosen) {
  if (chosen.csv) {
    return print_csv(coordinator, job_path(chosen.job, "/evidence"));
  }
  std::vector<json::object> rows;
  const auto result = read_rows(coordinator, job_path(chosen.job, "/evidence"), rows);
  if (result != exit_code::ok) return result;
  if (chosen.as_scenario) return print_scenario(coordinator, chosen.job, std::move(rows));
  print_rows(rows, coordinator.line().json);
  return exit_code::ok;
}

}  // namespace

void add_job_evidence(CLI::App& job_command, command_line& line) {
  auto chosen = std::make_shared<evidence_options>();
  auto* verb = job_command.add_subcommand("evidence", "Everything that was decided about it");
  verb->add_option("job", chosen->job, "The job's id")->required()->check(find_id_fault);
  auto* csv = verb->add_flag("--csv", chosen->csv, "Comma-separated, all columns");
  verb->add_flag("--as-scenario", chosen->as_scenario,
                 "A scenario file that `leasehold replay --check` takes")
      ->excludes(csv);
  verb->footer("--json prints all columns, one row a line. PROTOCOL.md (9) explains the columns.");
  verb->callback([&line, chosen] {
    line.result = api::open(line, [&](api& c) { return show_evidence(c, *chosen); });
  });
}

}  // namespace leasehold::tools
