#include "recycled_number.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace leasehold::tests {

namespace {

/// Another process may take the number in between, and it may begin within the same tick.
constexpr int most_tries = 200;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) == "1";
}

int try_to_recycle() {
  std::int64_t number = 0;
  {
    target_process former;
    number = former.pid();
  }
  int error = 0;
  for (int i = 0; i < most_tries; ++i) {
    const auto again = target_process::with_number(number, error);
    if (error != EEXIST) break;
  }
  return error;
}

/// The same test as the first user of namespaces of its own, with a /proc that shows them.
bool passes_elsewhere(const std::string& test) {
  std::array<char, 4096> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) <= 0) return false;
  const std::string command =
      "LEASEHOLD_IN_NAMESPACES=1 unshare --user --map-root-user --pid --fork "
      "--kill-child --mount-proc '" +
      std::string(self.data()) + "' --gtest_filter='" + test + "'";
  return std::system(command.c_str()) == 0;
}

}  // namespace

recycled_number::recycled_number() {
  for (int i = 0; i < most_tries; ++i) {
    {
      target_process before;
      former = before.handle();
    }
    int error = 0;
    auto again = target_process::with_number(former.pid, error);
    if (error != 0) continue;
    target = std::make_unique<target_process>(std::move(again));
    if (target->handle().start_ticks != former.start_ticks) return;
  }
  ADD_FAILURE() << "no pid could be recycled in " << most_tries << " tries";
}

std::optional<recycling> why_not_recycled(const std::string& test) {
  if (try_to_recycle() == 0) return std::nullopt;
  if (!is_set("LEASEHOLD_IN_NAMESPACES") && passes_elsewhere(test))
    return recycling::done_elsewhere;
  return is_set("LEASEHOLD_NO_RECYCLED_PIDS") ? recycling::not_wanted : recycling::impossible;
}

}  // namespace leasehold::tests
