// Lengths of time and sizes as people write them: always with a unit, so that "10" can never mean
// ten of something else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// "250ms", "5s", "10m", "24h", "7d" in ms; whole numbers only. Nothing when it is written
/// otherwise or does not fit.
std::optional<std::int64_t> read_duration_ms(std::string_view text) noexcept;
/// "512B", "64KiB", "16MiB", "2GiB" in bytes. Nothing when it is written otherwise or does not fit.
std::optional<std::int64_t> read_size_bytes(std::string_view text) noexcept;

/// In the largest unit that is exact.
std::string print_duration(std::int64_t ms);
std::string print_size(std::int64_t bytes);

/// The known word that `unknown` was most likely meant to be: the shortest that begins with it,
/// else the nearest; empty when none is near.
template <class Words>
std::string nearest_word(std::string_view unknown, const Words& known);

/// How many letters must be changed, added or left out to make one text of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Words>
std::string nearest_word(std::string_view unknown, const Words& known) {
  std::string found;
  for (const std::string_view word : known) {
    const bool begins = !unknown.empty() && word.starts_with(unknown);
    if (begins && (found.empty() || word.size() < found.size())) found = word;
  }
  if (!found.empty()) return found;
  std::size_t best = unknown.size() / 3 + 1;
  for (const std::string_view word : known) {
    const std::size_t distance = edit_distance(unknown, word);
    if (distance <= best) {
      if (distance < best || found.empty()) found = word;
      best = distance;
    }
  }
  return found;
}

}  // namespace leasehold::server
