// `leasehold job evidence`: the evidence matrix of one job, in four forms.
#include "tools/job_evidence.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/job_text.hpp"
#include "tools/output.hpp"
#include "tools/scenario_export.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct evidence_options {
  std::string job;
  bool csv = false;
  bool as_scenario = false;
};

constexpr auto json_lines = "application/x-ndjson";

exit_code read_rows(api& coordinator, const std::string& job, std::vector<json::object>& rows) {
  bool broken = false;
  const auto result =
      coordinator.lines(job_path(job, "/evidence"), json_lines, [&](std::string_view line) {
        boost::system::error_code error;
        auto row = json::parse(line, error);
        broken = error || !row.is_object();
        if (!broken) rows.push_back(std::move(row.get_object()));
        return !broken;
      });
  if (broken) return complain(exit_code::broken, "a line of the evidence is no JSON object");
  return result;
}

std::string flags_of(const json::object& row) {
  std::string out;
  for (const std::string_view name :
       {"stale_generation", "late_progress", "lease_expired", "ownership_conflict"}) {
    if (flag_in(row, name)) out += (out.empty() ? "" : " ") + std::string(name);
  }
  return out;
}

/// What the frame named: its generation and, where it has one, its sequence.
std::string named_by(const json::object& row) {
  const auto generation = number_in(row, "frame_generation");
  const auto sequence = number_in(row, "frame_sequence");
  if (generation == 0) return "";
  return sequence == 0 ? fmt::format("g{}", generation)
                       : fmt::format("g{} #{}", generation, sequence);
}

std::string short_holder(const json::object& row) {
  const auto holder = text_in(row, "holder_identity");
  const auto slash = holder.find('/');
  return slash == std::string::npos ? holder : holder.substr(0, slash + 7);
}

std::string matrix_of(const std::vector<json::object>& rows) {
  table shown({"ROW", "AT", "EVENT", "NAMES", "DECISION", "REASON", "STATE", "GEN", "HOLDER",
               "RENEW", "PROGRESS", "FLAGS"});
  shown.colour_column(4);
  for (const auto& row : rows) {
    const auto progress = number_in(row, "progress_sequence");
    shown.add({cell_in(row, "row"), time_text(number_in(row, "at")), cell_in(row, "event"),
               named_by(row), cell_in(row, "decision"), cell_in(row, "reason"),
               cell_in(row, "state"), cell_in(row, "generation"), short_holder(row),
               cell_in(row, "renew_sequence"),
               progress == 0 ? "" : fmt::format("#{} {}", progress, text_in(row, "progress_value")),
               flags_of(row)});
  }
  return shown.text();
}

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
    return coordinator.lines(job_path(chosen.job, "/evidence"), "text/csv",
                             [](std::string_view line) {
                               write_line(line);
                               return !output_is_lost();
                             });
  }
  std::vector<json::object> rows;
  const auto result = read_rows(coordinator, chosen.job, rows);
  if (result != exit_code::ok) return result;
  if (chosen.as_scenario) return print_scenario(coordinator, chosen.job, std::move(rows));
  if (coordinator.line().json) {
    for (const auto& row : rows) print_json(row);
  } else {
    write_out(matrix_of(rows));
  }
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
  verb->footer("--json prints all columns, one row a line. OPERATING.md explains the columns.");
  verb->callback([&line, chosen] {
    line.result = api::open(line, [&](api& c) { return show_evidence(c, *chosen); });
  });
}

}  // namespace leasehold::tools
