// `leasehold jobs`: the list, page after page.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/job_text.hpp"
#include "tools/listing.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct list_options {
  std::string queue;
  std::string state;
  std::vector<std::string> labels;
  std::int64_t limit = 100;
  bool all = false;
  bool count = false;
  std::string wait;
  std::int64_t settled = 0;
};

constexpr std::int64_t page_size = 500;

std::string page_target(const list_options& chosen, std::int64_t size, const std::string& token) {
  query target("/v1/jobs");
  target.add("queue", chosen.queue).add("state", chosen.state);
  for (const auto& label : chosen.labels) target.add("label", label);
  target.add("page_size", std::to_string(size)).add("page_token", token);
  return target.target();
}

std::vector<std::string> cells_of(const json::object& job) {
  const auto result = text_in(job, "terminal_result");
  return {
      cell_in(job, "job_id"),          cell_in(job, "queue"),
      cell_in(job, "state"),           cell_in(job, "generation"),
      cell_in(job, "attempt"),         cell_in(job, "priority"),
      cell_in(job, "holder_identity"), result == "none" ? cell_in(job, "progress_value") : result};
}

exit_code each_job(api& coordinator, const list_options& chosen,
                   const std::function<void(const json::object&)>& take) {
  const bool whole = chosen.all || chosen.count || !chosen.wait.empty();
  listing what{"jobs", page_size, chosen.limit, whole, {}};
  what.target = [&](std::int64_t size, const std::string& token) {
    return page_target(chosen, size, token);
  };
  return each_listed(coordinator, what, take);
}

exit_code list(api& coordinator, const list_options& chosen) {
  if (coordinator.line().json) return each_job(coordinator, chosen, print_json);
  table shown(
      {"JOB", "QUEUE", "STATE", "GEN", "ATTEMPT", "PRIORITY", "HOLDER", "RESULT OR PROGRESS"});
  shown.colour_column(2);
  const auto result =
      each_job(coordinator, chosen, [&](const json::object& job) { shown.add(cells_of(job)); });
  if (result == exit_code::ok) write_out(shown.text());
  return result;
}

using state_counts = std::map<std::string, std::int64_t>;

exit_code count_states(api& coordinator, const list_options& chosen, state_counts& by_state) {
  return each_job(coordinator, chosen,
                  [&](const json::object& job) { ++by_state[text_in(job, "state")]; });
}

/// Shows a bar until so many are settled that were asked for. A coordinator that is away for a
/// moment is waited for.
exit_code wait_for_all(api& coordinator, const list_options& chosen) {
  const auto limit = read_length_ms(chosen.wait);
  if (!limit) {
    return complain(
        exit_code::malformed,
        fmt::format("--wait \"{}\" is not a length of time such as 90s or 10m", chosen.wait));
  }
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::milliseconds(*limit);
  coordinator.tolerate_absence();
  progress_bar bar("settled", 0);
  while (clock::now() < end) {
    state_counts states;
    const auto result = count_states(coordinator, chosen, states);
    if (result != exit_code::ok && result != exit_code::unreachable) return result;
    if (result == exit_code::ok) {
      std::int64_t total = 0;
      std::int64_t settled = 0;
      std::string note;
      for (const auto& [state, jobs] : states) {
        total += jobs;
        if (is_settled_word(state)) settled += jobs;
        note += fmt::format("{}{} {}", note.empty() ? "" : ", ", jobs, state);
      }
      bar.expect(total);
      bar.show(settled, printable(note));
      if (settled >= (chosen.settled > 0 ? chosen.settled : total)) return exit_code::ok;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  bar.finish();
  return complain(exit_code::differs, fmt::format("not settled within {}", chosen.wait));
}

/// How many jobs are in each state.
exit_code count(api& coordinator, const list_options& chosen) {
  state_counts by_state;
  const auto result = count_states(coordinator, chosen, by_state);
  if (result != exit_code::ok) return result;
  if (coordinator.line().json) {
    json::object out;
    for (const auto& [state, jobs] : by_state) out[state] = jobs;
    print_json(out);
    return exit_code::ok;
  }
  table shown({"STATE", "JOBS"});
  shown.colour_column(0);
  for (const auto& [state, jobs] : by_state) shown.add({state, std::to_string(jobs)});
  write_out(shown.text());
  return exit_code::ok;
}

}  // namespace

void add_jobs(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<list_options>();
  auto* command = app.add_subcommand("jobs", "List jobs, or count them by state");
  command->add_option("--queue", chosen->queue, "Only of this queue");
  command->add_option("--state", chosen->state, "Only in this state, for instance active");
  command->add_option("--label", chosen->labels, "Only with this KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--limit", chosen->limit, "Show at most so many")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--all", chosen->all, "Show all");
  command->add_flag("--count", chosen->count, "Count them by state instead");
  command->add_option("--wait", chosen->wait, "Wait, at most that long, until all are settled");
  command->add_option("--settled", chosen->settled, "With --wait: until so many are settled")
      ->needs("--wait");
  command->footer(
      "Examples:\n"
      "  leasehold jobs --state unresolved\n"
      "  leasehold jobs --queue resize --count\n"
      "  leasehold jobs --queue resize --wait 10m\n"
      "  leasehold jobs --all --json > jobs.jsonl");
  command->callback([&line, chosen] {
    line.result = api::open(line, [&](api& coordinator) {
      if (!chosen->wait.empty()) return wait_for_all(coordinator, *chosen);
      return chosen->count ? count(coordinator, *chosen) : list(coordinator, *chosen);
    });
  });
}

}  // namespace leasehold::tools
