#include "tools/exec/supervised_scene.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/eventually.hpp"
#include "tools/exec/exec_codes.hpp"
#include "tools/exec/process_group.hpp"
#include "tools/exec/supervision.hpp"

extern char** environ;

namespace leasehold::tests {
namespace {

using std::chrono::milliseconds;
using tools::boot_clock;
using tools::boot_time;

/// What the test tells the supervising process.
struct scene_order {
  bool is_lost = false;
  std::int64_t deadline_ns = 0;
};

/// The scripts write whole lines; a file without its end is not written yet.
std::string line_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) && !in.eof() ? line : std::string();
}

}  // namespace

supervised_scene::supervised_scene(const std::string& script, milliseconds term, milliseconds grace)
    : plan_{term, grace}, deadline_(boot_clock::now() + term) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  exec_ = fork();
  if (exec_ == 0) {
    close(ends[1]);
    supervise(script, ends[0]);
  }
  close(ends[0]);
  orders_ = ends[1];
}

supervised_scene::~supervised_scene() {
  if (!ended_ && exec_ > 0) {
    kill(exec_, SIGKILL);
    waitpid(exec_, nullptr, 0);
  }
  close(orders_);
}

void supervised_scene::supervise(const std::string& script, int orders) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fcntl(orders, F_SETFL, O_NONBLOCK);
  auto blocked = tools::forwarded_signals();
  sigaddset(&blocked, SIGCHLD);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &blocked, &before);
  tools::watched_work work;
  work.commands = {{{"/bin/sh", "-c", script}, false}};
  work.environment = [this](boot_time) {
    std::vector<std::string> all{"D=" + kept_.path().string()};
    for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
    return all;
  };
  work.plan = plan_;
  work.deadline = deadline_;
  work.signal_mask = before;
  auto guard = tools::watchdog::start(std::move(work));
  if (!guard) _exit(99);
  std::ofstream(kept_.path() / "watchdog") << guard->id() << '\n';

  tools::lock_standing standing{{deadline_, 0}, false, {}};
  const auto look = [&] {
    scene_order order;
    while (read(orders, &order, sizeof order) == sizeof order) {
      standing.is_lost = standing.is_lost || order.is_lost;
      standing.holds.deadline = boot_time(std::chrono::nanoseconds(order.deadline_ns));
    }
    return standing;
  };
  tools::supervision runs(*guard, {look, [] {}, orders}, plan_);
  const auto end = runs.run(0);
  guard->finish();
  _exit(static_cast<int>(code_of(end)));
}

bool supervised_scene::has_written(const std::string& name) const {
  return !line_in(kept_.path() / name).empty();
}

std::string supervised_scene::written(const std::string& name) const {
  EXPECT_TRUE(eventually([&] { return has_written(name); })) << name;
  return line_in(kept_.path() / name);
}

void supervised_scene::signal_exec(int number) const { kill(exec_, number); }

void supervised_scene::signal_watchdog(int number) const {
  kill(std::stoi(written("watchdog")), number);
}

void supervised_scene::renew() const {
  const scene_order order{false, (boot_clock::now() + plan_.term).time_since_epoch().count()};
  ASSERT_EQ(write(orders_, &order, sizeof order), static_cast<ssize_t>(sizeof order));
}

void supervised_scene::lose() const {
  const scene_order order{true, deadline_.time_since_epoch().count()};
  ASSERT_EQ(write(orders_, &order, sizeof order), static_cast<ssize_t>(sizeof order));
}

std::optional<int> supervised_scene::wait() {
  eventually([this] {
    int status = 0;
    if (!ended_ && waitpid(exec_, &status, WNOHANG) == exec_) {
      ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return ended_.has_value();
  });
  return ended_;
}

pid_t supervised_scene::group() const { return std::stoi(written("group")); }

bool supervised_scene::lives() const { return tools::group_lives(group()); }

std::optional<long> supervised_scene::reads_of_exec() const {
  std::ifstream counts("/proc/" + std::to_string(exec_) + "/io");
  long count = 0;
  for (std::string name; counts >> name >> count;) {
    if (name == "syscr:") return count;
  }
  return std::nullopt;
}

std::optional<milliseconds> supervised_scene::gone_after_deadline() {
  const auto number = group();
  if (!eventually([&] { return !tools::group_lives(number); })) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(boot_clock::now() - deadline_);
}

}  // namespace leasehold::tests
