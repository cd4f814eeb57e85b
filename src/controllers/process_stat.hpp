// What /proc says about a process, as far as it identifies one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leasehold::controllers {

struct process_stat {
  std::int64_t pid = 0;
  char state = '?';
  std::int64_t process_group = 0;
  std::int64_t threads = 0;
  std::int64_t start_ticks = 0;

  /// A zombie whose other threads go on is at work.
  [[nodiscard]] bool is_living() const noexcept {
    return (state != 'Z' && state != 'X') || threads > 1;
  }
  friend bool operator==(const process_stat&, const process_stat&) = default;
};

/// The content of a /proc/PID/stat. The name of the program in it may hold spaces, parentheses and
/// line ends. Nothing when a field is missing or no number.
std::optional<process_stat> read_process_stat(std::string_view text) noexcept;

/// Nothing when there is no such process, or it may not be looked at.
std::optional<process_stat> stat_of(std::int64_t pid);

/// The living processes of a group.
std::vector<std::int64_t> living_members(std::int64_t process_group);

}  // namespace leasehold::controllers
