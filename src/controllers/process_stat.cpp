#include "src/controllers/process_stat.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string>

namespace leasehold::controllers {

namespace {

// Fields of /proc/PID/stat as proc(5) counts them, from 1; those behind the name begin with 3.
constexpr int state_field = 3;
constexpr int process_group_field = 5;
constexpr int threads_field = 20;
constexpr int start_ticks_field = 22;

bool read_number(std::string_view text, std::int64_t& to) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc{} && end == text.data() + text.size();
}

struct directory_closer {
  void operator()(DIR* open) const noexcept { closedir(open); }
};

}  // namespace

std::optional<process_stat> read_process_stat(std::string_view text) noexcept {
  // Only the last parenthesis ends the name: it may hold others.
  const auto name = text.find(" (");
  const auto end = text.rfind(") ");
  if (name == std::string_view::npos || end == std::string_view::npos || end < name) {
    return std::nullopt;
  }
  process_stat out;
  if (!read_number(text.substr(0, name), out.pid)) return std::nullopt;
  std::string_view rest = text.substr(end + 2);
  for (int field = state_field; field <= start_ticks_field; ++field) {
    const auto blank = rest.find_first_of(" \n");
    const auto word = rest.substr(0, blank);
    if (word.empty()) return std::nullopt;
    bool is_read = true;
    if (field == state_field) out.state = word.front();
    if (field == process_group_field) is_read = read_number(word, out.process_group);
    if (field == threads_field) is_read = read_number(word, out.threads);
    if (field == start_ticks_field)
      return read_number(word, out.start_ticks) ? std::optional(out) : std::nullopt;
    if (!is_read || blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  return std::nullopt;
}

std::optional<process_stat> stat_of(std::int64_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 2048> text{};
  // The kernel makes the whole line at the first read.
  const auto size = read(file, text.data(), text.size());
  close(file);
  if (size <= 0) return std::nullopt;
  return read_process_stat({text.data(), static_cast<std::size_t>(size)});
}

std::vector<std::int64_t> living_members(std::int64_t process_group) {
  std::vector<std::int64_t> out;
  const std::unique_ptr<DIR, directory_closer> all(opendir("/proc"));
  while (const dirent* entry = all ? readdir(all.get()) : nullptr) {
    std::int64_t pid = 0;
    if (!read_number(static_cast<const char*>(entry->d_name), pid)) continue;
    const auto stat = stat_of(pid);
    if (stat && stat->process_group == process_group && stat->is_living()) out.push_back(pid);
  }
  return out;
}

}  // namespace leasehold::controllers
