// `leasehold watch`: committed evidence rows as they come, resumable from any row.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct watch_options {
  std::int64_t from = -1;
  std::int64_t until = 0;
  std::string job;
  std::string queue;
};

void print_row(const json::object& row) {
  const auto decision = text_in(row, "decision");
  fmt::print("{:>8} {}  {:<14} {:<16} {} {}  {} g{}\n", number_in(row, "row"),
             time_text(number_in(row, "at")), printable(text_in(row, "lease_id")),
             text_in(row, "event"), toned(decision, tone_of(decision)), text_in(row, "reason"),
             text_in(row, "state"), number_in(row, "generation"));
}

/// A message of the events socket: rows, or a note that the reader fell behind.
bool take_message(std::string_view message, const watch_options& chosen, bool as_json,
                  std::int64_t& last) {
  boost::system::error_code error;
  const auto parsed = json::parse(message, error);
  if (error || !parsed.is_object()) {
    complain(exit_code::broken, "an event is no JSON object");
    return false;
  }
  const auto& row = parsed.get_object();
  if (!row.contains("event")) {
    fmt::print(stderr, "{}\n", printable(message));
    return true;
  }
  last = number_in(row, "row");
  if (as_json) {
    fmt::print("{}\n", message);
  } else {
    print_row(row);
  }
  std::fflush(stdout);
  return chosen.until == 0 || last < chosen.until;
}

exit_code watch(api& coordinator, const watch_options& chosen) {
  query target("/v1/events");
  if (chosen.from >= 0) target.add("from", std::to_string(chosen.from));
  target.add("job", chosen.job).add("queue", chosen.queue);
  std::int64_t last = 0;
  const auto result = coordinator.listen(target.target(), [&](std::string_view message) {
    return take_message(message, chosen, coordinator.line().json, last);
  });
  const bool complete = chosen.until > 0 && last >= chosen.until;
  if (complete) return exit_code::ok;
  if (last > 0) fmt::print(stderr, "to go on from here: leasehold watch --from {}\n", last + 1);
  return result;
}

}  // namespace

void add_watch(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<watch_options>();
  auto* command = app.add_subcommand("watch", "Evidence rows as they are committed");
  command->add_option("--from", chosen->from, "Begin with this row; without it with the next one")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 53));
  command->add_option("--until", chosen->until, "End with this row");
  command->add_option("--job", chosen->job, "Only rows of this job");
  command->add_option("--queue", chosen->queue, "Only rows of this queue's jobs");
  command->footer(
      "Examples:\n"
      "  leasehold watch\n"
      "  leasehold watch --from 1 --json >> rows.jsonl");
  command->callback([&line, chosen] {
    line.result = api::open(line, [&](api& coordinator) { return watch(coordinator, *chosen); });
  });
}

}  // namespace leasehold::tools
