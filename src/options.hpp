// Everything that can be chosen about leaseholdd, in one struct that is filled and checked once.
// Defaults are overruled by the configuration file, that by LEASEHOLD_* variables, those by flags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/protocol/policy.hpp"
#include "leasehold/protocol/units.hpp"
#include "src/store/store_url.hpp"

namespace leasehold::server {

/// An address to listen on.
struct endpoint {
  std::string host = "127.0.0.1";  ///< an IPv4 or IPv6 address
  std::uint16_t port = 7878;       ///< 0: any that is free
  friend bool operator==(const endpoint&, const endpoint&) = default;
};
/// "127.0.0.1:7878", "[::1]:7878" or "localhost:7878".
std::optional<endpoint> read_endpoint(std::string_view text);
/// Reachable from this machine only.
bool is_loopback(const endpoint& where);

/// What is special about one queue; a queue needs no entry to be used.
struct queue_options {
  std::int64_t max_live = 0;  ///< most live leases of it; 0: no limit
  protocol::policy policy;    ///< the default policy with the queue's own keys
  friend bool operator==(const queue_options&, const queue_options&) = default;
};

struct options {
  std::string listen = "127.0.0.1:7878";
  std::string data;                 ///< directory; empty until load() has chosen it
  std::string store;                ///< its URL, maybe with a password; empty: SQLite in `data`
  std::int64_t threads = 0;         ///< 0: cores - 1, at least 1
  bool insecure = false;            ///< listen on other addresses than loopback without TLS
  std::string principals;           ///< file; empty: principals.toml in the data directory
  std::string node = "leaseholdd";  ///< this coordinator's name, told to workers

  std::string tls_certificate;  ///< PEM file; empty: connections are plain
  std::string tls_private_key;
  std::string tls_client_ca;
  std::string tls_client_certificates = "none";  ///< or optional, or required

  std::string log_level = "info";
  std::string log_format = "auto";  ///< auto: for people on a terminal, else JSON lines

  protocol::duration drain_timeout{10'000};
  protocol::duration heartbeat{10'000};
  std::int64_t frames_in_flight = 1024;     ///< of a session; over it the socket is not read
  std::int64_t outbound_bytes = 256 << 10;  ///< waiting for a session's socket
  std::int64_t frames_per_second = 20'000;  ///< of a session; 0: no limit
  std::int64_t bytes_per_second = 1 << 20;  ///< of a session; 0: no limit
  std::int64_t message_bytes = 64 << 10;    ///< of one message of a worker

  protocol::duration retention{7 * 86'400'000LL};  ///< of evidence; 0: for ever
  protocol::duration forget_after{86'400'000};     ///< settled jobs, idle locks; 0: never

  protocol::duration max_downtime{86'400'000};
  std::string accept_clock = "none";  ///< wall or anchor: start although max_downtime is passed
  protocol::duration max_expiry_lag{5'000};

  std::int64_t leases_per_worker = 10'000;
  std::int64_t leases_per_tenant = 1'000'000;
  std::int64_t sessions_per_tenant = 20'000;
  std::int64_t waiters_per_lock = 16'384;
  protocol::duration longest_lock_wait{600'000};
  std::int64_t payload_memory_bytes = 512 << 20;

  std::string dispatch_profile = "standalone";  ///< or edge, or cluster
  std::vector<std::string> dispatch_controllers{"stream"};
  protocol::duration dispatch_claim{30'000};
  protocol::duration dispatch_ack_window{2'000};
  protocol::duration dispatch_backoff{1'000};
  protocol::duration dispatch_backoff_max{300'000};

  std::vector<std::string> allowed_origins;  ///< of browsers; none: refused
  bool metrics_on_loopback = false;  ///< /metrics without a credential for callers on this machine

  protocol::policy policy;
  std::map<std::string, queue_options> queues;

  [[nodiscard]] endpoint address() const;
  [[nodiscard]] bool has_tls() const { return !tls_certificate.empty(); }
  [[nodiscard]] std::filesystem::path data_directory() const { return data; }
  [[nodiscard]] std::filesystem::path principals_file() const;
  /// Where the store is; of options that load_options has checked.
  [[nodiscard]] storage::store_place place_of_store() const;
  /// The policy of a job that names none.
  [[nodiscard]] const protocol::policy& policy_of(const std::string& queue) const;
  friend bool operator==(const options&, const options&) = default;
};

/// The program's environment: names and values.
using environment = std::map<std::string, std::string>;

/// Print `text` and end with `exit_code`: help, the version, the effective configuration, or one
/// sentence about what is wrong.
struct say_and_exit {
  std::string text;
  int exit_code = 0;
};

/// What was asked for on the command line.
struct invocation {
  options chosen;
  std::vector<std::string> arguments;  ///< as given: reload() reads them again
  environment variables;
  bool restored_backup = false;  ///< of this start alone, so it stands in no file
};

/// The keys that differ and that only a start reads, for a person: "listen, threads".
std::string changed_until_restart(const options& now, const options& wanted);

inline constexpr int exit_bad_options = 2;

/// Reads all sources. `arguments` without the program's name.
std::variant<invocation, say_and_exit> load_options(std::vector<std::string> arguments,
                                                    environment variables);

/// The effective options as a configuration file that has the same effect, but that it holds no
/// secret: a password in the URL of the store is left out.
std::string print_config(const options& chosen);

}  // namespace leasehold::server
