// `leasehold key`: what a lock's name comes down to. Asks no coordinator.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "src/keys/normalise.hpp"
#include "src/lock_json.hpp"
#include "src/principals.hpp"
#include "tools/api.hpp"
#include "tools/json_fields.hpp"
#include "tools/output.hpp"
#include "tools/subcommands.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

using protocol::lock_name;
using protocol::target_kind;

struct kind_option {
  target_kind kind;
  const char* text;
};
constexpr std::array<kind_option, 5> kind_options{{
    {target_kind::host, "The target is a host: a name of DNS, without a port"},
    {target_kind::ip, "The target is an IPv4 or IPv6 address"},
    {target_kind::cidr, "The target is a network: ADDRESS/PREFIX"},
    {target_kind::url, "The target is a URL: http, https, ws or wss"},
    {target_kind::opaque, "The target is any text of at most 512 bytes"},
}};

struct key_options {
  lock_name typed;
  std::string tenant = "default";
  std::array<std::string, kind_options.size()> values;
  std::array<CLI::Option*, kind_options.size()> given{};
};

/// Takes the one target that was given; false: it was none, or more than one.
bool take_target(key_options& chosen) {
  int count = 0;
  for (std::size_t i = 0; i < kind_options.size(); ++i) {
    if (chosen.given[i]->count() == 0) continue;
    chosen.typed.kind = kind_options[i].kind;
    chosen.typed.target = chosen.values[i];
    ++count;
  }
  return count == 1;
}

exit_code show_key(const command_line& line, key_options& chosen) {
  if (!server::is_principal_name(chosen.tenant)) {
    return complain(exit_code::malformed, fmt::format("--tenant must have {}", server::name_rule));
  }
  if (!take_target(chosen)) {
    return complain(exit_code::malformed,
                    "give exactly one of --host, --ip, --cidr, --url and --opaque");
  }
  const auto made = keys::normalise(chosen.typed);
  if (const auto* why = std::get_if<keys::refusal>(&made)) {
    return complain(exit_code::malformed, why->sentence);
  }
  const auto& name = std::get<lock_name>(made);
  const protocol::tenant_id tenant(chosen.tenant);
  if (line.json) {
    print_json(server::to_key_json(tenant, chosen.typed.target, name));
  } else {
    print("{}\n", protocol::canonical_key(tenant, name));
  }
  return exit_code::ok;
}

}  // namespace

void add_key(CLI::App& app, command_line& line) {
  auto chosen = std::make_shared<key_options>();
  auto* command = app.add_subcommand("key", "The canonical key of a lock, made without a server");
  command->add_option("--program", chosen->typed.program, "The program that the lock is for")
      ->required();
  command->add_option("--workflow", chosen->typed.workflow, "Its workflow; part of the key");
  command->add_option("--operation-class", chosen->typed.operation_class,
                      "What is done to the target; part of the key");
  for (std::size_t i = 0; i < kind_options.size(); ++i) {
    const std::string name = "--" + std::string(protocol::word(kind_options[i].kind));
    chosen->given[i] = command->add_option(name, chosen->values[i], kind_options[i].text);
  }
  command->add_option("--tenant", chosen->tenant, "The tenant of the credential that will lock")
      ->capture_default_str();
  command->footer(
      "--url names the target here, and no coordinator is asked.\n\n"
      "Examples:\n"
      "  leasehold key --program backup --host db-1.example.com\n"
      "  leasehold key --program crawler --workflow nightly --url https://example.com/a --json");
  command->callback([&line, chosen] { line.result = show_key(line, *chosen); });
}

}  // namespace leasehold::tools
