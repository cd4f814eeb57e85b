// `leasehold watch`: committed evidence rows as they come, resumable from any row.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/arguments.hpp"
#include "tools/output.hpp"
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
  const auto shown = [&](std::string_view key) { return printable(text_in(row, key)); };
  const auto decision = shown("decision");
  print("{:>8} {}  {:<14} {:<16} {} {}  {} g{}\n", number_in(row, "row"),
        time_text(number_in(row, "at")), shown("lease_id"), shown("event"),
        toned(decision, tone_of(decision)), shown("reason"), shown("state"),
        number_in(row, "generation"));
}

/// Says that the coordinator has got ahead of this reader, who loses nothing by that.
void tell_behind(const json::object& note, std::string_view message, bool as_json) {
  if (as_json) {
    print_error("{}\n", printable(message));
  } else {
    print_error("{} rows behind the newest, {}; going on from {}\n", number_in(note, "behind"),
                number_in(note, "last_row"), number_in(note, "next_row"));
  }
}

/// A message of the events socket: a row, or a note that the reader fell behind. `last` becomes the
/// newest row that was printed.
bool take_message(std::string_view message, bool as_json, std::int64_t& last) {
  boost::system::error_code error;
  const auto parsed = json::parse(message, error);
  if (error || !parsed.is_object()) {
    complain(exit_code::broken, "an event is no JSON object");
    return false;
  }
  const auto& row = parsed.get_object();
  if (!row.contains("event")) {
    tell_behind(row, message, as_json);
    return true;
  }
  if (as_json) {
    print("{}\n", message);
  } else {
    print_row(row);
  }
  if (!flush_output()) return false;
  last = number_in(row, "row");
  return true;
}

/// With --until the coordinator closes the socket once its log has passed that row, whether or not
/// a row was among those that are wanted.
exit_code watch(api& coordinator, const watch_options& chosen) {
  query target("/v1/events");
  if (chosen.from >= 0) target.add("from", std::to_string(chosen.from));
  if (chosen.until > 0) target.add("until", std::to_string(chosen.until));
  target.add("job", chosen.job).add("queue", chosen.queue);
  std::int64_t last = 0;
  const auto result = coordinator.listen(target.target(), [&](std::string_view message) {
    return take_message(message, coordinator.line().json, last);
  });
  const bool is_complete = chosen.until > 0 && result == exit_code::ok && !output_is_lost();
  if (!is_complete && last > 0 && !reader_has_ended()) {
    print_error("to go on from here: leasehold watch --from {}\n", last + 1);
  }
  return result;
}

exit_code watch(const command_line& line, const watch_options& chosen) {
  if (chosen.until > 0 && chosen.from > chosen.until) {
    return complain(exit_code::malformed,
                    fmt::format("--until {} lies before --from {}: no row is in between",
                                chosen.until, chosen.from));
  }
  return api::open(line, [&](api& coordinator) { return watch(coordinator, chosen); });
}

}  // namespace

void add_watch(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<watch_options>();
  auto* command = app.add_subcommand("watch", "Evidence rows as they are committed");
  command->add_option("--from", chosen->from, "Begin with this row; without it with the next one")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 53));
  command->add_option("--until", chosen->until, "End with this row, also when it is not shown")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 53));
  command->add_option("--job", chosen->job, "Only rows of this job")->check(find_id_fault);
  command->add_option("--queue", chosen->queue, "Only rows of this queue's jobs");
  command->footer(
      "Examples:\n"
      "  leasehold watch\n"
      "  leasehold watch --from 1 --json >> rows.jsonl");
  command->callback([&line, chosen] { line.result = watch(line, *chosen); });
}

}  // namespace leasehold::tools
