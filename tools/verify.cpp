// `leasehold verify`: every decision again, from what is stored or was exported.
#include "tools/verify.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/chosen_store.hpp"
#include "tools/evidence_pages.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

struct verify_options {
  chosen_store place;
  std::string lines;
  std::string jobs;
  std::string records;
  std::string head;
  bool head_given = false;
  std::size_t most = 20;
};

/// An empty log follows from nothing: whoever asks for a proof is not told that there is one.
exit_code nothing_to_prove(std::string_view where, bool as_json) {
  if (as_json) print_json({{"proven", false}, {"rows", 0}});
  return complain(exit_code::differs,
                  fmt::format("{} has no row: there is nothing to prove", printable(where)));
}

exit_code verify_store(const verify_options& chosen, bool as_json) {
  storage::store_place where;
  if (const auto found = chosen.place.find(where); found != exit_code::ok) return found;
  storage::verify_options how;
  how.most_problems = chosen.most;
  if (chosen.head_given) {
    how.head = storage::head_from_text(chosen.head);
    if (!how.head) {
      return complain(exit_code::malformed,
                      fmt::format("--head \"{}\" is not ROW:HASH as 'leasehold head' prints it",
                                  printable(chosen.head)));
    }
  }
  std::optional<progress_bar> bar;
  how.progress = [&bar](std::int64_t done, std::int64_t all) {
    if (!bar) bar.emplace("rows", all);
    bar->show(done);
  };
  const auto result = storage::verify_store(where, how);
  bar.reset();
  if (const auto* fault = std::get_if<actors::store_error>(&result)) return complain_about(*fault);
  const auto& report = std::get<storage::verify_report>(result);
  if (report.rows == 0 && report.proven())
    return nothing_to_prove(chosen.place.store.empty() ? chosen.place.data : storage::shown(where),
                            as_json);
  return print_verdict(report, storage::beyond_a_store(), as_json);
}

/// Hands on each line of a file, or of standard input for "-", until `use` finds one wrong and says
/// how. Lines without content are left out.
exit_code each_line(const std::string& path,
                    const std::function<std::optional<std::string>(const std::string&)>& use) {
  std::ifstream file;
  if (path != "-") file.open(path);
  std::istream& in = path == "-" ? std::cin : file;
  std::int64_t number = 0;
  std::string line;
  while (true) {
    const auto read = read_line(in, line, line_limit);
    if (read == line_read::none) break;
    ++number;
    if (read == line_read::too_long) {
      return complain(exit_code::malformed, fmt::format("{}, line {}: it has more than {} bytes",
                                                        printable(path), number, line_limit));
    }
    if (line.empty()) continue;
    if (const auto wrong = use(line)) {
      return complain(exit_code::malformed,
                      fmt::format("{}, line {}: {}", printable(path), number, printable(*wrong)));
    }
  }
  // A folder can be opened, but not read; a file that is not there fails before its first line.
  if (!in.bad() && (path == "-" || file.is_open())) return exit_code::ok;
  return complain(exit_code::malformed, fmt::format("{} cannot be read", printable(path)));
}

using job_names = std::set<std::string>;

/// Compares each job of a file, one JSON object a line, as `leasehold jobs --json` writes them, and
/// adds its name to `shown`.
exit_code compare_jobs(const std::string& path, storage::line_verifier& verifier,
                       job_names& shown) {
  return each_line(path, [&](const std::string& line) -> std::optional<std::string> {
    boost::system::error_code failed;
    const auto job = boost::json::parse(line, failed);
    if (failed || !job.is_object()) return "this is not a JSON object";
    verifier.compare_job(job.get_object());
    shown.insert(text_in(job.get_object(), "job_id"));
    return std::nullopt;
  });
}

/// A coordinator shows every job that it has not forgotten.
void report_missing(const job_names& shown, const storage::line_verifier& verifier,
                    storage::problem_list& problems) {
  for (const auto& [key, image] : verifier.records()) {
    const auto& job = image.state.job.value;
    if (image.state.kind != protocol::lease_kind::job || shown.contains(job)) continue;
    problems.add(image.last_row, "job_id", "job '" + job + "' is not among the jobs given");
  }
}

/// Writes every record that was rebuilt, one JSON object a line.
exit_code write_records(const std::string& path, const storage::line_verifier& verifier) {
  std::ofstream file(path);
  for (const auto& [key, image] : verifier.records()) {
    auto record = storage::record_json(image.state);
    record["tenant"] = key.tenant.value;
    record["row"] = image.last_row.value;
    file << boost::json::serialize(record) << '\n';
  }
  file.flush();
  if (file) return exit_code::ok;
  return complain(exit_code::broken, fmt::format("{} cannot be written", printable(path)));
}

exit_code conclude(const verify_options& chosen, storage::line_verifier& verifier, bool as_json) {
  job_names shown;
  if (!chosen.jobs.empty()) {
    const auto compared = compare_jobs(chosen.jobs, verifier, shown);
    if (compared != exit_code::ok) return compared;
  }
  if (!chosen.records.empty()) {
    const auto written = write_records(chosen.records, verifier);
    if (written != exit_code::ok) return written;
  }
  auto report = verifier.finish();
  storage::problem_list problems(report, chosen.most);
  if (!chosen.jobs.empty()) report_missing(shown, verifier, problems);
  return print_verdict(report, storage::beyond_lines(), as_json);
}

exit_code verify_lines(const verify_options& chosen, bool as_json) {
  storage::line_verifier verifier(chosen.most);
  bool has_rows = false;
  const auto read = each_line(chosen.lines, [&](const std::string& line) {
    has_rows = true;
    return verifier.feed(line);
  });
  if (read != exit_code::ok) return read;
  return has_rows ? conclude(chosen, verifier, as_json) : nothing_to_prove(chosen.lines, as_json);
}

/// Reads the evidence of a running coordinator as far as it went at the beginning.
exit_code verify_url(const verify_options& chosen, const command_line& line) {
  return api::open(line, [&](api& coordinator) {
    std::int64_t newest = 0;
    const auto asked = ask_newest_row(coordinator, newest);
    if (asked != exit_code::ok) return asked;
    storage::line_verifier verifier(chosen.most);
    bool has_rows = false;
    progress_bar bar("rows", newest);
    const auto read = each_row(
        coordinator, {1, newest},
        [&](std::string_view text) {
          has_rows = true;
          verifier.feed(text);
          return true;
        },
        [&](std::int64_t row) { bar.show(row); });
    bar.finish();
    if (read != exit_code::ok) return read;
    return has_rows ? conclude(chosen, verifier, line.json)
                    : nothing_to_prove("the log", line.json);
  });
}

exit_code verify(const verify_options& chosen, const command_line& line) {
  if (chosen.head_given && !chosen.place.is_given()) {
    return complain(exit_code::malformed, "--head needs the store itself: give --data or --store");
  }
  if (chosen.place.is_given()) return verify_store(chosen, line.json);
  if (!chosen.lines.empty()) return verify_lines(chosen, line.json);
  return verify_url(chosen, line);
}

}  // namespace

void add_verify(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<verify_options>();
  auto* command = app.add_subcommand("verify", "Prove every decision again from the evidence");
  const auto stored = add_chosen_store(*command, chosen->place,
                                       "Read this data directory, also while leaseholdd runs");
  auto* lines = command->add_option("--lines", chosen->lines,
                                    "Read exported JSON lines from this file, or - for stdin");
  stored.data->excludes(lines);
  stored.store->excludes(lines);
  auto* head = command->add_option("--head", chosen->head, "ROW:HASH that the log must extend");
  command
      ->add_option("--jobs", chosen->jobs,
                   "Compare the records rebuilt from lines with these jobs (JSON lines), which "
                   "must be all")
      ->excludes(stored.data)
      ->excludes(stored.store);
  command->add_option("--records", chosen->records, "Write the records rebuilt from lines here")
      ->excludes(stored.data)
      ->excludes(stored.store);
  command->add_option("--most", chosen->most, "Show at most so many problems")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->footer(
      "Without --data, --store and --lines the evidence of the coordinator at --url is read.\n"
      "Exit codes: 0 proven, 1 something does not follow or there is no row, 2 wrong usage, no "
      "store, or a line that is no row, 6 the store cannot be read.\n"
      "Examples:\n"
      "  leasehold verify --data /var/lib/leasehold --head \"$(cat head.kept)\"\n"
      "  leasehold verify --store postgres://leasehold@db.example/leasehold\n"
      "  leasehold export > rows.jsonl && leasehold jobs --all --json > jobs.jsonl\n"
      "  leasehold verify --lines rows.jsonl --jobs jobs.jsonl");
  command->callback([&line, chosen, head] {
    // An empty --head is a file that was not there, and no reason to prove less.
    chosen->head_given = head->count() > 0;
    line.result = verify(*chosen, line);
  });
}

}  // namespace leasehold::tools
