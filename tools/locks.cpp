// `leasehold locks`: the list, page after page.
#include <algorithm>
#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>

#include "tools/api.hpp"
#include "tools/listing.hpp"
#include "tools/lock_text.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct list_options {
  std::string owner;
  std::string target;
  std::string program;
  std::string state;
  std::int64_t limit = 100;
  bool all = false;
};

constexpr std::int64_t page_size = 500;
constexpr std::size_t state_column = 1;

std::string page_target(const list_options& chosen, std::int64_t size, const std::string& token) {
  query target("/v1/locks");
  target.add("owner", chosen.owner)
      .add("target", chosen.target)
      .add("program", chosen.program)
      .add("state", chosen.state)
      .add("page_size", std::to_string(size))
      .add("page_token", token);
  return target.target();
}

exit_code each_lock(api& coordinator, const list_options& chosen,
                    const std::function<void(const json::object&)>& take) {
  listing what{"locks", page_size, chosen.limit, chosen.all, {}};
  what.target = [&](std::int64_t size, const std::string& token) {
    return page_target(chosen, size, token);
  };
  return each_listed(coordinator, what, take);
}

exit_code list(api& coordinator, const list_options& chosen) {
  if (coordinator.line().json) return each_lock(coordinator, chosen, print_json);
  table shown(lock_headings);
  shown.colour_column(state_column);
  const auto result = each_lock(coordinator, chosen,
                                [&](const json::object& lock) { shown.add(lock_cells(lock)); });
  if (result == exit_code::ok) write_out(shown.text());
  return result;
}

}  // namespace

void add_locks(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<list_options>();
  auto* command = app.add_subcommand("locks", "List locks");
  command->add_option("--owner", chosen->owner, "Only those of PRINCIPAL or PRINCIPAL/INSTANCE");
  command->add_option("--target", chosen->target,
                      "Only those on KIND:VALUE, for instance host:example.com");
  command->add_option("--program", chosen->program, "Only those of this program");
  command->add_option("--state", chosen->state, "Only in this state, for instance active");
  command->add_option("--limit", chosen->limit, "Show at most so many")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--all", chosen->all, "Show all");
  command->footer(
      "Examples:\n"
      "  leasehold locks --state active\n"
      "  leasehold locks --owner backup --program nightly\n"
      "  leasehold locks --target host:example.com --json");
  command->callback([&line, chosen] {
    line.result = api::open(line, [&](api& coordinator) { return list(coordinator, *chosen); });
  });
}

}  // namespace leasehold::tools
