#include "target_process.hpp"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "src/controllers/process_stat.hpp"
#include "support/eventually.hpp"

extern char** environ;

namespace leasehold::tests {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& each : texts) out.push_back(each.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> command_line(const std::filesystem::path& record,
                                      const std::vector<std::string>& words) {
  std::vector<std::string> out{TARGET, record.string()};
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

}  // namespace

std::string this_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

target_process::target_process(const std::vector<std::string>& words) {
  auto texts = command_line(kept_->path() / "signals", words);
  pid_t made = -1;
  EXPECT_EQ(posix_spawn(&made, TARGET, nullptr, nullptr, pointers_to(texts).data(), environ), 0);
  pid_ = made;
  const int ready = std::ranges::find(words, "child") == words.end() ? 1 : 2;
  EXPECT_TRUE(eventually([&] { return told("ready") == ready; })) << content();
}

target_process target_process::with_number(std::int64_t pid, int& error) {
  target_process out{unstarted{}};
  auto texts = command_line(out.kept_->path() / "signals", {});
  auto words = pointers_to(texts);
  const auto wanted = static_cast<pid_t>(pid);
  clone_args how{};
  how.exit_signal = SIGCHLD;
  how.set_tid = reinterpret_cast<std::uintptr_t>(&wanted);
  how.set_tid_size = 1;
  const auto made = syscall(SYS_clone3, &how, sizeof how);
  if (made == 0) {
    execv(TARGET, words.data());
    _exit(2);
  }
  error = made < 0 ? errno : 0;
  out.pid_ = made;
  if (made > 0) {
    EXPECT_TRUE(eventually([&] { return out.told("ready") == 1; }));
  }
  return out;
}

target_process::~target_process() {
  if (pid_ <= 0) return;
  // As long as the leader is not waited for its number, and the group's, is its own.
  if (!is_reaped_) {
    kill(static_cast<pid_t>(-pid_), SIGKILL);
    kill(static_cast<pid_t>(pid_), SIGKILL);
    wait();
  }
  if (const auto left = child(); left > 0) kill(static_cast<pid_t>(left), SIGKILL);
}

target_process::target_process(target_process&& from) noexcept
    : kept_(std::move(from.kept_)),
      pid_(std::exchange(from.pid_, -1)),
      is_reaped_(from.is_reaped_) {}

std::string target_process::content() const {
  std::ifstream in(kept_->path() / "signals");
  return {std::istreambuf_iterator<char>(in), {}};
}

int target_process::told(const std::string& word) const {
  std::istringstream in(content());
  int found = 0;
  std::int64_t who = 0;
  for (std::string said; in >> who >> said;) found += said == word ? 1 : 0;
  return found;
}

std::int64_t target_process::child() const {
  std::istringstream in(content());
  std::int64_t who = 0;
  for (std::string said; in >> who >> said;) {
    if (said == "ready" && who != pid_) return who;
  }
  return 0;
}

protocol::process_handle target_process::handle() const {
  const auto stat = controllers::stat_of(pid_);
  EXPECT_TRUE(stat);
  return {std::string(protocol::supported_platform), pid_, this_boot(),
          stat ? stat->start_ticks : 0, pid_};
}

bool target_process::lives() const {
  const auto stat = controllers::stat_of(pid_);
  return stat && stat->is_living();
}

void target_process::signal(int number) const { kill(static_cast<pid_t>(pid_), number); }

int target_process::wait() {
  int status = -1;
  const bool ended = eventually([&] {
    return waitpid(static_cast<pid_t>(pid_), &status, WNOHANG) == static_cast<pid_t>(pid_);
  });
  is_reaped_ = ended;
  return ended ? status : -1;
}

bool target_process::ends_unreaped() const {
  return eventually([&] {
    siginfo_t seen{};
    return waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           seen.si_pid == static_cast<pid_t>(pid_);
  });
}

}  // namespace leasehold::tests
