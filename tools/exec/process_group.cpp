#include "tools/exec/process_group.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/child_process.hpp"

namespace leasehold::tools {
namespace {

// Of /proc/PID/stat, counted from what stands after the name of the program (proc(5)).
constexpr std::size_t state_field = 0;
constexpr std::size_t group_field = 2;
constexpr std::size_t threads_field = 17;

/// Nothing when it cannot be read; empty when the process is gone.
std::optional<std::string> stat_text(pid_t process) {
  const auto name = "/proc/" + std::to_string(process) + "/stat";
  const descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const auto size = file ? read(file.number(), text.data(), text.size()) : -1;
  if (size >= 0) return std::string(text.data(), static_cast<std::size_t>(size));
  return errno == ENOENT || errno == ESRCH ? std::optional(std::string()) : std::nullopt;
}

std::vector<std::string_view> fields_of(std::string_view stat) {
  std::vector<std::string_view> fields;
  // The name stands in parentheses and may hold anything, those too.
  const auto name_end = stat.rfind(')');
  if (name_end == stat.npos) return fields;
  stat.remove_prefix(std::min(name_end + 2, stat.size()));
  while (!stat.empty()) {
    const auto end = std::min(stat.find(' '), stat.size());
    fields.push_back(stat.substr(0, end));
    stat.remove_prefix(std::min(end + 1, stat.size()));
  }
  return fields;
}

long number_of(std::string_view text) {
  long value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool lives_in(pid_t process, pid_t group) {
  // Asked of the kernel, the group costs no open file; where that is not allowed, the file tells.
  const auto its_group = getpgid(process);
  const bool is_known = its_group >= 0 || errno == ESRCH;
  if (is_known && its_group != group) return false;
  const auto text = stat_text(process);
  if (!text) return is_known;  // in doubt it lives: nobody else may have the lock then
  const auto fields = fields_of(*text);
  if (fields.size() <= threads_field || number_of(fields[group_field]) != group) return false;
  const char state = fields[state_field].front();
  // The first thread of a process may have ended before the others.
  return (state != 'Z' && state != 'X') || number_of(fields[threads_field]) > 1;
}

}  // namespace

void signal_group(pid_t group, int number) noexcept {
  if (group > 1) kill(-group, number);
}

void ask_group_to_end(pid_t group) noexcept {
  signal_group(group, SIGTERM);
  signal_group(group, SIGCONT);
}

bool group_lives(pid_t group) {
  if (group <= 1 || (kill(-group, 0) != 0 && errno == ESRCH)) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc"), closedir);
  if (!all) return true;  // in doubt, as above
  while (const dirent* each = readdir(all.get())) {
    const char first = each->d_name[0];
    if (first < '1' || first > '9') continue;
    if (lives_in(static_cast<pid_t>(number_of(each->d_name)), group)) return true;
  }
  return false;
}

bool processes_can_be_seen() {
  const auto own = stat_text(getpid());
  return own && fields_of(*own).size() > threads_field;
}

}  // namespace leasehold::tools
