#include "tools/exec/process_group.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
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

std::string stat_text(const char* process) {
  const descriptor file(
      open((std::string("/proc/") + process + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const auto size = read(file.number(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
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

bool lives_in(const char* process, pid_t group) {
  const auto text = stat_text(process);
  const auto fields = fields_of(text);
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
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc"), closedir);
  if (!all) return false;
  while (const dirent* each = readdir(all.get())) {
    const char first = each->d_name[0];
    if (first >= '1' && first <= '9' && lives_in(each->d_name, group)) return true;
  }
  return false;
}

}  // namespace leasehold::tools
