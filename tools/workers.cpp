// `leasehold workers`: who is connected, with what credit and how many leases.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "tools/api.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

/// "resize 2/4, report 0/1": held and slots of each queue.
std::string by_queue(const json::object& worker) {
  const auto& held = object_in(worker, "held");
  std::string out;
  for (const auto& [queue, slots] : object_in(worker, "slots")) {
    out += fmt::format("{}{} {}/{}", out.empty() ? "" : ", ", std::string_view(queue),
                       number_in(held, queue), json::serialize(slots));
  }
  return out;
}

exit_code list(api& coordinator) {
  return coordinator.get("/v1/workers", [&](const json::object& answer) {
    if (coordinator.line().json) {
      for (const auto& worker : array_in(answer, "workers")) print_json(worker.as_object());
      return exit_code::ok;
    }
    table shown({"HOLDER", "CLIENT", "EPOCH", "CONNECTED", "HELD/SLOTS"});
    for (const auto& entry : array_in(answer, "workers")) {
      const auto& worker = entry.as_object();
      shown.add({cell_in(worker, "holder"), cell_in(worker, "client"), cell_in(worker, "epoch"),
                 time_text(number_in(worker, "connected_at")), by_queue(worker)});
    }
    write_out(shown.text());
    return exit_code::ok;
  });
}

}  // namespace

void add_workers(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("workers", "Who is connected, with what credit and leases");
  command->footer("Examples:\n  leasehold workers\n  leasehold workers --json");
  command->callback([&line] { line.result = api::open(line, list); });
}

}  // namespace leasehold::tools
