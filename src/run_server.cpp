// The life of the process: signals in, exit code out. Signals are blocked in every thread and
// waited for here.
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <thread>

#include "src/logging.hpp"
#include "src/net_limits.hpp"
#include "src/server.hpp"

namespace leasehold::server {
namespace {

/// Ends the wait for the next one, and means nothing else.
constexpr int wake_signal = SIGUSR1;

sigset_t our_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, wake_signal}) sigaddset(&out, signal);
  return out;
}

/// The next signal; 0 when none came within the time.
int next_signal(long milliseconds) {
  const sigset_t ours = our_signals();
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  const int got = sigtimedwait(&ours, nullptr, &limit);
  return got < 0 ? 0 : got;
}

/// What the store, the log and the loops may need, and a few connections.
constexpr rlim_t fewest_descriptors =
    net_limits{}.reserved_descriptors + net_limits{}.fewest_connections;

void prepare_process() {
  const sigset_t ours = our_signals();
  pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, which the store reports
  // A core dump would hold tokens and payloads.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

/// Ends the process at a second signal while the first is being obeyed.
class impatience {
 public:
  explicit impatience(server& what)
      : watch_([&what](const std::stop_token& enough) {
          while (!enough.stop_requested()) {
            const int signal = next_signal(50);
            if (signal == SIGTERM || signal == SIGINT) what.end_at_once(128 + signal);
          }
        }) {}

 private:
  std::jthread watch_;
};

/// Nothing once it was told to end; else why it could not go on.
std::optional<start_failed> serve(server& what) {
  int signal = 0;
  while (signal != SIGTERM && signal != SIGINT) {
    signal = next_signal(1000);
    if (signal == SIGHUP) what.reload();
    if (auto failed = what.look_after()) {
      what.stop();
      return failed;
    }
  }
  const impatience second(what);
  what.drain();
  // Signals are waited for by `impatience`; this thread only looks whether the workers are done.
  while (!what.drained()) std::this_thread::sleep_for(std::chrono::milliseconds{20});
  what.stop();
  return std::nullopt;
}

/// Says why nothing was started, in the form of the log: whoever collects its lines gets this one
/// too.
void tell(log_form form, const std::string& sentence) {
  if (form == log_form::human) {
    std::cerr << "leaseholdd: " << sentence << std::endl;
    return;
  }
  log lines(log_level::error, form);
  lines.write(log_level::error, "not started", {{"why", sentence}});
}

}  // namespace

int run_server(invocation how) {
  prepare_process();
  const log_form form = log_form_from_word(how.chosen.log_format);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < fewest_descriptors) {
    tell(form, "The limit of open files is " + std::to_string(files.rlim_cur) + "; raise it to " +
                   std::to_string(fewest_descriptors) +
                   " at least (ulimit -n): " + std::to_string(net_limits{}.reserved_descriptors) +
                   " are kept for the store and the log, and each connection takes one.");
    return EXIT_FAILURE;
  }
  auto started =
      server::start(std::move(how), [main = pthread_self()] { pthread_kill(main, wake_signal); });
  std::optional<start_failed> failed;
  if (const auto* fault = std::get_if<start_failed>(&started)) {
    failed = *fault;
  } else {
    failed = serve(*std::get<std::unique_ptr<server>>(started));
  }
  if (!failed) return EXIT_SUCCESS;
  tell(form, failed->sentence);
  return failed->exit_code;
}

}  // namespace leasehold::server
