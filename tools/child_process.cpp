#include "tools/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace leasehold::tools {
namespace {

constexpr int message_descriptor = 3;
constexpr int first_free_descriptor = 10;  // above those that the child gets
constexpr int group_patience_ms = 5000;

struct pipe_ends {
  descriptor read;
  descriptor write;
};

/// A pipe whose ends lie above the numbers that the child's own descriptors get.
bool make_pipe(pipe_ends& into) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const descriptor low_read(ends[0]);
  const descriptor low_write(ends[1]);
  into.read = descriptor(fcntl(ends[0], F_DUPFD_CLOEXEC, first_free_descriptor));
  into.write = descriptor(fcntl(ends[1], F_DUPFD_CLOEXEC, first_free_descriptor));
  return into.read && into.write;
}

void unblock(const descriptor& which) {
  fcntl(which.number(), F_SETFL, fcntl(which.number(), F_GETFL) | O_NONBLOCK);
}

struct child_ends {
  int input, output, messages, fault;
};

/// In the child: only calls that are safe between fork and exec.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         const child_ends& ends, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(ends.input, STDIN_FILENO);
  dup2(ends.output, STDOUT_FILENO);
  dup2(ends.messages, message_descriptor);
  // Everything else closes at exec, also what other libraries opened without saying so.
  dup2(ends.fault, message_descriptor + 1);
  fcntl(message_descriptor + 1, F_SETFD, FD_CLOEXEC);
  syscall(SYS_close_range, message_descriptor + 2, ~0U, 0);
  execve(program, arguments, environment);
  const int why = errno;
  [[maybe_unused]] const auto written = write(message_descriptor + 1, &why, sizeof why);
  _exit(127);
}

}  // namespace

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const auto& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// ---- descriptor --------------------------------------------------------------------------------

descriptor::descriptor(descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
descriptor& descriptor::operator=(descriptor&& from) noexcept {
  if (this != &from) {
    close();
    number_ = std::exchange(from.number_, -1);
  }
  return *this;
}
void descriptor::close() noexcept {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

// ---- the child ---------------------------------------------------------------------------------

std::string find_program(const std::string& name) {
  const auto runs = [](const std::string& path) {
    std::error_code unknown;
    return std::filesystem::is_regular_file(path, unknown) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != name.npos) {
    char* real = realpath(name.c_str(), nullptr);
    std::string path = real != nullptr ? real : "";
    std::free(real);
    return !path.empty() && runs(path) ? path : "";
  }
  const char* list = std::getenv("PATH");
  std::string_view rest = list != nullptr ? list : "/usr/bin:/bin";
  while (!rest.empty()) {
    const auto end = rest.find(':');
    auto path = std::string(rest.substr(0, end)) + "/" + name;
    if (end != 0 && runs(path)) return path;
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return "";
}

void child_process::adopt_orphans() noexcept { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::unique_ptr<child_process> child_process::start(const child_command& command) {
  pipe_ends input, output, messages, fault;
  if (!make_pipe(input) || !make_pipe(output) || !make_pipe(messages) || !make_pipe(fault)) {
    return nullptr;
  }
  const auto arguments = pointers_to(command.arguments);
  const auto environment = pointers_to(command.environment);
  const child_ends ends{input.read.number(), output.write.number(), messages.write.number(),
                        fault.write.number()};
  const auto parent = getpid();
  const auto leader = fork();
  if (leader == 0) {
    become(command.program.c_str(), arguments.data(), environment.data(), ends, parent);
  }
  if (leader < 0) return nullptr;
  setpgid(leader, leader);  // whoever is first: the group exists before anybody signals it
  std::unique_ptr<child_process> child(new child_process(leader));
  fault.write.close();
  int why = 0;
  if (read(fault.read.number(), &why, sizeof why) == sizeof why) {
    child->collect();
    errno = why;
    return nullptr;
  }
  child->input = std::move(input.write);
  child->output = std::move(output.read);
  child->messages = std::move(messages.read);
  for (const auto* each : {&child->input, &child->output, &child->messages}) unblock(*each);
  child->exit = descriptor(static_cast<int>(syscall(SYS_pidfd_open, leader, 0)));
  return child;
}

child_process::~child_process() { collect(); }

void child_process::signal(int number) const noexcept {
  if (!collected_) kill(-leader_, number);
}

bool child_process::leader_exited() const noexcept {
  siginfo_t seen{};
  return waitid(P_PID, static_cast<id_t>(leader_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         seen.si_pid == leader_;
}

int child_process::collect() noexcept {
  if (std::exchange(collected_, true)) return 0;
  // The leader is not waited for yet, so its number, and with it the group's, is still its own.
  kill(-leader_, SIGKILL);
  int status = 0;
  while (waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
  }
  for (int waited = 0; waited < group_patience_ms; waited += 2) {
    while (waitpid(-leader_, nullptr, WNOHANG) > 0) {
    }
    if (kill(-leader_, 0) != 0) break;
    poll(nullptr, 0, 2);
  }
  return status;
}

}  // namespace leasehold::tools
