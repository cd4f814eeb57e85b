#include "src/next_life.hpp"

#include <linux/close_range.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace leasehold::server {

std::vector<std::string> next_arguments(std::vector<std::string> arguments,
                                        const std::string& listen) {
  constexpr std::string_view once = "--restored-backup";
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == once || word.starts_with("--restored-backup=")) continue;
    if (!listen.empty() && word.starts_with("--listen=")) continue;
    if (!listen.empty() && word == "--listen") {
      ++i;  // its value
      continue;
    }
    out.push_back(std::move(arguments[i]));
  }
  if (!listen.empty()) out.push_back("--listen=" + listen);
  return out;
}

void begin_next_life(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program_invocation_name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> values;
  values.reserve(words.size() + 1);
  for (std::string& word : words) values.push_back(word.data());
  values.push_back(nullptr);
  constexpr unsigned first_of_ours = STDERR_FILENO + 1;
  // Libraries open descriptors without close-on-exec, and other threads do while this one is here.
  close_range(first_of_ours, std::numeric_limits<unsigned>::max(), CLOSE_RANGE_CLOEXEC);
  execv("/proc/self/exe", values.data());
}

}  // namespace leasehold::server
