#include "leasehold/client/process_identity.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace leasehold::client {
namespace {

/// Where the numbers behind the name stand, counted from the state, which is field 3 of stat.
constexpr int group_field = 2;
constexpr int start_field = 19;

std::string first_bytes(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 1024> buffer;
  const auto count = read(file, buffer.data(), buffer.size());
  close(file);
  return count > 0 ? std::string(buffer.data(), static_cast<std::size_t>(count)) : std::string();
}

std::int64_t number_at(std::string_view fields, int which) {
  for (; which > 0; --which) {
    const auto space = fields.find(' ');
    if (space == std::string_view::npos) return 0;
    fields.remove_prefix(space + 1);
  }
  std::int64_t number = 0;
  std::from_chars(fields.data(), fields.data() + fields.size(), number);
  return number;
}

}  // namespace

std::optional<protocol::process_handle> identify_process(std::int64_t pid) {
  const auto stat = first_bytes("/proc/" + std::to_string(pid) + "/stat");
  // The name before may hold anything, also a parenthesis.
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = std::string_view(stat).substr(name_end + 2);
  protocol::process_handle handle;
  handle.platform = protocol::supported_platform;
  handle.pid = pid;
  handle.boot_id = first_bytes("/proc/sys/kernel/random/boot_id").substr(0, 36);
  handle.start_ticks = number_at(fields, start_field);
  handle.process_group = number_at(fields, group_field);
  if (!protocol::is_well_formed(handle)) return std::nullopt;
  return handle;
}

}  // namespace leasehold::client
