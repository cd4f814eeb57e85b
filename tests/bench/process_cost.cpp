#include "process_cost.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace leasehold::bench {

namespace {
std::string proc_file(pid_t process, const char* name) {
  return "/proc/" + std::to_string(process) + "/" + name;
}
}  // namespace

double cpu_seconds_of(pid_t process) {
  std::ifstream in(proc_file(process, "stat"));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  // The name of the program may have spaces; what follows it has a fixed order.
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::int64_t memory_of(pid_t process) {
  std::ifstream in(proc_file(process, "status"));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("RssAnon:")) continue;
    std::istringstream fields(line.substr(8));
    std::int64_t kib = 0;
    fields >> kib;
    return kib * 1024;
  }
  return 0;
}

}  // namespace leasehold::bench
