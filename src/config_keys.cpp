#include "src/config_keys.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/config_text.hpp"
#include "src/config_units.hpp"
#include "src/store/hidden_passwords.hpp"

namespace leasehold::server {
namespace {

constexpr std::int64_t minute = 60'000;
constexpr std::int64_t day = 86'400'000;
constexpr std::int64_t kib = 1 << 10;
constexpr std::int64_t mib = 1 << 20;

template <auto Member>
key_slot at(options& o) {
  return &(o.*Member);
}

using enum key_kind;
constexpr std::array<config_key, 40> keys{{
    {"listen", text, 0, 0, "", "Address and port to listen on; port 0 takes a free one.",
     at<&options::listen>},
    {"data", text, 0, 0, "",
     "Data directory; made at the first start (default: leasehold under XDG_DATA_HOME or "
     "~/.local/share).",
     at<&options::data>},
    {"store", text, 0, 0, "",
     "Where the store is: sqlite:/PATH (a data directory) or postgres://USER@HOST/DATABASE; its "
     "password is best kept in a file that PGPASSFILE names (default: SQLite in the data "
     "directory).",
     at<&options::store>},
    {"threads", count, 0, 256, "", "Threads for sessions and leases; 0: cores - 1, at least 1.",
     at<&options::threads>},
    {"insecure", toggle, 0, 0, "",
     "Serve other machines without TLS: tokens and payloads then cross the network readable.",
     at<&options::insecure>},
    {"principals", text, 0, 0, "",
     "Principals file (default: principals.toml in the data directory).", at<&options::principals>},
    {"node", text, 0, 0, "", "Name of this coordinator, told to workers.", at<&options::node>},
    {"drain_timeout", duration, 0, 60 * minute, "",
     "How long the first SIGTERM lets open work finish.", at<&options::drain_timeout>},
    {"heartbeat", duration, 100, 5 * minute, "", "Silence after which a heartbeat is sent.",
     at<&options::heartbeat>},
    {"retention", duration, 0, 3650 * day, "",
     "How long evidence is kept; older rows are cut from the log. 0s: for ever.",
     at<&options::retention>},
    {"forget_after", duration, 0, 3650 * day, "",
     "How long a settled job or an idle lock is still known; at least 10m. 0s: for ever.",
     at<&options::forget_after>},
    {"max_downtime", duration, 0, 365 * day, "",
     "Longest absence that the clock is continued over after a reboot.",
     at<&options::max_downtime>},
    {"accept_clock", word, 0, 0, "none|wall|anchor",
     "How the clock goes on after an absence beyond max_downtime: as the wall clock says, or as if "
     "no "
     "time had passed.",
     at<&options::accept_clock>},
    {"max_expiry_lag", duration, 0, minute, "",
     "Longest wait of a due deadline for frames that were read before it.",
     at<&options::max_expiry_lag>},
    {"tls.certificate", text, 0, 0, "",
     "The server's certificate and those between it and its root (PEM); connections are over TLS "
     "then (default: none).",
     at<&options::tls_certificate>},
    {"tls.private_key", text, 0, 0, "",
     "Key of the certificate (PEM, no passphrase); only its owner may read it (default: none).",
     at<&options::tls_private_key>},
    {"tls.client_ca", text, 0, 0, "",
     "Certificates that clients' must be signed by (PEM) (default: none).",
     at<&options::tls_client_ca>},
    {"tls.client_certificates", word, 0, 0, "none|optional|required",
     "Whether clients are asked for a certificate; one that is shown must be good.",
     at<&options::tls_client_certificates>},
    {"log.level", word, 0, 0, "trace|debug|info|warn|error", "What is logged.",
     at<&options::log_level>},
    {"log.format", word, 0, 0, "auto|human|json",
     "How it is logged; auto: for people on a terminal, else JSON lines.",
     at<&options::log_format>},
    {"stream.frames_in_flight", count, 1, 65'536, "",
     "Unanswered frames of a session at which its socket is not read.",
     at<&options::frames_in_flight>},
    {"stream.outbound", size, 16 * kib, 64 * mib, "",
     "Bytes that may wait for a session's socket before it is closed as a slow reader.",
     at<&options::outbound_bytes>},
    {"stream.message", size, kib, 16 * mib, "", "Largest message of a worker.",
     at<&options::message_bytes>},
    {"stream.frames_per_second", count, 0, 100'000'000, "",
     "Frames a second of a session, twice as many for a moment; 0: no limit.",
     at<&options::frames_per_second>},
    {"stream.bytes_per_second", size, 0, 1024 * mib, "",
     "Bytes a second of a session, twice as many for a moment; 0B: no limit.",
     at<&options::bytes_per_second>},
    {"limits.leases_per_worker", count, 1, 10'000'000, "", "Most leases of one principal.",
     at<&options::leases_per_worker>},
    {"limits.leases_per_tenant", count, 1, 100'000'000, "", "Most leases of one tenant.",
     at<&options::leases_per_tenant>},
    {"limits.sessions_per_tenant", count, 1, 1'000'000, "",
     "Most live worker sessions of one tenant.", at<&options::sessions_per_tenant>},
    {"limits.waiters_per_lock", count, 1, 1'000'000, "", "Most requests in line for one lock.",
     at<&options::waiters_per_lock>},
    {"limits.lock_wait", duration, 0, day, "", "Longest wait for a lock.",
     at<&options::longest_lock_wait>},
    {"limits.payload_memory", size, mib, std::int64_t{1} << 40, "",
     "Payloads kept in memory; over it no job is taken.", at<&options::payload_memory_bytes>},
    {"dispatch.profile", word, 0, 0, "edge|standalone|cluster",
     "How often and how much at once cancels are dispatched.", at<&options::dispatch_profile>},
    {"dispatch.controllers", list, 0, 0, "",
     "How work is made to stop: stream asks its worker; process ends registered processes of this "
     "machine.",
     at<&options::dispatch_controllers>},
    {"dispatch.claim", duration, 1'000, 5 * minute, "",
     "How long one attempt of a dispatch may take before another may begin.",
     at<&options::dispatch_claim>},
    {"dispatch.ack_window", duration, 10, 60'000, "",
     "How long a worker has to acknowledge a cancel; below dispatch.claim.",
     at<&options::dispatch_ack_window>},
    {"dispatch.backoff", duration, 1, 60 * minute, "",
     "Pause before a failed dispatch is tried again; doubled each time.",
     at<&options::dispatch_backoff>},
    {"dispatch.backoff_max", duration, 1, day, "", "Longest of these pauses.",
     at<&options::dispatch_backoff_max>},
    {"http.allowed_origins", list, 0, 0, "",
     "Origins of browsers that may call; none: every browser is refused.",
     at<&options::allowed_origins>},
    {"http.metrics_on_loopback", toggle, 0, 0, "",
     "Show /metrics without a credential to callers on this machine.",
     at<&options::metrics_on_loopback>},
    {"queues.max_live", count, 0, 100'000'000, "", "Most live leases of the queue; 0: no limit.",
     nullptr},
}};

std::string in_quotes(std::string_view text) { return '"' + config_text::printable(text) + '"'; }

std::string described(const raw_value& value) {
  if (const auto* s = std::get_if<std::string>(&value)) return in_quotes(*s);
  if (const auto* n = std::get_if<std::int64_t>(&value)) return std::to_string(*n);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  return "a list";
}

std::optional<std::int64_t> as_number(const raw_value& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(s->data(), s->data() + s->size(), number);
  if (error != std::errc{} || end != s->data() + s->size()) return std::nullopt;
  return number;
}

std::optional<bool> as_toggle(const raw_value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  const auto* s = std::get_if<std::string>(&value);
  if (s != nullptr && (*s == "true" || *s == "1")) return true;
  if (s != nullptr && (*s == "false" || *s == "0")) return false;
  return std::nullopt;
}

std::optional<std::vector<std::string>> as_list(const raw_value& value) {
  if (const auto* many = std::get_if<std::vector<std::string>>(&value)) return *many;
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr) return std::nullopt;
  return config_text::split(*s, ',');
}

std::optional<std::int64_t> as_measure(const config_key& key, const raw_value& value) {
  if (key.kind == count) return as_number(value);
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr) return std::nullopt;
  return key.kind == duration ? read_duration_ms(*s) : read_size_bytes(*s);
}

/// True when the value fits the key and was put into its slot.
bool put(const config_key& key, const raw_value& value, const key_slot& slot) {
  switch (key.kind) {
    case text: {
      const auto* s = std::get_if<std::string>(&value);
      if (s == nullptr || s->empty()) return false;
      *std::get<std::string*>(slot) = *s;
      return true;
    }
    case word: {
      const auto* s = std::get_if<std::string>(&value);
      const auto words = config_text::split(key.words, '|');
      if (s == nullptr || std::ranges::find(words, *s) == words.end()) return false;
      *std::get<std::string*>(slot) = *s;
      return true;
    }
    case toggle: {
      const auto b = as_toggle(value);
      if (b) *std::get<bool*>(slot) = *b;
      return b.has_value();
    }
    case list: {
      auto many = as_list(value);
      if (many) *std::get<std::vector<std::string>*>(slot) = std::move(*many);
      return many.has_value();
    }
    case count:
    case size:
    case duration:
      break;
  }
  const auto number = as_measure(key, value);
  if (!number || *number < key.lowest || *number > key.highest) return false;
  if (auto* const* d = std::get_if<protocol::duration*>(&slot)) {
    (*d)->ms = *number;
  } else {
    *std::get<std::int64_t*>(slot) = *number;
  }
  return true;
}

std::string refusal(const setting& s, std::string_view what_is_allowed) {
  const std::string queue = s.queue.empty() ? "" : " of queue " + in_quotes(s.queue);
  return s.where + ": " + s.name + queue + " cannot be " + described(s.value) + "; it takes " +
         std::string(what_is_allowed) + ".";
}

std::string unknown_key(const setting& s) {
  std::vector<std::string_view> known;
  known.reserve(keys.size());
  for (const config_key& key : keys) known.push_back(key.name);
  std::vector<std::string> policy_names;
  for (const auto& key : protocol::policy_keys()) {
    policy_names.push_back("policy." + std::string(key.name));
  }
  known.insert(known.end(), policy_names.begin(), policy_names.end());
  const std::string nearest = nearest_word(s.name, known);
  return s.where + ": there is no key " + in_quotes(s.name) +
         (nearest.empty() ? "; leaseholdd --help lists all keys."
                          : "; did you mean " + nearest + "?");
}

std::optional<std::string> set_policy_key(protocol::policy& chosen, const setting& s) {
  const protocol::policy_key* key = protocol::find_policy_key(
      std::string_view(s.name).substr(std::string_view("policy.").size()));
  if (key == nullptr) return unknown_key(s);
  std::variant<std::int64_t, std::string> value;
  if (key->words.empty()) {
    const auto number = as_number(s.value);
    if (!number || *number < key->lowest || *number > key->highest) {
      return refusal(s, allowed(*key));
    }
    value = *number;
  } else {
    const auto* text_value = std::get_if<std::string>(&s.value);
    if (text_value == nullptr) return refusal(s, allowed(*key));
    value = *text_value;
  }
  if (!key->set(chosen, value)) return refusal(s, allowed(*key));
  return std::nullopt;
}

bool is_policy(const setting& s) { return s.name.starts_with("policy."); }

std::optional<std::string> set_plain_key(options& chosen, const setting& s) {
  const config_key* key = find_config_key(s.name);
  const bool of_queue = key != nullptr && key->at == nullptr;
  if (key == nullptr || of_queue != !s.queue.empty()) return unknown_key(s);
  const key_slot slot = of_queue ? key_slot{&chosen.queues[s.queue].max_live} : key->at(chosen);
  if (!put(*key, s.value, slot)) return refusal(s, allowed(*key));
  return std::nullopt;
}

}  // namespace

std::span<const config_key> config_keys() noexcept { return keys; }

const config_key* find_config_key(std::string_view name) noexcept {
  const auto found = std::ranges::find(keys, name, &config_key::name);
  return found == keys.end() ? nullptr : &*found;
}

std::optional<std::string> apply_settings(options& chosen, std::span<const setting> settings) {
  for (const setting& s : settings) {
    if (!s.queue.empty()) chosen.queues[s.queue];
    std::optional<std::string> fault;
    if (!is_policy(s)) {
      fault = set_plain_key(chosen, s);
    } else if (s.queue.empty()) {
      fault = set_policy_key(chosen.policy, s);
    }
    if (fault) return fault;
  }
  // The queues' own keys come last: they overrule a default whatever source it came from.
  for (auto& [name, queue] : chosen.queues) queue.policy = chosen.policy;
  for (const setting& s : settings) {
    if (!is_policy(s) || s.queue.empty()) continue;
    if (auto fault = set_policy_key(chosen.queues[s.queue].policy, s)) return fault;
  }
  return std::nullopt;
}

std::string print_value(const config_key& key, const options& chosen) {
  options copy = chosen;
  const key_slot slot = key.at(copy);
  switch (key.kind) {
    case text:
    case word:
      return config_text::toml_string(storage::hide_passwords(*std::get<std::string*>(slot)));
    case count:
      return std::to_string(*std::get<std::int64_t*>(slot));
    case toggle:
      return *std::get<bool*>(slot) ? "true" : "false";
    case duration:
      return config_text::toml_string(print_duration(std::get<protocol::duration*>(slot)->ms));
    case size:
      return config_text::toml_string(print_size(*std::get<std::int64_t*>(slot)));
    case list:
      return config_text::toml_list(*std::get<std::vector<std::string>*>(slot));
  }
  return {};
}

std::string allowed(const config_key& key) {
  switch (key.kind) {
    case text:
      return "a text that is not empty";
    case word:
      return "one of " + std::string(key.words);
    case count:
      return "a whole number from " + std::to_string(key.lowest) + " to " +
             std::to_string(key.highest);
    case toggle:
      return "true or false";
    case duration:
      return "a duration with its unit (ms, s, m, h, d) from " + print_duration(key.lowest) +
             " to " + print_duration(key.highest) + ", such as \"10s\"";
    case size:
      return "a size with its unit (B, KiB, MiB, GiB) from " + print_size(key.lowest) + " to " +
             print_size(key.highest) + ", such as \"64KiB\"";
    case list:
      return "a list of texts";
  }
  return {};
}

std::string allowed(const protocol::policy_key& key) {
  if (!key.words.empty()) return "one of " + std::string(key.words);
  return "a whole number from " + std::to_string(key.lowest) + " to " +
         std::to_string(key.highest) + (key.name.ends_with("_ms") ? " (ms)" : "");
}

}  // namespace leasehold::server
