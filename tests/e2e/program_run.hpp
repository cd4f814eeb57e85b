// A program run as a child: its output in a file, its end waited for. It dies with the test.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/eventually.hpp"

namespace leasehold::e2e {

/// The longest wait for what must happen: only a test that fails waits so long.
inline constexpr std::chrono::seconds patience{30};

using tests::eventually;

std::string content_of(const std::filesystem::path& file);

class program_run {
 public:
  /// Starts it with both outputs appended to `output`, without LEASEHOLD_ variables and with `more`
  /// ones (NAME=value), which take the place of those of the same name.
  program_run(const std::string& program, const std::vector<std::string>& arguments,
              const std::filesystem::path& output, const std::vector<std::string>& more = {});
  /// Kills what still runs.
  ~program_run();
  program_run(const program_run&) = delete;
  program_run& operator=(const program_run&) = delete;

  void signal(int number) const;
  /// Stops it (SIGSTOP) and waits until it stands still; `go_on` lets it run again.
  void stand_still() const;
  void go_on() const { signal(SIGCONT); }
  /// Sets the soft limit of a resource (RLIMIT_FSIZE) of the running program.
  void limit(__rlimit_resource resource, rlim_t soft) const;
  /// The exit code, or 128 and the signal that ended it; nothing when it does not end in time.
  std::optional<int> wait(std::chrono::milliseconds within = patience);
  [[nodiscard]] pid_t id() const noexcept { return id_; }

 private:
  pid_t id_ = -1;
  std::optional<int> ended_;
};

struct program_end {
  int exit_code = -1;
  std::string output;
};

/// Runs `leasehold` to its end.
program_end run_leasehold(const std::vector<std::string>& arguments);

}  // namespace leasehold::e2e
