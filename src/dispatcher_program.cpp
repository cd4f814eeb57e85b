#include "src/dispatcher_program.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <future>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

#include "src/auth.hpp"
#include "src/boot_timer.hpp"
#include "src/controllers/process_controller.hpp"
#include "src/dispatcher_options.hpp"
#include "src/dispatcher_store.hpp"
#include "src/logging.hpp"
#include "src/system_clock.hpp"

namespace leasehold::server {
namespace {

using actors::dispatch_cycle;
using protocol::dispatch_result;

sigset_t our_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&out, signal);
  return out;
}

void prepare_process() {
  const sigset_t ours = our_signals();
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  for (const int ignored : {SIGPIPE, SIGXFSZ, SIGHUP}) signal(ignored, SIG_IGN);
  // A core dump would hold handles.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

/// The same failure is told when it begins, and then every so many cycles.
constexpr std::int64_t quiet_cycles = 60;

/// What a cycle did, for people; nothing of what it was about.
class diary {
 public:
  explicit diary(log& to) : to_(to) {}

  void take(const dispatch_cycle& cycle) {
    if (cycle.error) return take_failure(*cycle.error);
    if (!std::exchange(newest_failure_, {}).empty())
      to_.write(log_level::info, "store answers again");
    if (cycle.claimed == 0) return;
    const auto count = [&](std::initializer_list<dispatch_result> of) {
      std::int64_t sum = 0;
      for (const auto each : of) {
        const auto found = cycle.results.find(each);
        if (found != cycle.results.end()) sum += found->second;
      }
      return sum;
    };
    const auto blocked = count({dispatch_result::identity_mismatch, dispatch_result::pid_mismatch,
                                dispatch_result::unsupported, dispatch_result::invalid});
    to_.write(
        blocked > 0 ? log_level::warn : log_level::info, "cancels dispatched",
        {{"claimed", cycle.claimed},
         {"reported", cycle.reported},
         {"exited", count({dispatch_result::already_exited})},
         {"asked_to_stop", count({dispatch_result::termination_requested})},
         {"blocked", blocked},
         {"failed", count({dispatch_result::controller_missing, dispatch_result::handle_missing,
                           dispatch_result::dispatch_error})}});
  }

 private:
  void take_failure(const actors::store_error& why) {
    const bool is_new = std::exchange(newest_failure_, why.sentence) != why.sentence;
    failures_ = is_new ? 1 : failures_ + 1;
    if (failures_ % quiet_cycles == 1)
      to_.write(log_level::warn, "cycle failed", {{"why", why.sentence}});
  }

  log& to_;
  std::string newest_failure_;
  std::int64_t failures_ = 0;
};

/// The dispatcher put together. Everything but `start` and the end happens on its loop.
class dispatcher {
 public:
  using loop = boost::asio::io_context;

  static std::variant<std::unique_ptr<dispatcher>, say_and_exit> start(dispatcher_options how,
                                                                       log& lines) {
    const auto machine = machine_clocks();
    controllers::process_options process;
    process.boot_id = machine.boot_id;
    process.boottime_ms = machine.boottime_ms;
    process.term_grace = how.term_grace;
    process.kill_wait = how.kill_wait;
    process.claim = how.pace.claim;
    auto controller = controllers::process_controller::start(std::move(process));
    if (auto* why = std::get_if<std::string>(&controller)) {
      return say_and_exit{std::move(*why), exit_bad_options};
    }
    auto store = open_dispatches(how.store, machine);
    if (auto* fault = std::get_if<actors::store_error>(&store)) {
      return say_and_exit{std::move(fault->sentence), EXIT_FAILURE};
    }
    if (how.host.empty()) how.host = machine.boot_id;
    if (how.owner.empty())
      how.owner = "dispatcher/" + std::to_string(getpid()) + "/" + random_hex(8);
    auto clock = system_clock::start(machine, std::nullopt, {});
    return std::unique_ptr<dispatcher>(new dispatcher(
        std::move(how), std::move(std::get<std::unique_ptr<actors::dispatch_store>>(store)),
        std::move(std::get<std::shared_ptr<controllers::process_controller>>(controller)),
        std::move(std::get<std::shared_ptr<system_clock>>(clock)), lines));
  }

  ~dispatcher() {
    // The controller and the store first: they call back into the loop.
    loop_.stop();
    thread_.join();
    runner_.reset();
    supervisor_.reset();
    controller_.reset();
    store_.reset();
  }
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  /// True once the first cycle has ended, and had no error.
  std::future<bool> run() {
    post([this] { runner_->start(); });
    return first_.get_future();
  }
  /// True: nothing was under way any more.
  std::future<bool> stop() {
    auto ended = std::make_shared<std::promise<bool>>();
    post([this, ended] { runner_->stop([ended](bool all) { ended->set_value(all); }); });
    return ended->get_future();
  }

 private:
  dispatcher(dispatcher_options how, std::shared_ptr<actors::dispatch_store> store,
             std::shared_ptr<controllers::process_controller> controller,
             std::shared_ptr<system_clock> clock, log& lines)
      : diary_(lines), store_(std::move(store)), controller_(std::move(controller)) {
    actors::dispatch_supervisor_options cycles;
    cycles.store = store_;
    cycles.controllers[protocol::dispatch_stage::process] = controller_;
    cycles.stage = protocol::dispatch_stage::process;
    cycles.host = how.host;
    cycles.owner = how.owner;
    cycles.make_token = [] { return random_hex(32); };
    cycles.strand = strand();
    cycles.pace = how.pace;
    cycles.page = how.profile.page;
    cycles.cycle_pages = how.profile.cycle_pages;
    supervisor_ = std::make_shared<actors::dispatch_supervisor>(std::move(cycles));
    actors::dispatch_runner_options runs;
    runs.supervisor = supervisor_;
    runs.profile = how.profile;
    runs.timer = std::make_shared<boot_timer>(loop_, clock);
    runs.clock = clock;
    runs.strand = strand();
    runs.on_cycle = [this](const dispatch_cycle& cycle) {
      diary_.take(cycle);
      if (!std::exchange(had_a_cycle_, true)) first_.set_value(!cycle.error);
    };
    runner_ = std::make_unique<actors::dispatch_runner>(std::move(runs));
    thread_ = std::thread([this] { loop_.run(); });
  }

  void post(std::function<void()> what) { boost::asio::post(loop_, std::move(what)); }
  actors::dispatch_strand strand() {
    return [this](std::function<void()> what) { post(std::move(what)); };
  }

  diary diary_;
  std::promise<bool> first_;
  bool had_a_cycle_ = false;
  loop loop_{1};
  boost::asio::executor_work_guard<loop::executor_type> work_{loop_.get_executor()};
  std::shared_ptr<actors::dispatch_store> store_;
  std::shared_ptr<controllers::process_controller> controller_;
  std::shared_ptr<actors::dispatch_supervisor> supervisor_;
  std::unique_ptr<actors::dispatch_runner> runner_;
  std::thread thread_;
};

/// False when none came within the time.
bool got_signal(std::chrono::milliseconds within) {
  const sigset_t ours = our_signals();
  const timespec limit{within.count() / 1000, within.count() % 1000 * 1'000'000};
  return sigtimedwait(&ours, nullptr, &limit) > 0;
}

int run(dispatcher& what, bool once, log& lines) {
  auto first = what.run();
  const auto is_over = [&] {
    return once && first.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
  };
  bool told = false;
  while (!told && !is_over()) told = got_signal(std::chrono::milliseconds{once ? 20 : 1000});
  const bool all = what.stop().get();
  lines.write(all ? log_level::info : log_level::warn, "stopped", {{"left_at_work", !all}});
  if (!all) return exit_left_at_work;
  return told || first.get() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int run_dispatcher(std::vector<std::string> arguments, const environment& variables) {
  auto loaded = load_dispatcher_options(std::move(arguments), variables);
  if (const auto* end = std::get_if<say_and_exit>(&loaded)) {
    (end->exit_code == 0 ? std::cout : std::cerr) << end->text << std::flush;
    return end->exit_code;
  }
  prepare_process();
  auto& how = std::get<dispatcher_options>(loaded);
  log lines(log_level_from_word(how.log_level), log_form_from_word(how.log_format));
  auto started = dispatcher::start(how, lines);
  if (const auto* failed = std::get_if<say_and_exit>(&started)) {
    lines.write(log_level::error, "not started", {{"why", failed->text}});
    return failed->exit_code;
  }
  lines.write(log_level::info, "dispatcher started",
              {{"store", storage::shown(how.store)}, {"profile", how.profile_name}});
  return run(*std::get<std::unique_ptr<dispatcher>>(started), how.once, lines);
}

}  // namespace leasehold::server
