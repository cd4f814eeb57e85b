// `leasehold lock`: one lock, looked at and acted on.
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/api.hpp"
#include "tools/evidence_rows.hpp"
#include "tools/lock_text.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

namespace json = boost::json;

struct lock_options {
  std::string key;
  std::string reason;
  std::string request;
  bool force = false;
  bool csv = false;
};

exit_code show(api& coordinator, const lock_options& chosen) {
  return coordinator.get(lock_path(chosen.key), [&](const json::object& answer) {
    const auto& lock = lock_in(answer);
    if (coordinator.line().json) {
      print_json(lock);
    } else {
      write_out(describe_lock(lock));
    }
    return exit_code::ok;
  });
}

exit_code revoke(api& coordinator, const lock_options& chosen) {
  json::object body{{naming_member(chosen.key), chosen.key}, {"force", chosen.force}};
  body["detail"] = chosen.reason;
  body["request_id"] = chosen.request.empty() ? fresh_request_id() : chosen.request;
  return coordinator.post("/v1/locks:revoke", body, [&](const json::object& answer) {
    if (coordinator.line().json) {
      print_json(answer);
      return exit_code::ok;
    }
    const auto& lock = lock_in(answer);
    write_out(printable(fmt::format("{}: {} {}; now {}", chosen.key, cell_in(answer, "decision"),
                                    cell_in(answer, "reason"), cell_in(lock, "state"))) +
              '\n');
    return exit_code::ok;
  });
}

exit_code show_evidence(api& coordinator, const lock_options& chosen) {
  const auto target = lock_path(chosen.key, "/evidence");
  if (chosen.csv) return print_csv(coordinator, target);
  std::vector<json::object> rows;
  const auto result = read_rows(coordinator, target, rows);
  if (result == exit_code::ok) print_rows(rows, coordinator.line().json);
  return result;
}

/// Adds one verb under `leasehold lock`.
CLI::App* add_verb(CLI::App& parent, command_line& line,
                   const std::shared_ptr<lock_options>& chosen, const std::string& name,
                   const std::string& what,
                   exit_code (*run)(api& coordinator, const lock_options& chosen)) {
  auto* verb = parent.add_subcommand(name, what);
  verb->add_option("key", chosen->key, "The canonical key, or the lease id k:...")
      ->required()
      ->check(find_key_fault);
  verb->callback([&line, chosen, run] {
    line.result = api::open(line, [&](api& coordinator) { return run(coordinator, *chosen); });
  });
  return verb;
}

}  // namespace

void add_lock(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("lock", "Look at one lock, or act on it");
  command->require_subcommand(1);
  auto chosen = std::make_shared<lock_options>();
  add_verb(*command, line, chosen, "show", "Where it stands", show);
  auto* revoking =
      add_verb(*command, line, chosen, "revoke", "End its holder's authority (operator)", revoke);
  revoking->add_flag("--force", chosen->force,
                     "Grant it to others before the old deadline: only the fencing token protects");
  revoking->add_option("--reason", chosen->reason, "Why, for the evidence")
      ->required()
      ->check([](const std::string& why) {
        return std::string(why.empty() ? "say why: the evidence keeps it" : "");
      });
  revoking->add_option("--request-id", chosen->request,
                       "Makes a repeated call one request; made if absent");
  auto* evidence = add_verb(*command, line, chosen, "evidence",
                            "Everything that was decided about it", show_evidence);
  evidence->add_flag("--csv", chosen->csv, "Comma-separated, all columns");
  evidence->footer(
      "--json prints all columns, one row a line. "
      "PROTOCOL.md (9) explains the columns.");
  command->footer(
      "Examples:\n"
      "  leasehold lock show acme/prog-1/host:example.com/scan/write\n"
      "  leasehold lock revoke acme/prog-1/host:example.com// --reason \"host is gone\"\n"
      "  leasehold lock evidence acme/prog-1/host:example.com// --json");
}

}  // namespace leasehold::tools
