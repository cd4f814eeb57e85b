// What a coordinator does about the epoch of its store, and when: pure, with the time given.
// Times are milliseconds of this machine's CLOCK_BOOTTIME; those of two machines never meet.
#pragma once

#include <cstdint>
#include <optional>

#include "src/epoch_store.hpp"

namespace leasehold::server {

/// How often and how long, from the term alone.
struct epoch_pace {
  protocol::duration term{10'000};  ///< 1 s to 5 min

  /// Between two renewals.
  [[nodiscard]] protocol::duration renew_every() const { return {term.ms / 3}; }
  /// After a renewal that failed.
  [[nodiscard]] protocol::duration retry_after() const;
  /// Between two looks of a standby.
  [[nodiscard]] protocol::duration look_every() const;
  /// What is left unused of the term, for clocks that run at different speeds and for the time
  /// between a look at the clock and the answer that leaves after it.
  [[nodiscard]] protocol::duration margin() const { return {term.ms / 10}; }
};

enum class epoch_step : std::uint8_t {
  look,   ///< read the row
  take,   ///< claim the next epoch, from the row as seen
  renew,  ///< change our own row
  none,   ///< nothing any more
};

class epoch_lease {
 public:
  epoch_lease(epoch_claim mine, std::int64_t now_ms) : mine_(std::move(mine)), look_at_(now_ms) {}

  struct plan {
    epoch_step what = epoch_step::none;
    std::int64_t at_ms = 0;  ///< not before
    friend bool operator==(const plan&, const plan&) = default;
  };
  [[nodiscard]] plan next() const;

  // ---- what came of a step. `sent_ms`: before it was sent; `answered_ms`: once its answer was
  // here
  void looked(std::int64_t answered_ms, const std::optional<epoch_row>& found);
  /// Nothing in `won`: the row had changed.
  void took(std::int64_t sent_ms, std::int64_t answered_ms, const std::optional<epoch_row>& won);
  /// Nothing in `still`: the row is somebody else's.
  void renewed(std::int64_t sent_ms, const std::optional<epoch_row>& still);
  /// There was no answer; the step may have taken effect.
  void failed(std::int64_t at_ms);
  /// The time is `now_ms`: a lease that has run out is over for good.
  void pass(std::int64_t now_ms);
  /// Another coordinator has the store, whoever says so.
  void depose() {
    lost_ = lost_ || holds_;
    holds_ = false;
  }

  /// The epoch is ours.
  [[nodiscard]] bool holds() const noexcept { return holds_; }
  /// It was ours, and is not any more.
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  /// How long it is ours without another renewal.
  [[nodiscard]] std::int64_t until_ms() const noexcept { return until_ms_; }
  /// The newest row that was seen; nothing: none, or none yet.
  [[nodiscard]] const std::optional<epoch_row>& row() const noexcept { return row_; }
  [[nodiscard]] const epoch_claim& mine() const noexcept { return mine_; }
  [[nodiscard]] epoch_pace pace() const noexcept { return {mine_.term}; }

 private:
  void see(std::int64_t answered_ms, const std::optional<epoch_row>& found);
  /// When the row as seen may be taken; nothing: no row was seen yet.
  [[nodiscard]] std::optional<std::int64_t> takeable_at() const;

  epoch_claim mine_;
  bool holds_ = false;
  bool lost_ = false;
  bool has_looked_ = false;
  std::int64_t look_at_;
  std::int64_t not_before_ = 0;  // of a take, after one that failed
  std::optional<epoch_row> row_;
  std::int64_t unchanged_since_ = 0;  // when the row was first seen as it is
  std::int64_t until_ms_ = 0;
  std::int64_t renew_at_ = 0;
};

}  // namespace leasehold::server
