#include "tools/exec/lock_keeper.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <utility>

#include "tools/api.hpp"
#include "tools/exec/wake_bell.hpp"

namespace leasehold::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds watch_wait{20'000};
constexpr milliseconds watch_patience{10'000};
/// Between two looks that did not wait, or were not answered.
constexpr milliseconds watch_pause{1000};
constexpr milliseconds release_effort{5000};
constexpr milliseconds release_patience{2000};
constexpr milliseconds release_pause{100};

/// Waits until `end` or until `stop` is readable; true: it is.
bool stopped_by(boot_time end, int stop) {
  boot_timer timer;
  timer.set(end);
  std::array<pollfd, 2> both{{{timer.number(), POLLIN, 0}, {stop, POLLIN, 0}}};
  while (both[0].revents == 0 && both[1].revents == 0) {
    const bool is_for_ever = end == boot_time::max();
    ::poll(is_for_ever ? &both[1] : both.data(), is_for_ever ? 1 : 2, -1);
  }
  return both[1].revents != 0;
}

client_options with_stop(client_options options, milliseconds connect, int stop) {
  options.connect_timeout = connect;
  options.stop_descriptor = stop;
  return options;
}

}  // namespace

struct lock_keeper::threads {
  threads(client_options connection, lock_grant held, renew_schedule begun)
      : grant(std::move(held)),
        schedule(std::move(begun)),
        to_renew(with_stop(connection, schedule.longest_answer(), stopping.number())),
        to_watch(with_stop(std::move(connection), watch_patience, stopping.number())) {
    standing.holds = schedule.holds();
  }

  bool renew(lock_client& client);
  void keep_renewing();
  void keep_watching();
  bool after(const renew_attempt& attempt, const lock_decision& answer);
  void lose(std::string why);
  void tell(const authority& holds, std::string why);

  const lock_grant grant;
  renew_schedule schedule;  // of the renewing thread, once it runs
  wake_bell stopping;
  wake_bell changed;
  const client_options to_renew;
  const client_options to_watch;
  mutable std::mutex lock;
  lock_standing standing;  // guarded by `lock`
  std::thread renewing;
  std::thread watching;
};

void lock_keeper::threads::tell(const authority& holds, std::string why) {
  {
    const std::lock_guard hold(lock);
    standing.holds = holds;
    if (!standing.is_lost) standing.why = std::move(why);
  }
  changed.ring();
}

void lock_keeper::threads::lose(std::string why) {
  {
    const std::lock_guard hold(lock);
    if (!std::exchange(standing.is_lost, true)) standing.why = std::move(why);
  }
  changed.ring();
}

/// True: authority reaches further now.
bool lock_keeper::threads::after(const renew_attempt& attempt, const lock_decision& answer) {
  if (answer.reason == "stale_sequence") {
    schedule.outrun(boot_clock::now(), answer.renew_sequence);
    return false;
  }
  schedule.answered(attempt, answer.term, answer.renew_sequence, answer.decision == "ignored");
  tell(schedule.holds(), {});
  return true;
}

bool lock_keeper::threads::renew(lock_client& client) {
  const auto attempt = schedule.begin(boot_clock::now());
  const auto answer = client.renew(grant, attempt.sequence, attempt.patience);
  if (const auto* decided = std::get_if<lock_decision>(&answer)) return after(attempt, *decided);
  const auto* refusal = std::get_if<lock_refusal>(&answer);
  schedule.unanswered(boot_clock::now());
  if (refusal == nullptr) {
    tell(schedule.holds(), std::get<transport_failure>(answer).sentence);
  } else if (tells_loss(*refusal)) {
    schedule.finish();
    lose(refusal->sentence);
  } else {
    if (refusal->reason == "max_lifetime_reached") schedule.finish();
    tell(schedule.holds(), refusal->sentence);
  }
  return false;
}

void lock_keeper::threads::keep_renewing() {
  lock_client client(to_renew);
  while (!stopped_by(schedule.due(), stopping.number())) renew(client);
}

void lock_keeper::threads::keep_watching() {
  lock_client client(to_watch);
  for (;;) {
    const auto began = boot_clock::now();
    const auto answer = client.wait_for_change(grant, watch_wait, watch_patience);
    if (const auto* seen = std::get_if<lock_sight>(&answer); seen != nullptr && !seen->is_held) {
      return lose(
          fmt::format("the coordinator says that this generation has ended: {}", seen->state));
    }
    if (const auto* refusal = std::get_if<lock_refusal>(&answer); refusal && tells_loss(*refusal)) {
      return lose(refusal->sentence);
    }
    if (stopped_by(began + watch_pause, stopping.number())) return;
  }
}

lock_keeper::lock_keeper(client_options connection, lock_grant grant, renew_schedule schedule)
    : threads_(std::make_unique<threads>(std::move(connection), std::move(grant),
                                         std::move(schedule))) {}

lock_keeper::~lock_keeper() { stop(); }

bool lock_keeper::renew_first(boot_time give_up) {
  auto& all = *threads_;
  if (boot_clock::now() < all.schedule.due()) return true;
  lock_client client(all.to_renew);
  while (all.schedule.due() < give_up && boot_clock::now() < give_up) {
    if (stopped_by(all.schedule.due(), all.stopping.number())) return false;
    if (all.renew(client)) return true;
  }
  return false;
}

void lock_keeper::start() {
  threads_->renewing = std::thread([all = threads_.get()] { all->keep_renewing(); });
  threads_->watching = std::thread([all = threads_.get()] { all->keep_watching(); });
}

void lock_keeper::stop() {
  threads_->stopping.ring();
  for (auto* each : {&threads_->renewing, &threads_->watching}) {
    if (each->joinable()) each->join();
  }
}

lock_standing lock_keeper::standing() const {
  const std::lock_guard hold(threads_->lock);
  return threads_->standing;
}

int lock_keeper::bell() const noexcept { return threads_->changed.number(); }
void lock_keeper::clear_bell() const noexcept { threads_->changed.clear(); }
const lock_grant& lock_keeper::grant() const noexcept { return threads_->grant; }

release_end release_lock(client_options connection, const lock_grant& grant, boot_time last,
                         std::string& sentence) {
  connection.connect_timeout = release_patience;
  lock_client client(std::move(connection));
  const auto request = fresh_request_id();
  const auto end = std::min<boot_time>(boot_clock::now() + release_effort, last);
  sentence = "its term is over";
  while (boot_clock::now() < end) {
    const auto answer = client.release(grant, request, release_patience);
    if (std::holds_alternative<lock_decision>(answer)) return release_end::released;
    const auto* refusal = std::get_if<lock_refusal>(&answer);
    sentence =
        refusal != nullptr ? refusal->sentence : std::get<transport_failure>(answer).sentence;
    if (refusal != nullptr && tells_loss(*refusal)) return release_end::lost_before;
    ::poll(nullptr, 0, static_cast<int>(release_pause.count()));
  }
  return release_end::unknown;
}

}  // namespace leasehold::tools
