#include "tools/exec/renew_schedule.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds shortest_patience{100};
constexpr milliseconds first_backoff{50};
constexpr int most_doublings = 10;

}  // namespace

renew_schedule::renew_schedule(milliseconds term, boot_time sent, const told_term& granted,
                               chance dice)
    : term_(term), dice_(std::move(dice)), holds_(first_authority(sent, granted)) {
  due_ = sent + spread(term_ / 3);
}

milliseconds renew_schedule::longest_answer() const noexcept {
  return std::max(term_ / 5, shortest_patience);
}

nanoseconds renew_schedule::spread(nanoseconds longest) const {
  // Earlier only: holders that began together do not stay together, and none is late for it.
  const auto part = 1.0 - 0.2 * dice_();
  return nanoseconds(static_cast<std::int64_t>(static_cast<double>(longest.count()) * part));
}

renew_attempt renew_schedule::begin(boot_time now) {
  if (tries_ == 0) first_sent_ = now;
  ++tries_;
  return {sequence_, now, longest_answer()};
}

void renew_schedule::answered(const renew_attempt& attempt, const told_term& told,
                              std::int64_t last_sequence, bool by_repeat) {
  // Which sending was accepted is not known of a repeat: the first one is the safe guess.
  const auto sent = by_repeat ? first_sent_ : attempt.sent;
  holds_ = renewed_authority(holds_, sent, told);
  sequence_ = std::max(attempt.sequence, last_sequence) + 1;
  tries_ = 0;
  due_ = sent + spread(term_ / 3);
}

void renew_schedule::outrun(boot_time now, std::int64_t last_sequence) {
  unanswered(now);
  sequence_ = std::max(sequence_, last_sequence) + 1;
  tries_ = 0;
}

void renew_schedule::unanswered(boot_time now) {
  const auto doublings = std::clamp(tries_ - 1, 0, most_doublings);
  const nanoseconds wanted = first_backoff * (1 << doublings);
  due_ = now + spread(std::min<nanoseconds>(wanted, term_ / 10));
}

}  // namespace leasehold::tools
