#include "src/dispatcher_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>

#include "src/config_text.hpp"
#include "src/config_units.hpp"

namespace leasehold::server {
namespace {

/// Everything as it was typed.
struct typed {
  std::string store;
  std::string controllers;
  std::string term_grace;
  std::string kill_wait;
  std::string claim;
};

say_and_exit refuse(const std::string& sentence) {
  return {"leaseholdd dispatcher: " + sentence + "\n", exit_bad_options};
}

std::string in_quotes(const std::string& text) {
  return "\"" + config_text::printable(text) + "\"";
}

/// False: it is no length of time.
bool read_into(protocol::duration& to, const std::string& text) {
  if (text.empty()) return true;
  const auto ms = read_duration_ms(text);
  if (ms) to = protocol::duration{*ms};
  return ms.has_value();
}

void describe(CLI::App& app, dispatcher_options& out, typed& said) {
  app.add_option(
         "--store", said.store,
         "The store of the coordinator: sqlite:/path or postgres://... Also in the variable "
         "LEASEHOLD_STORE, which is the place for a URL with a password.")
      ->type_name("URL");
  app.add_option("--controllers", said.controllers,
                 "What may be used to stop work. Takes process: signals to the processes of "
                 "this machine that workers have registered.")
      ->type_name("NAMES");
  app.add_option("--profile", out.profile_name,
                 "How often and how much at once: edge (one at a time), standalone or cluster. "
                 "Default: standalone.")
      ->type_name("WORD");
  app.add_option(
         "--host", out.host,
         "Boot id whose processes are acted on. Default: that of this start of this machine. "
         "That of an earlier start says that all its processes have ended: never name "
         "another machine's.")
      ->type_name("BOOT_ID");
  app.add_option(
         "--owner", out.owner,
         "Name of this process in its claims; 1 to 128 of A-Z a-z 0-9 . _ : - /. Default: one "
         "that no other has.")
      ->type_name("NAME");
  app.add_option("--term-grace", said.term_grace, "From TERM to KILL. Default: 10s.")
      ->type_name("TIME");
  app.add_option("--kill-wait", said.kill_wait, "From KILL to the answer. Default: 5s.")
      ->type_name("TIME");
  app.add_option(
         "--claim", said.claim,
         "How long nobody else acts; longer than the two together, at most 5m. Default: 30s.")
      ->type_name("TIME");
  app.add_flag("--once", out.once, "One cycle, then end.");
  app.add_option("--log-level", out.log_level, "trace, debug, info, warn or error. Default: info.")
      ->type_name("WORD");
  app.add_option("--log-format", out.log_format, "auto, human or json. Default: auto.")
      ->type_name("WORD");
  app.footer(
      "It runs beside the coordinator or without it, in as many processes as one likes; claims "
      "keep\n"
      "them apart. Run it as the user whose processes it may signal, in the pid namespace of the\n"
      "workers. SIGTERM and SIGINT end it.\n\n"
      "Exit codes: 0 ended as told; 1 the store cannot be opened, or the one cycle failed; 2 set "
      "up\n"
      "wrongly; 3 ended while a controller was at work: its claim runs out, and another takes "
      "over.\n\n"
      "Example:\n"
      "  leaseholdd dispatcher --store sqlite:/var/lib/leasehold --controllers process");
}

bool is_owner(const std::string& name) {
  return name.size() <= 128 && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == ':' || c == '-' || c == '/';
         });
}

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_boot_id(const std::string& text) {
  return text.empty() || protocol::is_well_formed({"linux", 2, text, 1, 2});
}

}  // namespace

std::variant<dispatcher_options, say_and_exit> load_dispatcher_options(
    std::vector<std::string> arguments, const environment& variables) {
  CLI::App app{"Stops the processes of cancelled jobs on this machine.", "leaseholdd dispatcher"};
  dispatcher_options out;
  typed said;
  describe(app, out, said);
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    return say_and_exit{text.str(), 0};
  } catch (const CLI::ParseError& bad) {
    return refuse(config_text::printable(bad.what()) +
                  "; leaseholdd dispatcher --help lists the flags.");
  }
  if (const auto named = variables.find("LEASEHOLD_STORE");
      said.store.empty() && named != variables.end()) {
    said.store = named->second;
  }
  if (said.store.empty()) {
    return refuse("--store is missing; name the coordinator's, such as sqlite:/var/lib/leasehold.");
  }
  auto place = storage::parse_store_url(said.store);
  if (auto* bad = std::get_if<storage::bad_store_url>(&place)) return refuse(bad->sentence);
  out.store = std::move(std::get<storage::store_place>(place));
  if (said.controllers != "process") {
    return refuse(said.controllers.empty()
                      ? "--controllers is missing; nothing is signalled unless it says process."
                      : "--controllers cannot be " + in_quotes(said.controllers) +
                            "; it takes process.");
  }
  const auto profile = actors::dispatch_profile_of(out.profile_name);
  if (!profile) {
    return refuse("--profile cannot be " + in_quotes(out.profile_name) +
                  "; it takes edge, standalone or cluster.");
  }
  out.profile = *profile;
  if (!is_boot_id(out.host)) {
    return refuse("--host cannot be " + in_quotes(out.host) +
                  "; it takes a boot id as /proc/sys/kernel/random/boot_id shows it.");
  }
  if (!is_owner(out.owner)) {
    return refuse("--owner cannot be " + in_quotes(out.owner) +
                  "; it takes 1 to 128 of A-Z a-z 0-9 . _ : - /");
  }
  for (const auto& [flag, text, to] :
       {std::tuple{"--term-grace", &said.term_grace, &out.term_grace},
        std::tuple{"--kill-wait", &said.kill_wait, &out.kill_wait},
        std::tuple{"--claim", &said.claim, &out.pace.claim}}) {
    if (!read_into(*to, *text)) {
      return refuse(std::string(flag) + " cannot be " + in_quotes(*text) +
                    "; it takes a number and a unit, such as 250ms, 10s or 2m.");
    }
  }
  if (!is_one_of(out.log_level, {"trace", "debug", "info", "warn", "error"})) {
    return refuse("--log-level cannot be " + in_quotes(out.log_level) +
                  "; it takes trace, debug, info, warn or error.");
  }
  if (!is_one_of(out.log_format, {"auto", "human", "json"})) {
    return refuse("--log-format cannot be " + in_quotes(out.log_format) +
                  "; it takes auto, human or json.");
  }
  return out;
}

}  // namespace leasehold::server
