// `leasehold submit`: one job, or one a line of a file.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/job_text.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct submit_options {
  std::string queue = "default";
  std::string payload;
  std::string payload_file;
  std::string lines_file;
  std::string job;
  std::string request;
  std::string not_before;
  std::string not_after;
  std::vector<std::string> labels;
  std::vector<std::string> policy;
  std::int64_t priority = 0;
  std::string wait;
  bool waits = false;
};

/// Everything but the payload and the names of one job. Sets `fault`.
json::object common_body(const submit_options& chosen, std::string& fault) {
  json::object body{{"queue", chosen.queue}};
  if (auto labels = read_labels(chosen.labels, fault); !labels.empty()) body["labels"] = labels;
  if (auto policy = read_policy(chosen.policy, fault); !policy.empty()) body["policy"] = policy;
  if (chosen.priority != 0) body["priority"] = chosen.priority;
  const auto add_instant = [&](std::string_view key, const std::string& text) {
    if (text.empty()) return;
    const auto at = read_instant_ms(text);
    if (!at)
      fault = fmt::format("--{} \"{}\" is neither +LENGTH nor ms of coordinator time", key, text);
    if (at) body[key == "not-before" ? "not_before" : "not_after"] = *at;
  };
  add_instant("not-before", chosen.not_before);
  add_instant("not-after", chosen.not_after);
  return body;
}

exit_code submit_one(api& coordinator, const submit_options& chosen, json::object body) {
  std::string fault;
  put_payload(body, chosen.payload_file.empty()
                        ? chosen.payload
                        : read_file(chosen.payload_file, payload_limit, fault));
  if (!fault.empty()) return complain(exit_code::malformed, fault);
  if (!chosen.job.empty()) body["job_id"] = chosen.job;
  body["request_id"] = chosen.request.empty() ? fresh_request_id() : chosen.request;
  return coordinator.post("/v1/jobs", body, [&](const json::object& answer) {
    const auto job = text_in(job_in(answer), "job_id");
    if (!chosen.waits) {
      if (coordinator.line().json) {
        print_json(answer);
      } else {
        print("{}\n", printable(job));
      }
      return exit_code::ok;
    }
    return wait_until_settled(coordinator, job, chosen.wait);
  });
}

/// The jobs that `--lines` names, each line a payload. A job's name and request id come from its
/// line's number, so that the same call again submits nothing twice.
exit_code submit_lines(api& coordinator, const submit_options& chosen, const json::object& common) {
  std::ifstream file;
  if (chosen.lines_file != "-") file.open(chosen.lines_file);
  std::istream& from = chosen.lines_file == "-" ? std::cin : file;
  if (!from) {
    return complain(exit_code::malformed,
                    fmt::format("{} cannot be read: name a file that you may read",
                                printable(chosen.lines_file)));
  }
  std::vector<std::string> payloads;
  std::string line;
  auto read = line_read::whole;
  while ((read = read_line(from, line, line_limit)) == line_read::whole) {
    if (!line.empty()) payloads.push_back(std::move(line));
  }
  if (read == line_read::too_long) {
    return complain(exit_code::malformed, fmt::format("{} has a line of more than {} bytes",
                                                      printable(chosen.lines_file), line_limit));
  }
  if (payloads.empty()) {
    // A folder can be opened; only reading it fails.
    return complain(exit_code::malformed,
                    fmt::format("{} {}", printable(chosen.lines_file),
                                from.bad() ? "cannot be read: name a file that you may read"
                                           : "has no line to submit"));
  }
  const auto prefix = chosen.request.empty() ? fresh_request_id() : chosen.request;
  progress_bar bar("submitting", static_cast<std::int64_t>(payloads.size()));
  std::int64_t count = 0;
  for (const auto& payload : payloads) {
    auto body = common;
    put_payload(body, payload);
    ++count;
    body["request_id"] = fmt::format("{}-{}", prefix, count);
    if (!chosen.job.empty()) body["job_id"] = fmt::format("{}-{:05}", chosen.job, count);
    const auto result = coordinator.post("/v1/jobs", body, [&](const json::object& answer) {
      if (coordinator.line().json) {
        print_json(answer);
      } else {
        print("{}\n", printable(text_in(job_in(answer), "job_id")));
      }
      return exit_code::ok;
    });
    if (result != exit_code::ok) {
      complain(result, fmt::format("stopped at line {} of {}", count, payloads.size()));
      return result;
    }
    bar.show(count);
    if (output_is_lost()) {
      return complain(exit_code::broken,
                      fmt::format("stopped after line {} of {}", count, payloads.size()));
    }
  }
  return exit_code::ok;
}

exit_code submit(const command_line& line, const submit_options& chosen) {
  std::string fault;
  const auto common = common_body(chosen, fault);
  if (!fault.empty()) return complain(exit_code::malformed, fault);
  return api::open(line, [&](api& coordinator) {
    return chosen.lines_file.empty() ? submit_one(coordinator, chosen, common)
                                     : submit_lines(coordinator, chosen, common);
  });
}

}  // namespace

void add_submit(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<submit_options>();
  auto* command = app.add_subcommand("submit", "Submit a job, or one a line of a file");
  command->add_option("--queue", chosen->queue, "Queue that workers take it from")
      ->capture_default_str();
  auto* payload =
      command->add_option("--payload", chosen->payload, "What the worker gets, at most 64 KiB");
  auto* file = command->add_option("--payload-file", chosen->payload_file,
                                   "File with the payload; - reads standard input");
  auto* lines =
      command->add_option("--lines", chosen->lines_file,
                          "Submit one job for each line of this file (- reads standard input)");
  payload->excludes(file)->excludes(lines);
  file->excludes(lines);
  command->add_option("--job", chosen->job, "Name of the job; with --lines its beginning")
      ->check(find_id_fault);
  command
      ->add_option("--label", chosen->labels, "KEY=VALUE that a worker must have; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--policy", chosen->policy, "KEY=VALUE, for instance lease_duration_ms=10s")
      ->allow_extra_args(false);
  command->add_option("--priority", chosen->priority, "Higher goes first")
      ->check(CLI::Range(-1000, 1000));
  command->add_option("--not-before", chosen->not_before, "Do not offer it before: +10m, or ms");
  command->add_option("--not-after", chosen->not_after,
                      "Cancel it when not taken by then: +1h, or ms");
  command->add_option("--request-id", chosen->request,
                      "Makes a repeated call one request; made if absent");
  auto* wait = command
                   ->add_option("--wait", chosen->wait,
                                "Wait until it is settled, at most that long (default 1h); exits 0 "
                                "only when it completed")
                   ->expected(0, 1);
  wait->excludes(lines);
  command->footer(
      "Examples:\n"
      "  leasehold submit --queue resize --payload photo-17.jpg\n"
      "  leasehold submit --queue report --payload-file order.json --wait 10m\n"
      "  find . -name '*.txt' | leasehold submit --queue count --lines -\n"
      "  leasehold submit --queue slow --payload x --policy lease_duration_ms=5m --label gpu=yes");
  command->callback([&line, chosen, wait] {
    chosen->waits = wait->count() > 0;
    line.result = submit(line, *chosen);
  });
}

}  // namespace leasehold::tools
