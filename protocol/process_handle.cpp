#include "leasehold/protocol/process_handle.hpp"

#include <algorithm>
#include <cstddef>

namespace leasehold::protocol {

namespace {

constexpr std::int64_t lowest_pid = 2;  // 1 is init
constexpr std::int64_t highest_pid = std::int64_t{1} << 22U;
constexpr std::size_t longest_platform = 16;
constexpr std::size_t uuid_size = 36;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_platform(std::string_view text) {
  return !text.empty() && text.size() <= longest_platform &&
         std::ranges::all_of(text, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); });
}

bool is_uuid(std::string_view text) {
  if (text.size() != uuid_size) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    if (dash ? c != '-' : !(is_digit(c) || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

}  // namespace

bool is_well_formed(const process_handle& handle) noexcept {
  return is_platform(handle.platform) && handle.pid >= lowest_pid && handle.pid <= highest_pid &&
         is_uuid(handle.boot_id) && handle.start_ticks >= 1 &&
         handle.start_ticks <= 0x7fffffffffff && handle.process_group == handle.pid;
}

}  // namespace leasehold::protocol
