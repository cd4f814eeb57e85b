#include "shell_run.hpp"

#include <sys/stat.h>

#include "program_run.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::e2e {
namespace {

std::string command_of(const std::vector<std::string>& arguments) {
  std::string out = quoted(LEASEHOLD);
  for (const auto& word : arguments) out += ' ' + quoted(word);
  return out;
}

}  // namespace

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

shell_end run_in_shell(const std::vector<std::string>& arguments, const std::string& redirection) {
  const tests::temporary_directory kept;
  const auto error = kept.path() / "error";
  const auto out = kept.path() / "out";
  const auto script =
      command_of(arguments) + " 2>" + quoted(error.string()) + ' ' + redirection + "\nexit $?";
  program_run run("/bin/sh", {"-c", script}, out);
  const auto code = run.wait();
  return {code.value_or(-1), content_of(out), content_of(error)};
}

shell_end run_without_reader(const std::vector<std::string>& arguments) {
  const tests::temporary_directory kept;
  const auto error = kept.path() / "error";
  const auto status = kept.path() / "status";
  const auto gone = kept.path() / "gone";
  ::mkfifo(gone.c_str(), 0600);
  // The reader closes its end and says so; only then the writer begins.
  const auto script = "{ cat " + quoted(gone.string()) + " >/dev/null; " + command_of(arguments) +
                      " 2>" + quoted(error.string()) + "; echo $? >" + quoted(status.string()) +
                      "; } | { exec <&-; echo >" + quoted(gone.string()) + "; }";
  program_run run("/bin/sh", {"-c", script}, kept.path() / "out");
  if (!run.wait()) return {};
  const auto code = content_of(status);
  return {code.empty() ? -1 : std::stoi(code), content_of(kept.path() / "out"), content_of(error)};
}

}  // namespace leasehold::e2e
