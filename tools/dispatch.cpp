// `leasehold dispatch`: the side effects of cancels, looked at and acted on.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/protocol/dispatch.hpp"
#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/dispatch_text.hpp"
#include "tools/listing.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct list_options {
  std::vector<std::string> statuses;
  std::string stage;
  std::int64_t limit = 100;
  bool all = false;
};

struct dispatch_options {
  std::string job;
  std::string reason;
};

constexpr std::int64_t page_size = 64;
constexpr std::size_t status_column = 1;

std::string page_target(const list_options& chosen, std::int64_t size, const std::string& token) {
  query target("/v1/dispatches");
  for (const auto& status : chosen.statuses) target.add("status", status);
  target.add("stage", chosen.stage).add("page_size", std::to_string(size)).add("page_token", token);
  return target.target();
}

exit_code each_dispatch(api& coordinator, const list_options& chosen,
                        const std::function<void(const json::object&)>& take) {
  listing what{"dispatches", page_size, chosen.limit, chosen.all, {}};
  what.target = [&](std::int64_t size, const std::string& token) {
    return page_target(chosen, size, token);
  };
  return each_listed(coordinator, what, take);
}

exit_code list(api& coordinator, const list_options& chosen) {
  if (coordinator.line().json) return each_dispatch(coordinator, chosen, print_json);
  table shown({"JOB", "STATUS", "STAGE", "LAST RESULT", "GEN", "CLAIMS", "NEXT ATTEMPT", "SINCE"});
  shown.colour_column(status_column);
  const auto result = each_dispatch(
      coordinator, chosen, [&](const json::object& one) { shown.add(dispatch_cells(one)); });
  if (result == exit_code::ok) write_out(shown.text());
  return result;
}

std::string path_of(const std::string& job, std::string_view verb = {}) {
  // job_path knows how an id stands in a path.
  constexpr std::string_view jobs = "/v1/jobs";
  return "/v1/dispatches" + job_path(job, verb).substr(jobs.size());
}

exit_code show(api& coordinator, const dispatch_options& chosen) {
  return coordinator.get(path_of(chosen.job), [&](const json::object& answer) {
    if (coordinator.line().json) {
      print_json(answer);
    } else {
      write_out(describe_dispatch(answer));
    }
    return exit_code::ok;
  });
}

exit_code operate(api& coordinator, const dispatch_options& chosen, std::string_view verb) {
  json::object body{{"request_id", fresh_request_id()}};
  if (!chosen.reason.empty()) body["reason"] = chosen.reason;
  return coordinator.post(path_of(chosen.job, verb), body, [&](const json::object& answer) {
    if (coordinator.line().json) {
      print_json(answer);
      return exit_code::ok;
    }
    const auto& now = object_in(answer, "dispatch");
    write_out(printable(fmt::format("{}: now {} in the stage {}", text_in(now, "job_id"),
                                    text_in(now, "status"), text_in(now, "stage"))) +
              '\n');
    return exit_code::ok;
  });
}

template <class Words>
std::vector<std::string> texts_of(const Words& values) {
  std::vector<std::string> out;
  for (const auto each : values) out.emplace_back(protocol::word(each));
  return out;
}

void add_list(CLI::App& command, command_line& line) {
  auto chosen = std::make_shared<list_options>();
  auto* verb = command.add_subcommand("list", "List them");
  verb->add_option("--status", chosen->statuses, "Only in this status; may stand more than once")
      ->allow_extra_args(false)
      ->check(CLI::IsMember(texts_of(protocol::all_dispatch_statuses)));
  verb->add_option("--stage", chosen->stage, "Only in this stage")
      ->check(CLI::IsMember(texts_of(protocol::all_dispatch_stages)));
  verb->add_option("--limit", chosen->limit, "Show at most so many")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb->add_flag("--all", chosen->all, "Show all");
  verb->callback([&line, chosen] {
    line.result = api::open(line, [&](api& coordinator) { return list(coordinator, *chosen); });
  });
}

CLI::App* add_verb(CLI::App& command, command_line& line,
                   const std::shared_ptr<dispatch_options>& chosen, const std::string& name,
                   const std::string& what, std::function<exit_code(api&)> run) {
  auto* verb = command.add_subcommand(name, what);
  verb->add_option("job", chosen->job, "The job's id")->required()->check(find_id_fault);
  verb->callback([&line, run = std::move(run)] { line.result = api::open(line, run); });
  return verb;
}

}  // namespace

void add_dispatch(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("dispatch", "Look at the side effects of cancels");
  command->require_subcommand(1);
  add_list(*command, line);
  auto chosen = std::make_shared<dispatch_options>();
  add_verb(*command, line, chosen, "show", "Why one stands where it does, and what to check",
           [chosen](api& c) { return show(c, *chosen); });
  add_verb(*command, line, chosen, "retry", "Let a dispatcher try again at once (operator)",
           [chosen](api& c) { return operate(c, *chosen, ":retry"); })
      ->add_option("--reason", chosen->reason, "Why, for the log");
  add_verb(*command, line, chosen, "resolve", "Say that nothing is left to stop (operator)",
           [chosen](api& c) { return operate(c, *chosen, ":resolve"); })
      ->add_option("--reason", chosen->reason, "How that is known, for the log")
      ->required();
  command->footer(
      "A resolve ends the dispatch and not the job: 'leasehold job reconcile' says how its work "
      "ended.\n"
      "Examples:\n"
      "  leasehold dispatch list --status blocked\n"
      "  leasehold dispatch show resize-17\n"
      "  leasehold dispatch retry resize-17\n"
      "  leasehold dispatch resolve resize-17 --reason 'the machine was switched off'");
}

}  // namespace leasehold::tools
