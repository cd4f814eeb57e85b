#include "src/controllers/process_controller.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "src/controllers/process_stat.hpp"

namespace leasehold::controllers {

namespace {

using protocol::dispatch_result;

/// How many are acted on at once; beyond it a claim is to be tried again later.
constexpr std::size_t most_turns = 1024;
/// The end of a group's members is not told by the kernel; they are looked at this often.
constexpr std::int64_t member_pause_ms = 100;

/// One process on its way to its end.
struct turn {
  enum class stage : std::uint8_t { fresh, termed, killed };
  protocol::process_handle handle;
  std::function<void(dispatch_result)> done;
  std::int64_t over_ms = 0;  ///< when the claim ends
  std::int64_t due_ms = 0;   ///< of the next step
  stage at = stage::fresh;
  pidfd process;
};

}  // namespace

class process_controller::watch {
 public:
  watch(process_options how, int wake)
      : how_(std::move(how)), wake_(wake), thread_([this] { run(); }) {}
  ~watch() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_up();
    thread_.join();
    close(wake_);
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  /// False: too many wait.
  bool add(turn what) {
    {
      const std::lock_guard lock(mutex_);
      if (count_ == most_turns) return false;
      ++count_;
      what.over_ms = how_.boottime_ms() + how_.claim.ms;
      arrived_.push_back(std::move(what));
    }
    wake_up();
    return true;
  }

 private:
  void wake_up() const {
    const std::uint64_t one = 1;
    // Nothing but a full counter can fail here, and a full counter wakes as well.
    (void)!write(wake_, &one, sizeof one);
  }

  void run() {
    std::vector<turn> turns;
    while (take_arrived(turns)) {
      for (auto& each : turns) {
        const auto said = step(each);
        if (said || !each.done) finish(each, said);
      }
      std::erase_if(turns, [](const turn& each) { return !each.done; });
      wait(turns);
    }
  }

  bool take_arrived(std::vector<turn>& turns) {
    const std::lock_guard lock(mutex_);
    std::ranges::move(arrived_, std::back_inserter(turns));
    arrived_.clear();
    return !ends_;
  }

  void finish(turn& each, std::optional<dispatch_result> said) {
    {
      const std::lock_guard lock(mutex_);
      --count_;
    }
    const auto done = std::exchange(each.done, nullptr);
    if (said && done) done(*said);
  }

  /// What there is to say; nothing while the process is waited for, and `done` gone when nothing is
  /// to be said at all.
  std::optional<dispatch_result> step(turn& each) {
    const auto now = how_.boottime_ms();
    // Somebody else may have the claim by now. [D2.4]
    if (now >= each.over_ms) {
      each.done = nullptr;
      return std::nullopt;
    }
    switch (each.at) {
      case turn::stage::fresh:
        return begin(each, now);
      case turn::stage::termed:
        if (has_ended(each)) return dispatch_result::already_exited;
        if (now < each.due_ms) return std::nullopt;
        if (const auto why = prove_again(each.handle, each.process); why != dispatch_result::none) {
          return why;
        }
        return signal(each, SIGKILL, turn::stage::killed, now + how_.kill_wait.ms);
      case turn::stage::killed:
        if (has_ended(each)) return dispatch_result::already_exited;
        if (now < each.due_ms) return std::nullopt;
        return dispatch_result::termination_requested;
    }
    return std::nullopt;
  }

  std::optional<dispatch_result> begin(turn& each, std::int64_t now) {
    auto proof = prove_process(each.handle, how_.boot_id);
    if (proof.why != dispatch_result::none) return proof.why;
    each.process = std::move(proof.process);
    return signal(each, SIGTERM, turn::stage::termed, now + how_.term_grace.ms);
  }

  std::optional<dispatch_result> signal(turn& each, int number, turn::stage to,
                                        std::int64_t due_ms) {
    if (!signal_proven_group(each.handle, each.process, number, how_.signal)) {
      if (errno != ESRCH) return dispatch_result::dispatch_error;
      const auto why = prove_again(each.handle, each.process);
      return why == dispatch_result::none ? dispatch_result::dispatch_error : why;
    }
    each.at = to;
    each.due_ms = due_ms;
    return std::nullopt;
  }

  static bool has_ended(const turn& each) {
    return each.process.has_exited() && living_members(each.handle.process_group).empty();
  }

  void wait(const std::vector<turn>& turns) const {
    const auto now = how_.boottime_ms();
    std::int64_t pause_ms = -1;
    const auto wake_within = [&](std::int64_t ms) {
      ms = std::max<std::int64_t>(ms, 0);
      if (pause_ms < 0 || ms < pause_ms) pause_ms = ms;
    };
    std::vector<pollfd> what{{wake_, POLLIN, 0}};
    for (const auto& each : turns) {
      wake_within(std::min(each.due_ms, each.over_ms) - now);
      if (each.process.has_exited()) {
        wake_within(member_pause_ms);
      } else {
        what.push_back({each.process.number(), POLLIN, 0});
      }
    }
    (void)poll(what.data(), what.size(),
               static_cast<int>(std::min<std::int64_t>(pause_ms, 60'000)));
    std::uint64_t ignored = 0;
    if ((what.front().revents & POLLIN) != 0) (void)!read(wake_, &ignored, sizeof ignored);
  }

  process_options how_;
  int wake_;
  std::mutex mutex_;
  std::vector<turn> arrived_;
  std::size_t count_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

std::variant<std::shared_ptr<process_controller>, std::string> process_controller::start(
    process_options how) {
  if (how.boot_id.empty()) {
    return "This machine gives no boot id in /proc/sys/kernel/random/boot_id; without it no "
           "process "
           "can be proven to be the registered one.";
  }
  const auto grace = how.term_grace.ms;
  const auto wait = how.kill_wait.ms;
  const bool is_bounded = grace >= 0 && wait >= 0 && grace < protocol::longest_claim.ms &&
                          wait < protocol::longest_claim.ms && grace + wait < how.claim.ms &&
                          how.claim <= protocol::longest_claim;
  if (!is_bounded) {
    return "The grace after TERM and the wait after KILL must together be shorter than a claim, "
           "and "
           "a claim at most 5m; shorten them, or make the claim longer.";
  }
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0)
    return "No descriptor is left to wait for processes with; raise the limit (ulimit -n).";
  return std::shared_ptr<process_controller>(
      new process_controller(std::make_unique<watch>(std::move(how), wake)));
}

process_controller::process_controller(std::unique_ptr<watch> what) : watch_(std::move(what)) {}
process_controller::~process_controller() = default;

void process_controller::act(const actors::dispatch_claimed& claim,
                             std::function<void(dispatch_result)> done) {
  if (!claim.process) return done(dispatch_result::handle_missing);
  turn what;
  what.handle = *claim.process;
  what.done = done;
  if (!watch_->add(std::move(what))) done(dispatch_result::dispatch_error);
}

}  // namespace leasehold::controllers
