// `leasehold rebuild`: every job again, from exported evidence lines and nothing else.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "src/http_api_job.hpp"
#include "tools/api.hpp"
#include "tools/rebuilt_jobs.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct rebuild_options {
  std::string rows_file = "-";
  std::string jobs_file;
};

/// Hands on the object of each line; complains about the first that is none.
exit_code each_object(const std::string& path,
                      const std::function<exit_code(const json::object&)>& take) {
  std::ifstream file;
  if (path != "-") file.open(path);
  std::istream& from = path == "-" ? std::cin : file;
  if (!from) return complain(exit_code::malformed, fmt::format("cannot read {}", path));
  std::int64_t number = 0;
  for (std::string line; std::getline(from, line);) {
    ++number;
    boost::system::error_code error;
    const auto value = json::parse(line, error);
    if (error || !value.is_object()) {
      return complain(exit_code::malformed,
                      fmt::format("{} line {} is no JSON object", path, number));
    }
    if (const auto result = take(value.get_object()); result != exit_code::ok) return result;
  }
  return exit_code::ok;
}

/// The members that differ, one line each. A member that only one side has differs.
std::int64_t print_differences(const std::string& job, const json::object& rebuilt,
                               const json::object& shown) {
  std::int64_t differences = 0;
  const auto differ = [&](std::string_view name, const std::string& ours,
                          const std::string& theirs) {
    ++differences;
    fmt::print("{}: {} is {}, from the rows follows {}\n", printable(job), name, printable(theirs),
               printable(ours));
  };
  for (const auto& [name, value] : rebuilt) {
    const auto* other = shown.if_contains(name);
    if (other == nullptr || *other != value) {
      differ(name, json::serialize(value), other == nullptr ? "missing" : json::serialize(*other));
    }
  }
  for (const auto& [name, value] : shown) {
    if (!rebuilt.contains(name)) differ(name, "nothing", json::serialize(value));
  }
  return differences;
}

/// Compares with what the coordinator showed, job by job and field by field.
exit_code compare(const rebuilt_jobs& rebuilt, const rebuild_options& chosen) {
  std::int64_t jobs = 0;
  std::int64_t fields = 0;
  std::int64_t differences = 0;
  auto ours = rebuilt.jobs();
  const auto result = each_object(chosen.jobs_file, [&](json::object shown) {
    const auto id = text_in(shown, "job_id");
    // Payloads are not in the evidence, only their hashes.
    shown.erase("payload");
    shown.erase("payload_base64");
    const auto found = ours.find(id);
    ++jobs;
    fields += static_cast<std::int64_t>(shown.size());
    if (found == ours.end()) {
      ++differences;
      fmt::print("{}: no row tells of it\n", printable(id));
      return exit_code::ok;
    }
    differences += print_differences(id, found->second, shown);
    ours.erase(found);
    return exit_code::ok;
  });
  if (result != exit_code::ok) return result;
  for (const auto& [id, job] : ours) {
    ++differences;
    fmt::print("{}: the rows tell of it, {} does not\n", printable(id), chosen.jobs_file);
  }
  fmt::print("{} jobs and {} fields compared, {} differ\n", jobs, fields, differences);
  return differences == 0 ? exit_code::ok : exit_code::differs;
}

exit_code rebuild(const rebuild_options& chosen) {
  rebuilt_jobs rebuilt;
  const auto result = each_object(chosen.rows_file, [&](const json::object& line) {
    const auto fault = rebuilt.take(line);
    return fault ? complain(exit_code::malformed, *fault) : exit_code::ok;
  });
  if (result != exit_code::ok) return result;
  const auto wrong = rebuilt.wrong_rows();
  for (const auto& each : wrong) {
    fmt::print(stderr, "row {}: {}: {}\n", each.row.value, each.column, printable(each.sentence));
  }
  if (!wrong.empty())
    return complain(exit_code::differs, "a decision does not follow from its inputs");
  if (!chosen.jobs_file.empty()) return compare(rebuilt, chosen);
  for (const auto& [id, job] : rebuilt.jobs()) print_json(job);
  return exit_code::ok;
}

}  // namespace

void add_rebuild(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<rebuild_options>();
  auto* command = app.add_subcommand(
      "rebuild", "Every job again, from exported evidence lines and nothing else");
  command
      ->add_option("rows", chosen->rows_file,
                   "JSON lines of `leasehold export`; - reads standard input")
      ->capture_default_str();
  command->add_option("--jobs", chosen->jobs_file,
                      "Compare with these lines of `leasehold jobs --all --json`; exits 1 when a "
                      "field differs");
  command->footer(
      "Asks no coordinator and opens no store. Prints each job as GET /v1/jobs/ID would, without "
      "its\n"
      "payload, which is not in the evidence.\n"
      "Examples:\n"
      "  leasehold export > rows.jsonl\n"
      "  leasehold jobs --all --json > jobs.jsonl\n"
      "  leasehold rebuild rows.jsonl --jobs jobs.jsonl");
  command->callback([&line, chosen] { line.result = rebuild(*chosen); });
}

}  // namespace leasehold::tools
