// `leasehold head`: where the log ends, to be kept elsewhere for verify --head.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <memory>

#include "src/store/batch_log.hpp"
#include "tools/api.hpp"
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
  auto data = std::make_shared<std::string>();
  auto* command = app.add_subcommand("head", "Print where the log ends, as ROW:HASH");
  command->add_option("--data", *data, "Read this data directory instead of asking --url");
  command->footer(
      "Keep it where the coordinator cannot write; verify --head proves that the log still extends "
      "it.\n"
      "Examples:\n"
      "  leasehold head > head.kept\n"
      "  leasehold head --data /var/lib/leasehold --json");
  command->callback([&line, data] {
    if (data->empty()) {
      line.result = head_of_url(line);
      return;
    }
    const auto head = storage::head_of_directory(*data);
    const auto* fault = std::get_if<actors::store_error>(&head);
    line.result = fault != nullptr ? complain_about(*fault)
                                   : print_head(std::get<actors::log_head>(head), line.json);
  });
}

}  // namespace leasehold::tools
