// `leasehold job`: one job, looked at and acted on.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/job_evidence.hpp"
#include "tools/job_text.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct job_options {
  std::string job;
  std::string request;
  std::string holder;
  std::string outcome;
  std::string detail;
  std::string reason;
  std::string wait;
  bool waits = false;
  bool force = false;
};

exit_code show(api& coordinator, const job_options& chosen) {
  if (chosen.waits) return wait_until_settled(coordinator, chosen.job, chosen.wait);
  return coordinator.get(job_path(chosen.job), [&](const json::object& answer) {
    const auto& job = job_in(answer);
    if (coordinator.line().json) {
      print_json(job);
    } else {
      write_out(describe(job));
    }
    return exit_code::ok;
  });
}

exit_code why(api& coordinator, const job_options& chosen) {
  return coordinator.get(job_path(chosen.job, ":why"), [&](const json::object& answer) {
    if (coordinator.line().json) {
      print_json(answer);
    } else {
      print("{}: {}\n", toned(printable(cell_in(answer, "word")), tone::strong),
            printable(cell_in(answer, "sentence")));
    }
    return exit_code::ok;
  });
}

/// Sends an operation and tells its decision.
exit_code operate(api& coordinator, const job_options& chosen, std::string_view operation,
                  json::object body) {
  if (!chosen.reason.empty()) body["reason"] = chosen.reason;
  body["request_id"] = chosen.request.empty() ? fresh_request_id() : chosen.request;
  const auto target = job_path(chosen.job, fmt::format(":{}", operation));
  return coordinator.post(target, body, [&](const json::object& answer) {
    if (coordinator.line().json) {
      print_json(answer);
      return exit_code::ok;
    }
    const auto& job = job_in(answer);
    write_out(printable(fmt::format("{}: {} {}; now {}", text_in(job, "job_id"),
                                    cell_in(answer, "decision"), cell_in(answer, "reason"),
                                    cell_in(job, "state"))) +
              '\n');
    return exit_code::ok;
  });
}

/// Adds one verb under `leasehold job`.
CLI::App* add_verb(CLI::App& parent, command_line& line, const std::shared_ptr<job_options>& chosen,
                   const std::string& name, const std::string& what,
                   std::function<exit_code(api&)> run) {
  auto* verb = parent.add_subcommand(name, what);
  verb->add_option("job", chosen->job, "The job's id")->required()->check(find_id_fault);
  verb->callback([&line, run = std::move(run)] { line.result = api::open(line, run); });
  return verb;
}

void add_request_option(CLI::App* verb, const std::shared_ptr<job_options>& chosen) {
  verb->add_option("--request-id", chosen->request,
                   "Makes a repeated call one request; made if absent");
}

void add_reason_option(CLI::App* verb, const std::shared_ptr<job_options>& chosen) {
  verb->add_option("--reason", chosen->reason, "Why, for the evidence");
  add_request_option(verb, chosen);
}

void add_reading_verbs(CLI::App& command, command_line& line,
                       const std::shared_ptr<job_options>& chosen) {
  auto* showing = add_verb(command, line, chosen, "show", "Where it stands",
                           [chosen](api& c) { return show(c, *chosen); });
  auto* wait =
      showing->add_option("--wait", chosen->wait,
                          "Wait until it is settled, at most that long (default 1h); exits "
                          "0 only when it completed");
  wait->expected(0, 1);
  showing->parse_complete_callback([chosen, wait] { chosen->waits = wait->count() > 0; });
  add_verb(command, line, chosen, "why", "Why it is not offered now",
           [chosen](api& c) { return why(c, *chosen); });
}

void add_acting_verbs(CLI::App& command, command_line& line,
                      const std::shared_ptr<job_options>& chosen) {
  add_reason_option(add_verb(command, line, chosen, "cancel", "Ask for its end",
                             [chosen](api& c) { return operate(c, *chosen, "cancel", {}); }),
                    chosen);
  add_request_option(add_verb(command, line, chosen, "redrive", "Submit a new job like it",
                              [chosen](api& c) { return operate(c, *chosen, "redrive", {}); }),
                     chosen);
  auto* revoking = add_verb(command, line, chosen, "revoke",
                            "End its holder's authority (operator)", [chosen](api& c) {
                              return operate(c, *chosen, "revoke", {{"force", chosen->force}});
                            });
  revoking->add_flag("--force", chosen->force,
                     "Grant it to others before the old deadline: only the fencing token protects");
  add_reason_option(revoking, chosen);
  auto* resolving = add_verb(command, line, chosen, "resolve",
                             "Close an ownership conflict (operator)", [chosen](api& c) {
                               json::object body;
                               if (!chosen->holder.empty()) body["holder"] = chosen->holder;
                               return operate(c, *chosen, "resolve", body);
                             });
  resolving->add_option("--holder", chosen->holder,
                        "Confirm this holder; without it the generation is ended");
  add_reason_option(resolving, chosen);
  auto* reconciling = add_verb(
      command, line, chosen, "reconcile", "State how it ended (operator)", [chosen](api& c) {
        return operate(c, *chosen, "reconcile",
                       {{"outcome", chosen->outcome}, {"detail", chosen->detail}});
      });
  reconciling->add_option("--outcome", chosen->outcome, "failed or cancelled")
      ->required()
      ->check(CLI::IsMember({"failed", "cancelled"}));
  reconciling->add_option("--detail", chosen->detail, "What is known, for the record");
  add_request_option(reconciling, chosen);
}

}  // namespace

void add_job(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("job", "Look at one job, or act on it");
  command->require_subcommand(1);
  auto chosen = std::make_shared<job_options>();
  add_reading_verbs(*command, line, chosen);
  add_acting_verbs(*command, line, chosen);
  add_job_evidence(*command, line);
  command->footer(
      "Examples:\n"
      "  leasehold job show resize-17 --wait 10m\n"
      "  leasehold job cancel resize-17\n"
      "  leasehold job evidence resize-17 --as-scenario > it.json && leasehold replay --check "
      "it.json");
}

}  // namespace leasehold::tools
