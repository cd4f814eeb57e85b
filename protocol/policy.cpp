// The keys of a policy, their bounds, and the backoff that follows from one.
#include "leasehold/protocol/policy.hpp"

#include <algorithm>
#include <array>

namespace leasehold::protocol {
namespace {

using value = std::variant<std::int64_t, std::string>;

constexpr std::int64_t thirty_days_ms = std::int64_t{30} * 24 * 60 * 60 * 1000;
// One lease keeps no more frames than this, each of up to 4 KiB.
constexpr std::int64_t most_deferred = 4096;

template <duration policy::*Member>
constexpr policy_key time_key(std::string_view name, std::int64_t lowest = 0,
                              std::int64_t highest = max_number) {
  return {name,
          [](policy& p, const value& v) {
            const auto* ms = std::get_if<std::int64_t>(&v);
            if (ms != nullptr) (p.*Member).ms = *ms;
            return ms != nullptr;
          },
          [](const policy& p) { return value{(p.*Member).ms}; },
          lowest,
          highest,
          {}};
}

template <std::int64_t policy::*Member>
constexpr policy_key count_key(std::string_view name, std::int64_t highest = max_number) {
  return {name,
          [](policy& p, const value& v) {
            const auto* number = std::get_if<std::int64_t>(&v);
            if (number != nullptr) p.*Member = *number;
            return number != nullptr;
          },
          [](const policy& p) { return value{p.*Member}; },
          0,
          highest,
          {}};
}

constexpr std::string_view choices(on_deadline) { return "reoffer|fail"; }
constexpr std::string_view choices(on_conflict) { return "resolve_by_record|freeze"; }
constexpr std::string_view choices(on_unresolved) { return "operator|fail"; }
constexpr std::string_view choices(outage_expiry) { return "expire|extend"; }

// Each choice has two words, and its values are 0 and 1 in the order of the words.
template <auto Member, class Choice>
constexpr policy_key choice_key(std::string_view name, Choice) {
  return {name,
          [](policy& p, const value& v) {
            const auto* text = std::get_if<std::string>(&v);
            constexpr auto words = choices(Choice{});
            constexpr auto bar = words.find('|');
            if (text == nullptr) return false;
            if (*text != words.substr(0, bar) && *text != words.substr(bar + 1)) return false;
            p.*Member = static_cast<Choice>(*text == words.substr(0, bar) ? 0 : 1);
            return true;
          },
          [](const policy& p) {
            constexpr auto words = choices(Choice{});
            constexpr auto bar = words.find('|');
            const bool first = p.*Member == Choice{};
            return value{std::string(first ? words.substr(0, bar) : words.substr(bar + 1))};
          },
          0,
          0,
          choices(Choice{})};
}

constexpr std::array keys{
    time_key<&policy::ack_timeout>("ack_timeout_ms", 1, thirty_days_ms),
    time_key<&policy::lease_duration>("lease_duration_ms", 1, thirty_days_ms),
    time_key<&policy::max_lifetime>("max_lifetime_ms"),
    time_key<&policy::cancel_grace>("cancel_grace_ms"),
    time_key<&policy::reconcile_window>("reconcile_window_ms"),
    time_key<&policy::max_clock_skew>("max_clock_skew_ms"),
    count_key<&policy::max_attempts>("max_attempts"),
    count_key<&policy::max_losses>("max_losses"),
    time_key<&policy::retry_backoff>("retry_backoff_ms"),
    time_key<&policy::retry_backoff_max>("retry_backoff_max_ms"),
    time_key<&policy::lock_delay>("lock_delay_ms"),
    time_key<&policy::recovery_grace>("recovery_grace_ms"),
    choice_key<&policy::on_ack_timeout>("on_ack_timeout", on_deadline{}),
    choice_key<&policy::on_expiry>("on_expiry", on_deadline{}),
    choice_key<&policy::on_conflict>("on_conflict", on_conflict{}),
    choice_key<&policy::on_unresolved>("on_unresolved", on_unresolved{}),
    choice_key<&policy::outage_expiry>("outage_expiry", outage_expiry{}),
    count_key<&policy::defer_limit>("defer_limit", most_deferred),
};

}  // namespace

std::span<const policy_key> policy_keys() noexcept { return keys; }

const policy_key* find_policy_key(std::string_view name) noexcept {
  const auto* found =
      std::find_if(keys.begin(), keys.end(), [name](const auto& key) { return key.name == name; });
  return found == keys.end() ? nullptr : found;
}

std::optional<std::string> find_fault(const policy& chosen) {
  for (const auto& key : keys) {
    const auto held = key.get(chosen);
    const auto* number = std::get_if<std::int64_t>(&held);
    if (number == nullptr || (*number >= key.lowest && *number <= key.highest)) continue;
    return std::string(key.name) + " must be from " + std::to_string(key.lowest) + " to " +
           std::to_string(key.highest) + ", not " + std::to_string(*number) + ".";
  }
  if (chosen.max_lifetime.ms != 0 && chosen.max_lifetime < chosen.lease_duration) {
    return "max_lifetime_ms must be 0 (none) or at least lease_duration_ms (" +
           std::to_string(chosen.lease_duration.ms) + "), not " +
           std::to_string(chosen.max_lifetime.ms) + ".";
  }
  return std::nullopt;
}

duration backoff(const policy& chosen, std::int64_t n) noexcept {
  if (n < 1 || chosen.retry_backoff.ms <= 0) return duration{0};
  const auto doublings = std::min<std::int64_t>(n - 1, 32);
  const auto highest = chosen.retry_backoff_max.ms;
  if (chosen.retry_backoff.ms > (highest >> doublings)) return chosen.retry_backoff_max;
  return duration{chosen.retry_backoff.ms << doublings};
}

}  // namespace leasehold::protocol
