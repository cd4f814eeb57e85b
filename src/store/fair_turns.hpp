// Whose turn it is on a thread where commits and what is written behind them both wait.
#pragma once

#include <algorithm>
#include <chrono>

namespace leasehold::storage {

/// Gives both half of the time while both wait. Neither is owed more than `most_ahead` for the time
/// when it did not.
class fair_turns {
 public:
  using duration = std::chrono::steady_clock::duration;
  explicit constexpr fair_turns(duration most_ahead) : most_ahead_(most_ahead) {}

  /// True when what is behind has had less than commits.
  [[nodiscard]] constexpr bool behind_goes_first() const { return ahead_ < duration::zero(); }
  constexpr void commits_took(duration time) { shift(-time); }
  constexpr void behind_took(duration time) { shift(time); }

 private:
  constexpr void shift(duration by) { ahead_ = std::clamp(ahead_ + by, -most_ahead_, most_ahead_); }

  duration most_ahead_;
  duration ahead_{};  ///< how much more than commits the other had
};

}  // namespace leasehold::storage
