// `leasehold queues`: how deep they are and how old their oldest job is.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <string>

#include "tools/api.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

exit_code list(api& coordinator) {
  return coordinator.get("/v1/queues", [&](const json::object& answer) {
    if (coordinator.line().json) {
      for (const auto& queue : array_in(answer, "queues")) print_json(queue.as_object());
      return exit_code::ok;
    }
    table shown({"QUEUE", "READY", "WAITING", "OFFERED", "HELD", "LIMIT", "WORKERS", "FREE SLOTS",
                 "OLDEST READY SINCE"});
    for (const auto& entry : array_in(answer, "queues")) {
      const auto& queue = entry.as_object();
      const auto limit = number_in(queue, "limit");
      shown.add({cell_in(queue, "queue"), cell_in(queue, "ready"), cell_in(queue, "waiting"),
                 cell_in(queue, "offered"), cell_in(queue, "held"),
                 limit == 0 ? "-" : std::to_string(limit), cell_in(queue, "workers"),
                 cell_in(queue, "free_slots"), time_text(number_in(queue, "oldest"))});
    }
    write_out(shown.text());
    return exit_code::ok;
  });
}

}  // namespace

void add_queues(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("queues", "How deep the queues are");
  command->footer("Examples:\n  leasehold queues\n  leasehold queues --json");
  command->callback([&line] { line.result = api::open(line, list); });
}

}  // namespace leasehold::tools
