// When a lock is renewed, and with which sequence. Pure: time and chance are handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "tools/exec/authority.hpp"

namespace leasehold::tools {

/// One sending of a renew. A repeat for want of an answer has the sequence of the first try, so
/// that the coordinator takes it once.
struct renew_attempt {
  std::int64_t sequence = 0;
  boot_time sent;
  std::chrono::milliseconds patience{};  ///< how long its answer is waited for
};

/// Renews at a third of the term. Without an answer it tries again, ever less often, but at least
/// ten times a term.
class renew_schedule {
 public:
  /// Yields numbers from 0 up to, not including, 1.
  using chance = std::function<double()>;

  /// `sent`: when the acquire was sent, for the first time, that was granted.
  renew_schedule(std::chrono::milliseconds term, boot_time sent, const told_term& granted,
                 chance dice);

  /// When the next attempt is to be begun; the far future once no more is.
  [[nodiscard]] boot_time due() const noexcept { return due_; }
  /// How long the answer to one attempt is waited for.
  [[nodiscard]] std::chrono::milliseconds longest_answer() const noexcept;
  [[nodiscard]] const authority& holds() const noexcept { return holds_; }

  renew_attempt begin(boot_time now);
  /// It was accepted, or, `by_repeat`, an earlier sending of the same sequence had been.
  /// `last_sequence` is the highest that the coordinator has accepted.
  void answered(const renew_attempt& attempt, const told_term& told, std::int64_t last_sequence,
                bool by_repeat);
  /// It came too late for its sequence: nothing is won, and the next one goes beyond the last.
  void outrun(boot_time now, std::int64_t last_sequence);
  /// No answer, or one that asks to try again.
  void unanswered(boot_time now);
  /// The coordinator renews it no more; what is held stays until its deadline.
  void finish() noexcept { due_ = boot_time::max(); }

 private:
  [[nodiscard]] std::chrono::nanoseconds spread(std::chrono::nanoseconds longest) const;

  std::chrono::milliseconds term_;
  chance dice_;
  authority holds_;
  boot_time due_;
  boot_time first_sent_;       ///< of the sequence in flight
  std::int64_t sequence_ = 1;  ///< of the next attempt
  int tries_ = 0;              ///< of that sequence, unanswered
};

}  // namespace leasehold::tools
