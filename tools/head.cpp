// `leasehold head`: where the log ends, to be kept elsewhere for verify --head.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <memory>

#include "src/store/batch_log.hpp"
#include "tools/api.hpp"
#include "tools/chosen_store.hpp"
#include "tools/output.hpp"
#include "tools/verify.hpp"

namespace leasehold::tools {
namespace {

exit_code print_head(const actors::log_head& head, bool as_json) {
  if (as_json) {
    print_json({{"row", head.last_row.value}, {"hash", storage::to_hex(head.chain)}});
  } else {
    print("{}\n", storage::to_text(head));
  }
  return exit_code::ok;
}

exit_code head_of_store(const chosen_store& place, bool as_json) {
  storage::store_place where;
  if (const auto found = place.find(where); found != exit_code::ok) return found;
  const auto head = storage::head_of_store(where);
  if (const auto* fault = std::get_if<actors::store_error>(&head)) return complain_about(*fault);
  return print_head(std::get<actors::log_head>(head), as_json);
}

exit_code head_of_url(const command_line& line) {
  return api::open(line, [&](api& coordinator) {
    return coordinator.get("/v1/head", [&](const boost::json::object& body) {
      const auto chain = storage::chain_from_hex(text_in(body, "hash"));
      if (!chain) {
        return complain(exit_code::unreachable, "the answer has no hash: is this a coordinator?");
      }
      return print_head({{number_in(body, "row")}, *chain}, line.json);
    });
  });
}

}  // namespace

void add_head(CLI::App& app, command_line& line) {
  auto place = std::make_shared<chosen_store>();
  auto* command = app.add_subcommand("head", "Print where the log ends, as ROW:HASH");
  add_chosen_store(*command, *place, "Read this data directory instead of asking --url");
  command->footer(
      "Keep it where the coordinator cannot write; verify --head proves that the log still extends "
      "it.\n"
      "Examples:\n"
      "  leasehold head > head.kept\n"
      "  leasehold head --data /var/lib/leasehold --json\n"
      "  leasehold head --store postgres://leasehold@db.example/leasehold");
  command->callback([&line, place] {
    line.result = place->is_given() ? head_of_store(*place, line.json) : head_of_url(line);
  });
}

}  // namespace leasehold::tools
