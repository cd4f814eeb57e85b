#include "src/options.hpp"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <deque>
#include <thread>

#include "src/config_file.hpp"
#include "src/config_keys.hpp"
#include "src/config_text.hpp"
#include "src/config_units.hpp"
#include "src/store/hidden_passwords.hpp"

#ifndef LEASEHOLD_VERSION
#define LEASEHOLD_VERSION "unknown"
#endif

namespace leasehold::server {
namespace {

constexpr std::string_view variable_prefix = "LEASEHOLD_";

/// Variables of this prefix that belong to the `leasehold` program and to the jobs it runs.
constexpr std::array<std::string_view, 7> foreign_variables{
    "URL", "TOKEN", "TOKEN_FILE", "CA_FILE", "CERT_FILE", "KEY_FILE", "CONFIG"};

/// "log.level" as a variable ("LOG_LEVEL") or a flag ("log-level").
std::string spelled(std::string_view name, char separator, bool upper) {
  std::string out;
  for (const char c : name) {
    const bool part = c == '.' || c == '_';
    out += part ? separator : (upper && c >= 'a' && c <= 'z') ? static_cast<char>(c - 32) : c;
  }
  return out;
}

/// Every key that is one value: those of the table and those of the default policy.
struct named_key {
  std::string name;
  std::string help;
  bool toggle;
};

/// The sentence about a default, which stands as a flag would have it; none where the text of the
/// key tells of it, because it follows from other things.
std::string default_sentence(std::string value) {
  const bool is_quoted = value.starts_with('"') && value.ends_with('"') && value.size() > 1;
  if (is_quoted) value = value.substr(1, value.size() - 2);
  return value.empty() ? "" : " Default: " + value + ".";
}

std::string text_of(const std::variant<std::int64_t, std::string>& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number != nullptr ? std::to_string(*number) : std::get<std::string>(value);
}

std::vector<named_key> single_keys() {
  const options defaults;
  std::vector<named_key> out;
  for (const config_key& key : config_keys()) {
    if (key.at == nullptr) continue;
    out.push_back({std::string(key.name),
                   std::string(key.help) + " Takes " + allowed(key) + "." +
                       default_sentence(print_value(key, defaults)),
                   key.kind == key_kind::toggle});
  }
  for (const auto& key : protocol::policy_keys()) {
    out.push_back(
        {"policy." + std::string(key.name),
         "Takes " + allowed(key) + "." + default_sentence(text_of(key.get(defaults.policy))),
         false});
  }
  return out;
}

using settings_or_fault = std::variant<std::vector<setting>, config_fault>;

settings_or_fault read_variables(const environment& variables) {
  std::map<std::string, std::string> known;
  for (const named_key& key : single_keys()) known[spelled(key.name, '_', true)] = key.name;
  std::vector<setting> out;
  for (const auto& [name, value] : variables) {
    if (!name.starts_with(variable_prefix)) continue;
    const std::string rest = name.substr(variable_prefix.size());
    if (std::ranges::find(foreign_variables, rest) != foreign_variables.end() ||
        rest.starts_with("JOB_")) {
      continue;
    }
    const auto found = known.find(rest);
    if (found == known.end()) {
      std::vector<std::string_view> words;
      words.reserve(known.size());
      for (const auto& entry : known) words.push_back(entry.first);
      const std::string nearest = nearest_word(rest, words);
      return config_fault{"The variable " + config_text::printable(name) + " names no key" +
                          (nearest.empty() ? "; leaseholdd --help lists all."
                                           : "; did you mean LEASEHOLD_" + nearest + "?")};
    }
    out.push_back({found->second, "", value, "the variable " + name});
  }
  return out;
}

/// What the command line says beside settings.
struct command_line {
  std::vector<setting> settings;
  std::string config;
  bool print_config = false;
  bool restored_backup = false;
};

std::variant<command_line, say_and_exit> read_arguments(std::vector<std::string> arguments) {
  CLI::App app{"The coordinator of Leasehold: leases jobs to workers and keeps the evidence.",
               "leaseholdd"};
  app.footer(
      "Each key can also stand in the configuration file and in a variable: --log-level is\n"
      "level under [log], and LEASEHOLD_LOG_LEVEL. Flags overrule variables, variables the file.\n"
      "[queues.NAME] with max_live and [queues.NAME.policy] stand in the file only.\n\n"
      "Examples:\n"
      "  leaseholdd                                 serve 127.0.0.1:7878\n"
      "  leaseholdd --data ./state --listen 127.0.0.1:9000\n"
      "  leaseholdd --store postgres://leasehold@db.example/leasehold\n"
      "  leaseholdd --config leaseholdd.toml --print-config");
  command_line out;
  app.set_version_flag("--version", "leaseholdd " LEASEHOLD_VERSION);
  app.add_option("--config", out.config, "Configuration file (TOML).")->type_name("FILE");
  app.add_flag("--print-config", out.print_config, "Print the effective configuration and end.");

  app.add_flag("--restored-backup", out.restored_backup,
               "The data directory was restored from a backup: raise every fencing token above "
               "what may have been granted since, and grant nothing for the longest lease. For one "
               "start.");

  struct bound_flag {
    std::string key;
    std::string flag;
    std::string value;
    CLI::Option* option;
  };
  std::deque<bound_flag> flags;  // CLI11 keeps references
  for (const named_key& key : single_keys()) {
    flags.push_back({key.name, "--" + spelled(key.name, '-', false), "", nullptr});
    bound_flag& f = flags.back();
    f.option = key.toggle ? app.add_flag(f.flag + "{true}", f.value, key.help)
                          : app.add_option(f.flag, f.value, key.help)->type_name("VALUE");
    f.option->group(key.name.starts_with("policy.") ? "Policy of jobs that name none" : "Keys");
  }
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app.exit(asked, text, text);
    return say_and_exit{text.str(), 0};
  } catch (const CLI::ParseError& bad) {
    // What was typed in the wrong place is repeated: it may be the URL of a store.
    return say_and_exit{std::string("leaseholdd: ") +
                            config_text::printable(storage::hide_passwords(bad.what())) +
                            "; leaseholdd --help lists the flags.\n",
                        exit_bad_options};
  }
  for (const bound_flag& f : flags) {
    if (f.option->count() > 0) out.settings.push_back({f.key, "", f.value, f.flag});
  }
  return out;
}

std::string default_directory(const environment& variables) {
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  if (const std::string xdg = value("XDG_DATA_HOME"); xdg.starts_with('/'))
    return xdg + "/leasehold";
  if (const std::string home = value("HOME"); home.starts_with('/')) {
    return home + "/.local/share/leasehold";
  }
  return "./leasehold-data";
}

bool is_queue_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  });
}

/// Whether clients could connect to it: a name, an IPv4 or a bracketed IPv6 address, and a port.
bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.size() > 300) return false;
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port == 0) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) return read_endpoint(text).has_value();
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

std::optional<std::string> find_tls_fault(const options& o) {
  if (o.tls_certificate.empty() != o.tls_private_key.empty()) {
    return "tls.certificate and tls.private_key belong together: give both files, or none.";
  }
  const bool asks = o.tls_client_certificates != "none";
  if (asks && (!o.has_tls() || o.tls_client_ca.empty())) {
    return "tls.client_certificates = \"" + o.tls_client_certificates +
           "\" needs tls.certificate, tls.private_key and tls.client_ca, the file with the "
           "certificates that clients' must be signed by.";
  }
  if (!asks && !o.tls_client_ca.empty()) {
    return "tls.client_ca says who signs clients' certificates, and none are asked for; set "
           "tls.client_certificates to optional or required.";
  }
  return std::nullopt;
}

std::optional<std::string> find_data_fault(const options& o) {
  if (!storage::is_database_url(o.data)) return std::nullopt;
  return "data takes a directory; name a database with store.";
}

std::optional<std::string> find_dispatch_fault(const options& o) {
  const auto& all = o.dispatch_controllers;
  const auto is_known = [](const std::string& name) {
    return name == "stream" || name == "process";
  };
  if (!std::ranges::all_of(all, is_known)) {
    return "dispatch.controllers takes stream, which is there anyway, and process.";
  }
  if (o.dispatch_ack_window >= o.dispatch_claim) {
    return "dispatch.ack_window must be shorter than dispatch.claim.";
  }
  if (o.dispatch_backoff > o.dispatch_backoff_max) {
    return "dispatch.backoff cannot be longer than dispatch.backoff_max.";
  }
  return std::nullopt;
}

std::optional<std::string> find_option_fault(const options& o) {
  const auto where = read_endpoint(o.listen);
  if (!where) {
    return "listen cannot be \"" + config_text::printable(o.listen) +
           "\"; it takes an IP address and a port from 0 to 65535, such as 127.0.0.1:7878 or "
           "[::1]:7878.";
  }
  if (auto fault = find_tls_fault(o)) return fault;
  if (!o.advertise.empty() && !is_host_and_port(o.advertise)) {
    return "advertise cannot be \"" + config_text::printable(o.advertise) +
           "\"; it takes the name or address of a host and a port from 1 to 65535, such as "
           "a.example.com:7878 or [2001:db8::1]:7878.";
  }
  if (!o.store.empty()) {
    const auto read = storage::parse_store_url(o.store);
    if (const auto* bad = std::get_if<storage::bad_store_url>(&read)) return bad->sentence;
  }
  if (!is_loopback(*where) && !o.has_tls() && !o.insecure) {
    return "listen = \"" + o.listen +
           "\" is open to other machines, and there is no TLS; give tls.certificate and "
           "tls.private_key, listen on 127.0.0.1, or add --insecure to accept that tokens and "
           "payloads cross the network readable.";
  }
  // Requests are remembered with their lease, for at least ten minutes.
  if (o.forget_after.ms != 0 && o.forget_after.ms < 600'000) {
    return "forget_after cannot be shorter than 10m; 0s keeps settled jobs for ever.";
  }
  if (auto fault = find_data_fault(o)) return fault;
  if (auto fault = find_dispatch_fault(o)) return fault;
  if (auto fault = protocol::find_fault(o.policy)) return "[policy]: " + *fault;
  for (const auto& [name, queue] : o.queues) {
    if (!is_queue_name(name)) {
      return "The queue name \"" + config_text::printable(name) +
             "\" is not allowed; it takes 1 to 128 of A-Z a-z 0-9 . _ : -";
    }
    if (auto fault = protocol::find_fault(queue.policy))
      return "[queues." + name + ".policy]: " + *fault;
  }
  return std::nullopt;
}

std::string print_policy(const protocol::policy& chosen, const protocol::policy* base) {
  std::string out;
  for (const auto& key : protocol::policy_keys()) {
    const auto value = key.get(chosen);
    if (base != nullptr && key.get(*base) == value) continue;
    out += std::string(key.name) + " = ";
    const auto* number = std::get_if<std::int64_t>(&value);
    out += number != nullptr ? std::to_string(*number)
                             : config_text::toml_string(std::get<std::string>(value));
    out += '\n';
  }
  return out;
}

}  // namespace

std::optional<endpoint> read_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  endpoint out;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  out.host = text.substr(0, colon);
  if (out.host == "localhost") out.host = "127.0.0.1";
  in6_addr six{};
  in_addr four{};
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
    if (inet_pton(AF_INET6, out.host.c_str(), &six) == 1) return out;
    return std::nullopt;
  }
  if (inet_pton(AF_INET, out.host.c_str(), &four) == 1) return out;
  return std::nullopt;
}

bool is_loopback(const endpoint& where) {
  in6_addr six{};
  if (inet_pton(AF_INET6, where.host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six) != 0;
  return where.host.starts_with("127.");
}

endpoint options::address() const { return read_endpoint(listen).value_or(endpoint{}); }

std::filesystem::path options::principals_file() const {
  return principals.empty() ? data_directory() / "principals.toml"
                            : std::filesystem::path(principals);
}

storage::store_place options::place_of_store() const {
  auto read = storage::parse_store_url(store);
  if (auto* place = std::get_if<storage::store_place>(&read)) return std::move(*place);
  return storage::sqlite_place{data_directory()};
}

const protocol::policy& options::policy_of(const std::string& queue) const {
  const auto found = queues.find(queue);
  return found == queues.end() ? policy : found->second.policy;
}

std::string changed_until_restart(const options& now, const options& wanted) {
  static constexpr std::array<std::string_view, 17> read_at_a_start{"listen",
                                                                    "data",
                                                                    "store",
                                                                    "threads",
                                                                    "insecure",
                                                                    "principals",
                                                                    "node",
                                                                    "epoch_term",
                                                                    "advertise",
                                                                    "max_downtime",
                                                                    "accept_clock",
                                                                    "log.format",
                                                                    "dispatch.profile",
                                                                    "dispatch.claim",
                                                                    "dispatch.controllers",
                                                                    "dispatch.backoff",
                                                                    "dispatch.backoff_max"};
  options before = now;
  options after = wanted;
  std::string names;
  for (const config_key& key : config_keys()) {
    if (std::ranges::find(read_at_a_start, key.name) == read_at_a_start.end()) continue;
    const bool same = std::visit(
        [](auto* a, auto* b) -> bool {
          if constexpr (std::is_same_v<decltype(a), decltype(b)>) return *a == *b;
          return false;
        },
        key.at(before), key.at(after));
    if (!same) names += (names.empty() ? "" : ", ") + std::string(key.name);
  }
  // Other files are read at once; only whether there is TLS at all stays as it was begun.
  if (now.has_tls() != wanted.has_tls()) {
    names += (names.empty() ? "" : ", ") + std::string("tls.certificate");
  }
  return names;
}

std::variant<invocation, say_and_exit> load_options(std::vector<std::string> arguments,
                                                    environment variables) {
  const auto refuse = [](const std::string& sentence) {
    return say_and_exit{"leaseholdd: " + sentence + "\n", exit_bad_options};
  };
  auto line = read_arguments(arguments);
  if (auto* end = std::get_if<say_and_exit>(&line)) return *end;
  auto& flags = std::get<command_line>(line);

  std::string config = flags.config;
  if (const auto named = variables.find("LEASEHOLD_CONFIG");
      config.empty() && named != variables.end()) {
    config = named->second;
  }
  std::vector<setting> all;
  for (auto source : {config.empty() ? settings_or_fault{} : read_config_file(config),
                      read_variables(variables), settings_or_fault{flags.settings}}) {
    if (const auto* fault = std::get_if<config_fault>(&source)) return refuse(fault->sentence);
    std::ranges::move(std::get<std::vector<setting>>(source), std::back_inserter(all));
  }

  invocation out{{}, std::move(arguments), std::move(variables)};
  if (auto fault = apply_settings(out.chosen, all)) return refuse(*fault);
  if (out.chosen.data.empty()) out.chosen.data = default_directory(out.variables);
  if (out.chosen.threads == 0) {
    out.chosen.threads =
        std::max<std::int64_t>(1, std::int64_t{std::thread::hardware_concurrency()} - 1);
  }
  if (auto fault = find_option_fault(out.chosen)) return refuse(*fault);
  out.restored_backup = flags.restored_backup;
  if (flags.print_config) return say_and_exit{print_config(out.chosen), 0};
  return out;
}

std::string print_config(const options& chosen) {
  std::string out;
  std::string_view section;
  for (const config_key& key : config_keys()) {
    if (key.at == nullptr) continue;
    // An empty text is no value that the file could have.
    if (key.kind == key_kind::text && print_value(key, chosen) == "\"\"") continue;
    const std::size_t dot = key.name.find('.');
    const std::string_view in = dot == std::string_view::npos ? "" : key.name.substr(0, dot);
    if (in != section) out += "\n[" + std::string(in) + "]\n";
    section = in;
    out += std::string(dot == std::string_view::npos ? key.name : key.name.substr(dot + 1)) +
           " = " + print_value(key, chosen) + '\n';
  }
  out += "\n[policy]\n" + print_policy(chosen.policy, nullptr);
  for (const auto& [name, queue] : chosen.queues) {
    const std::string table = "queues." + config_text::toml_string(name);
    out += "\n[" + table + "]\nmax_live = " + std::to_string(queue.max_live) + '\n';
    const std::string own = print_policy(queue.policy, &chosen.policy);
    if (!own.empty()) out.append("\n[").append(table).append(".policy]\n").append(own);
  }
  return out;
}

}  // namespace leasehold::server
