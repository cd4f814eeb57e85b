// The policy of a lease (protocol.md 1): what its submitter, its queue or the server chose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

enum class on_deadline : std::uint8_t { reoffer, fail };
enum class on_conflict : std::uint8_t { resolve_by_record, freeze };
enum class on_unresolved : std::uint8_t { operator_, fail };
enum class outage_expiry : std::uint8_t { expire, extend };

/// All times in ms. 0 is a value of its own and never "use the default".
struct policy {
  duration ack_timeout{5000};
  duration lease_duration{30000};
  duration max_lifetime{0};  ///< 0: none
  duration cancel_grace{10000};
  duration reconcile_window{60000};
  duration max_clock_skew{5000};
  std::int64_t max_attempts = 0;  ///< 0: none
  std::int64_t max_losses = 0;    ///< 0: none
  duration retry_backoff{0};
  duration retry_backoff_max{60000};
  duration lock_delay{0};
  duration recovery_grace{5000};
  on_deadline on_ack_timeout = on_deadline::reoffer;
  on_deadline on_expiry = on_deadline::reoffer;
  protocol::on_conflict on_conflict = protocol::on_conflict::resolve_by_record;
  protocol::on_unresolved on_unresolved = protocol::on_unresolved::operator_;
  protocol::outage_expiry outage_expiry = protocol::outage_expiry::expire;
  std::int64_t defer_limit = 64;

  friend bool operator==(const policy&, const policy&) = default;
};

/// One key of a policy: how it is called in files and bodies, read and written.
struct policy_key {
  std::string_view name;
  /// Sets the key; false when the value has the wrong type or word.
  bool (*set)(policy&, const std::variant<std::int64_t, std::string>& value);
  std::variant<std::int64_t, std::string> (*get)(const policy&);
  /// What a server accepts; `words` for the keys that take a word.
  std::int64_t lowest;
  std::int64_t highest;
  std::string_view words;
};

/// Every key of a policy in the order of protocol.md.
std::span<const policy_key> policy_keys() noexcept;
const policy_key* find_policy_key(std::string_view name) noexcept;

/// Checks the bounds a server puts on a policy (replay does not). Yields the sentence that says
/// what is wrong: the answer is invalid_policy.
std::optional<std::string> find_fault(const policy& chosen);

/// backoff(n) of protocol.md 2; 0 for n < 1.
duration backoff(const policy& chosen, std::int64_t n) noexcept;

}  // namespace leasehold::protocol
