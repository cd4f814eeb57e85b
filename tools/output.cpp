#include "tools/output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace leasehold::tools {
namespace {

/// The errno of the first write that failed; 0: none has.
int first_failure = 0;

void remember_failure() noexcept {
  if (first_failure == 0) first_failure = errno != 0 ? errno : EIO;
}

}  // namespace

void write_out(std::string_view text) {
  if (output_is_lost() || text.empty()) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) remember_failure();
}

void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

bool flush_output() {
  errno = 0;
  if (!output_is_lost() && std::fflush(stdout) != 0) remember_failure();
  return !output_is_lost();
}

bool output_is_lost() noexcept { return first_failure != 0; }

bool reader_has_ended() noexcept { return first_failure == EPIPE; }

void begin_output() {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is taken. Reading alone is allowed, so that output is still an error.
    if (::fcntl(standard, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
  }
}

exit_code finish_output(exit_code result) {
  if (flush_output()) return result;
  if (reader_has_ended()) {
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  } else {
    print_error("leasehold: Cannot write the output: {}; what was printed is not complete.\n",
                std::generic_category().message(first_failure));
  }
  return exit_code::broken;
}

}  // namespace leasehold::tools
