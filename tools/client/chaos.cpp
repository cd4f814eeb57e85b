#include "leasehold/client/chaos.hpp"

#include <charconv>

namespace leasehold::client {
namespace {

constexpr std::int64_t longest_delay_ms = 60000;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool read_chance(std::string_view text, double& into) {
  const auto value = number<double>(text);
  if (!value || !(*value >= 0 && *value <= 1)) return false;
  into = *value;
  return true;
}

/// "MIN..MAXms" or "Nms".
bool read_delay(std::string_view text, chaos_options& into) {
  if (!text.ends_with("ms")) return false;
  text.remove_suffix(2);
  const auto dots = text.find("..");
  const auto least = number<std::int64_t>(text.substr(0, dots));
  const auto most = dots == text.npos ? least : number<std::int64_t>(text.substr(dots + 2));
  if (!least || !most || *least < 0 || *least > *most || *most > longest_delay_ms) return false;
  into.delay_least = {*least};
  into.delay_most = {*most};
  return true;
}

bool read_seed(std::string_view text, std::uint64_t& into) {
  const auto value = number<std::uint64_t>(text);
  if (value) into = *value;
  return value.has_value();
}

/// The sentence that says what is wrong with `key`, or nothing.
std::string read_key(std::string_view key, std::string_view value, chaos_options& into) {
  const std::string name(key);
  if (key == "reorder" || key == "dup" || key == "drop") {
    auto& chance = key == "reorder" ? into.reorder : key == "dup" ? into.dup : into.drop;
    return read_chance(value, chance) ? "" : "chaos: " + name + " must be a number from 0 to 1.";
  }
  if (key == "delay") {
    return read_delay(value, into)
               ? ""
               : "chaos: delay must be MIN..MAXms with 0 <= MIN <= MAX <= 60000.";
  }
  if (key == "seed")
    return read_seed(value, into.seed) ? "" : "chaos: seed must be a whole number.";
  return "chaos: '" + name + "' is not known; use reorder, dup, drop, delay and seed.";
}

std::string short_text(double chance) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, chance);
  return {buffer, end};
}

}  // namespace

std::variant<chaos_options, std::string> parse_chaos(std::string_view text) {
  chaos_options options;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto part = text.substr(0, comma);
    text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
    const auto equals = part.find('=');
    if (equals == part.npos) return "chaos: '" + std::string(part) + "' must be KEY=VALUE.";
    if (auto wrong = read_key(part.substr(0, equals), part.substr(equals + 1), options);
        !wrong.empty()) {
      return wrong;
    }
  }
  return options;
}

std::string to_text(const chaos_options& options) {
  return "reorder=" + short_text(options.reorder) + ",dup=" + short_text(options.dup) +
         ",drop=" + short_text(options.drop) + ",delay=" + std::to_string(options.delay_least.ms) +
         ".." + std::to_string(options.delay_most.ms) + "ms,seed=" + std::to_string(options.seed);
}

chaos_dice::chaos_dice(const chaos_options& options, std::uint64_t stream)
    : options_(options), random_(options.seed * 2 + stream) {}

/// Made by hand, because the standard distributions differ between libraries: a seed must mean the
/// same run everywhere.
bool chaos_dice::chance(double of) {
  constexpr double range = 9007199254740992.0;  // 2^53
  return static_cast<double>(random_() >> 11) / range < of;
}

protocol::duration chaos_dice::between(protocol::duration least, protocol::duration most) {
  const auto width = static_cast<std::uint64_t>(most.ms - least.ms) + 1;
  return {least.ms + static_cast<std::int64_t>(random_() % width)};
}

std::vector<local_time> chaos_dice::throw_for(local_time now) {
  ++counts_.frames;
  if (chance(options_.drop)) {
    ++counts_.dropped;
    return {};
  }
  const int copies = chance(options_.dup) ? 2 : 1;
  if (copies == 2) ++counts_.repeated;
  std::vector<local_time> arrivals;
  for (int copy = 0; copy < copies; ++copy) {
    auto at = now + between(options_.delay_least, options_.delay_most);
    if (chance(options_.reorder)) {
      ++counts_.reordered;
      at = at + between({1}, options_.reorder_window);
    }
    arrivals.push_back(at);
  }
  return arrivals;
}

}  // namespace leasehold::client
