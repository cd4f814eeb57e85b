#include "tools/exec/acquisition.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "tools/api.hpp"

namespace leasehold::tools {
namespace {

using std::chrono::milliseconds;

/// How long a coordinator that does not answer is tried when the lock is not waited for.
constexpr milliseconds effort_without_wait{2000};
/// The same where another one may be taking over: a term of theirs, and the recovery.
constexpr milliseconds effort_with_others{15'000};
/// One try is given so long, however short the wait is.
constexpr milliseconds least_connect{500};
constexpr milliseconds longest_connect{5000};
/// Who was sent the request may have granted the lock, so that its answer is worth more patience.
constexpr milliseconds answer_patience{5000};
/// The longest that one call waits there; the coordinator's own maximum may be lower.
constexpr milliseconds longest_wait_at_once{60'000};
constexpr milliseconds first_pause{100};
constexpr milliseconds longest_pause{2000};

milliseconds until(boot_time end) {
  return std::max(std::chrono::ceil<milliseconds>(end - boot_clock::now()), milliseconds(0));
}

class asking {
 public:
  asking(lock_client& client, acquire_plan plan)
      : client_(client),
        plan_(std::move(plan)),
        began_(boot_clock::now()),
        wait_end_(began_ + plan_.wait),
        effort_end_(plan_.wait.count() > 0 ? wait_end_ : began_ + effort(client)) {}

  std::variant<acquired_lock, not_acquired> run();

 private:
  using outcome = std::optional<not_acquired>;  // nothing: ask again

  static milliseconds effort(const lock_client& client) {
    return client.has_others() ? effort_with_others : effort_without_wait;
  }
  outcome after(const lock_refusal& refusal);
  outcome after(const transport_failure& failure);
  outcome pause(boot_time end, milliseconds wanted, not_acquired when_over);
  void begin_request();

  lock_client& client_;
  acquire_plan plan_;
  boot_time began_;
  boot_time wait_end_;
  boot_time effort_end_;
  boot_time first_sent_{};
  bool is_sent_ = false;
  milliseconds pause_ = first_pause;
};

std::variant<acquired_lock, not_acquired> asking::run() {
  for (;;) {
    if (!std::exchange(is_sent_, true)) first_sent_ = boot_clock::now();
    const auto wait = std::min(until(wait_end_), longest_wait_at_once);
    client_.connect_within(std::clamp(until(effort_end_), least_connect, longest_connect));
    auto answer = client_.acquire(plan_.request, wait, answer_patience);
    if (auto* grant = std::get_if<lock_grant>(&answer)) {
      return acquired_lock{std::move(*grant), first_sent_};
    }
    const auto* refusal = std::get_if<lock_refusal>(&answer);
    auto end = refusal != nullptr ? after(*refusal) : after(std::get<transport_failure>(answer));
    if (end) return std::move(*end);
  }
}

asking::outcome asking::after(const lock_refusal& refusal) {
  switch (kind_of(refusal)) {
    case refusal_kind::held:
      if (plan_.wait.count() == 0) return not_acquired{exit_code::not_acquired, refusal.sentence};
      begin_request();
      return pause(wait_end_, std::max(refusal.retry_after, first_pause),
                   {exit_code::wait_passed, refusal.sentence});
    case refusal_kind::waited_out:
      begin_request();
      if (until(wait_end_).count() > 0) return pause(wait_end_, milliseconds(1), {});
      return not_acquired{exit_code::wait_passed, refusal.sentence};
    case refusal_kind::grant_ended:
      // The grant came while nobody heard of it, and its term is over: this is a new wish.
      plan_.request.request_id = fresh_request_id();
      begin_request();
      return pause(effort_end_, first_pause, {exit_code::exec_failed, refusal.sentence});
    case refusal_kind::later:
      return pause(effort_end_, std::max(refusal.retry_after, pause_),
                   {exit_code::exec_failed, refusal.sentence});
    case refusal_kind::final:
      break;
  }
  return not_acquired{exit_code::exec_failed, refusal.sentence};
}

asking::outcome asking::after(const transport_failure& failure) {
  not_acquired when_over{exit_code::exec_failed, failure.sentence};
  if (failure.is_by_options) return when_over;
  return pause(effort_end_, pause_, std::move(when_over));
}

/// What was refused took no effect: the time of a later grant counts from the next sending.
void asking::begin_request() { is_sent_ = false; }

/// Waits a while before the next try; `when_over` when `end` comes before that.
asking::outcome asking::pause(boot_time end, milliseconds wanted, not_acquired when_over) {
  const auto left = until(end);
  pause_ = std::min(2 * pause_, longest_pause);
  // Those who were refused together do not come back together.
  wanted += milliseconds(std::random_device()() % static_cast<unsigned>(wanted.count() / 4 + 1));
  pollfd stop{plan_.stop_descriptor, POLLIN, 0};
  ::poll(&stop, 1, static_cast<int>(std::min(wanted, left).count()));
  if (stop.revents != 0) return not_acquired{exit_code::interrupted, "it was stopped"};
  return left.count() == 0 ? outcome(std::move(when_over)) : std::nullopt;
}

}  // namespace

refusal_kind kind_of(const lock_refusal& refusal) {
  if (refusal.reason == "wait_deadline_passed") return refusal_kind::waited_out;
  if (refusal.status == 200) return refusal_kind::grant_ended;
  if (refusal.status == 409 || refusal.status == 423) return refusal_kind::held;
  const bool is_later = refusal.status == 202 || refusal.status == 429 || refusal.status >= 500;
  return is_later ? refusal_kind::later : refusal_kind::final;
}

std::variant<acquired_lock, not_acquired> acquire(lock_client& client, acquire_plan plan) {
  return asking(client, std::move(plan)).run();
}

}  // namespace leasehold::tools
