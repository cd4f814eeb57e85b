// `leasehold token`: who may speak to the coordinator. Works on the principals file, not over HTTP;
// a running leaseholdd takes the change with SIGHUP.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/token_file.hpp"
#include "tools/api.hpp"
#include "tools/output.hpp"
#include "tools/terminal.hpp"

namespace leasehold::tools {
namespace {

struct token_options {
  std::string data;
  std::string principals;
  std::string tenant = "default";
  std::string name;
  std::string token;
  std::string certificate;
  std::vector<std::string> roles;
  std::vector<std::string> queues;
  std::vector<std::string> programs;
};

/// --principals, else principals.toml in --data or the default data directory.
std::filesystem::path file_of(const token_options& chosen) {
  if (!chosen.principals.empty()) return chosen.principals;
  const auto directory = chosen.data.empty() ? default_data_directory() : chosen.data;
  return std::filesystem::path(directory) / "principals.toml";
}

/// Takes back a token that nobody has seen: it could never be used, and never be told from a used
/// one.
exit_code take_back(const token_options& chosen, const server::added_token& made) {
  const auto revoked = server::revoke_token(file_of(chosen), chosen.name, made.name);
  if (const auto* fault = std::get_if<server::token_fault>(&revoked)) {
    return complain(
        exit_code::broken,
        fmt::format("the token {} was made and could not be shown; take it back with: leasehold "
                    "token revoke {} {} ({})",
                    made.name, chosen.name, made.name, fault->sentence));
  }
  return complain(exit_code::broken,
                  fmt::format("the token could not be shown, so {} has not got it: it is revoked "
                              "again",
                              chosen.name));
}

exit_code show_once(const command_line& line, const token_options& chosen,
                    const server::added_token& made) {
  if (line.json) {
    print_json({{"principal", chosen.name}, {"name", made.name}, {"token", made.token}});
  } else {
    print("{}\n", made.token);
  }
  if (!flush_output()) return take_back(chosen, made);
  if (!line.json) {
    print_error("This is shown once. It is called {}; a running leaseholdd takes it with SIGHUP.\n",
                made.name);
  }
  return exit_code::ok;
}

exit_code show_certificate(const command_line& line, const token_options& chosen) {
  if (line.json) {
    print_json({{"principal", chosen.name}, {"certificate", chosen.certificate}});
  } else {
    // Standard output has what add makes, a token, and there is none.
    print_error(
        "A client certificate with the name {} is {}; a running leaseholdd takes it with SIGHUP.\n",
        printable(chosen.certificate), chosen.name);
  }
  return exit_code::ok;
}

exit_code add(const command_line& line, const token_options& chosen) {
  server::token_request request;
  request.name = chosen.name;
  request.tenant = chosen.tenant;
  request.certificate = chosen.certificate;
  if (!chosen.queues.empty()) request.queues = chosen.queues;
  if (!chosen.programs.empty()) request.programs = chosen.programs;
  for (const auto& name : chosen.roles) {
    const auto role = server::role_from_word(name);
    if (!role) {
      return complain(
          exit_code::malformed,
          fmt::format("--role \"{}\" is none of worker, client, operator, auditor", name));
    }
    request.roles.push_back(*role);
  }
  const auto added = server::add_token(file_of(chosen), request);
  if (const auto* fault = std::get_if<server::token_fault>(&added)) {
    return complain(fault->is_in_the_request ? exit_code::malformed : exit_code::broken,
                    fault->sentence);
  }
  if (!chosen.certificate.empty()) return show_certificate(line, chosen);
  return show_once(line, chosen, std::get<server::added_token>(added));
}

std::string words_of(const std::vector<actors::role>& roles) {
  std::string out;
  for (const auto role : roles) out += (out.empty() ? "" : ",") + std::string(server::word(role));
  return out;
}

exit_code list(const command_line& line, const token_options& chosen) {
  const auto listed = server::list_tokens(file_of(chosen));
  if (const auto* fault = std::get_if<server::token_fault>(&listed)) {
    return complain(exit_code::broken, fault->sentence);
  }
  table shown({"PRINCIPAL", "TENANT", "ROLES", "TOKEN", "CERTIFICATE"});
  for (const auto& entry : std::get<std::vector<server::token_line>>(listed)) {
    if (line.json) {
      print_json({{"principal", entry.principal},
                  {"tenant", entry.tenant},
                  {"roles", words_of(entry.roles)},
                  {"token", entry.token},
                  {"certificate", entry.certificate}});
    }
    shown.add(
        {entry.principal, entry.tenant, words_of(entry.roles), entry.token, entry.certificate});
  }
  if (!line.json) write_out(shown.text());
  return exit_code::ok;
}

exit_code revoke(const command_line& line, const token_options& chosen) {
  const auto revoked = server::revoke_token(file_of(chosen), chosen.name, chosen.token);
  if (const auto* fault = std::get_if<server::token_fault>(&revoked)) {
    return complain(exit_code::broken, fault->sentence);
  }
  const auto count = std::get<std::int64_t>(revoked);
  if (line.json) {
    print_json({{"revoked", count}});
  } else {
    print("{} revoked; a running leaseholdd takes it with SIGHUP.\n", count);
  }
  return exit_code::ok;
}

using verb_body = exit_code (*)(const command_line&, const token_options&);

CLI::App* add_verb(CLI::App& parent, command_line& line,
                   const std::shared_ptr<token_options>& chosen, const std::string& name,
                   const std::string& what, verb_body run) {
  auto* verb = parent.add_subcommand(name, what);
  verb->add_option("--data", chosen->data, "Data directory of the coordinator");
  verb->add_option("--principals", chosen->principals, "The principals file, when it is elsewhere");
  verb->callback([&line, chosen, run] { line.result = run(line, *chosen); });
  return verb;
}

}  // namespace

void add_token(CLI::App& app, command_line& line) {
  auto* command = app.add_subcommand("token", "Who may speak to the coordinator");
  command->require_subcommand(1);
  auto chosen = std::make_shared<token_options>();
  auto* adding =
      add_verb(*command, line, chosen, "add", "Give a principal a token; prints it once", add);
  adding->add_option("principal", chosen->name, "Its name")->required();
  adding
      ->add_option("--role", chosen->roles, "worker, client, operator or auditor; may be repeated")
      ->required()
      ->allow_extra_args(false);
  adding->add_option("--tenant", chosen->tenant, "Its tenant")->capture_default_str();
  adding->add_option("--queue", chosen->queues, "A queue it may use; all without it")
      ->allow_extra_args(false);
  adding->add_option("--certificate", chosen->certificate,
                     "Know it by this name in its client certificate, and make no token");
  adding
      ->add_option("--program", chosen->programs,
                   "A program whose locks it may use; all without it")
      ->allow_extra_args(false);
  add_verb(*command, line, chosen, "list", "Principals and the names of their tokens", list);
  auto* revoking = add_verb(*command, line, chosen, "revoke", "Take a token away", revoke);
  revoking->add_option("principal", chosen->name, "Whose")->required();
  revoking->add_option("token", chosen->token,
                       "The token's name; without it all of the principal's");
  command->footer(
      "Examples:\n"
      "  leasehold token add builder --role worker --queue build > builder.token\n"
      "  leasehold token list\n"
      "  leasehold token revoke builder");
}

}  // namespace leasehold::tools
