#include "program_run.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

#include "support/temporary_directory.hpp"
#include "tools/child_process.hpp"

extern char** environ;

namespace leasehold::e2e {
namespace {

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> out = more;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = name_of(*entry);
    const bool replaced =
        std::ranges::any_of(more, [&](const std::string& each) { return name_of(each) == name; });
    if (!replaced && !name.starts_with("LEASEHOLD_")) out.emplace_back(*entry);
  }
  return out;
}

}  // namespace

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

program_run::program_run(const std::string& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& output,
                         const std::vector<std::string>& more) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto variables = environment_with(more);
  const auto argument_list = tools::pointers_to(words);
  const auto variable_list = tools::pointers_to(variables);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execve(program.c_str(), argument_list.data(), variable_list.data());
    ::_exit(127);
  }
  ::close(out);
}

program_run::~program_run() {
  if (id_ <= 0 || ended_) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

void program_run::signal(int number) const {
  if (id_ > 0 && !ended_) ::kill(id_, number);
}

void program_run::stand_still() const {
  ASSERT_FALSE(ended_);
  ASSERT_EQ(::kill(id_, SIGSTOP), 0);
  siginfo_t seen{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(id_), &seen, WSTOPPED | WEXITED | WNOWAIT), 0);
  ASSERT_EQ(seen.si_code, CLD_STOPPED);
}

void program_run::limit(__rlimit_resource resource, rlim_t soft) const {
  rlimit both{};
  ASSERT_EQ(::prlimit(id_, resource, nullptr, &both), 0);
  both.rlim_cur = std::min(soft, both.rlim_max);
  ASSERT_EQ(::prlimit(id_, resource, &both, nullptr), 0);
}

std::optional<int> program_run::wait(std::chrono::milliseconds within) {
  if (id_ <= 0) return std::nullopt;
  eventually(
      [this] {
        int status = 0;
        if (!ended_ && ::waitpid(id_, &status, WNOHANG) == id_) {
          ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        return ended_.has_value();
      },
      within);
  return ended_;
}

program_end run_leasehold(const std::vector<std::string>& arguments) {
  const tests::temporary_directory kept;
  const auto output = kept.path() / "output";
  program_run run(LEASEHOLD, arguments, output);
  const auto code = run.wait();
  return {code.value_or(-1), content_of(output)};
}

}  // namespace leasehold::e2e
