#include "src/config_units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <vector>

namespace leasehold::server {
namespace {

struct unit {
  std::string_view word;
  std::int64_t factor;
};

constexpr std::array<unit, 5> durations{
    unit{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
constexpr std::array<unit, 4> sizes{
    unit{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

template <class Units>
std::optional<std::int64_t> read(std::string_view text, const Units& units) noexcept {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  for (const unit& u : units) {
    if (text != u.word) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / u.factor) return std::nullopt;
    return number * u.factor;
  }
  return std::nullopt;
}

template <class Units>
std::string print(std::int64_t value, const Units& units) {
  unit chosen = units.front();
  for (const unit& u : units) {
    if (value != 0 && value % u.factor == 0) chosen = u;
  }
  return std::to_string(value / chosen.factor) + std::string(chosen.word);
}

}  // namespace

std::optional<std::int64_t> read_duration_ms(std::string_view text) noexcept {
  return read(text, durations);
}

std::optional<std::int64_t> read_size_bytes(std::string_view text) noexcept {
  return read(text, sizes);
}

std::string print_duration(std::int64_t ms) { return print(ms, durations); }
std::string print_size(std::int64_t bytes) { return print(bytes, sizes); }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = above[0];
    above[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t same = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = above[j];
      above[j] = std::min({same, above[j] + 1, above[j - 1] + 1});
    }
  }
  return above[b.size()];
}

}  // namespace leasehold::server
