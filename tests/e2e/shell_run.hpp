// `leasehold` run by a shell, for what becomes of its output.
#pragma once

#include <string>
#include <vector>

namespace leasehold::e2e {

struct shell_end {
  int exit_code = -1;  ///< as a shell tells it: 128 and the signal that ended it
  std::string out;
  std::string error;
};

/// A word as a shell reads it again.
std::string quoted(const std::string& word);

/// Runs `leasehold` with these words. `redirection` is the shell's own text behind them.
shell_end run_in_shell(const std::vector<std::string>& arguments, const std::string& redirection);

/// As run_in_shell(), into a pipe whose reader has ended before the program starts.
shell_end run_without_reader(const std::vector<std::string>& arguments);

}  // namespace leasehold::e2e
