// The table of configuration keys: from it come the file's keys, the variables, the flags, their
// help, their bounds and --print-config.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/options.hpp"

namespace leasehold::server {

enum class key_kind : std::uint8_t { text, word, count, toggle, duration, size, list };

/// Where a key's value lives in the options.
using key_slot = std::variant<std::string*, std::int64_t*, bool*, protocol::duration*,
                              std::vector<std::string>*>;

struct config_key {
  std::string_view name;  ///< as in the file: "log.level" is `level` under [log]
  key_kind kind;
  std::int64_t lowest;  ///< count: itself; duration: ms; size: bytes
  std::int64_t highest;
  std::string_view words;  ///< of a word: what it may be, parted by |
  std::string_view help;
  key_slot (*at)(options&);
};

std::span<const config_key> config_keys() noexcept;
const config_key* find_config_key(std::string_view name) noexcept;

/// A value as its source has it. Variables and flags only have text.
using raw_value = std::variant<std::string, std::int64_t, bool, std::vector<std::string>>;

/// One value from one source.
struct setting {
  std::string name;   ///< "log.level"; of a policy "policy.lease_duration_ms"
  std::string queue;  ///< not empty: the key belongs to this queue
  raw_value value;
  std::string
      where;  ///< for people: "leaseholdd.toml, line 3", "LEASEHOLD_LOG_LEVEL", "--log-level"
};

/// Puts settings into the options in their order. Yields the sentence about the first that is
/// wrong; it names the key, where it stands and what is allowed.
std::optional<std::string> apply_settings(options& chosen, std::span<const setting> settings);

/// The value as the file would have it.
std::string print_value(const config_key& key, const options& chosen);
/// What is allowed, for people: "a duration from 0ms to 10m, such as 10s".
std::string allowed(const config_key& key);
std::string allowed(const protocol::policy_key& key);

}  // namespace leasehold::server
