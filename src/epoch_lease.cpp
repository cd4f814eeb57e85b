#include "src/epoch_lease.hpp"

#include <algorithm>

namespace leasehold::server {
namespace {

constexpr std::int64_t shortest_term_ms = 1000;

}  // namespace

protocol::duration epoch_pace::retry_after() const {
  return {std::clamp<std::int64_t>(term.ms / 20, 50, 500)};
}

protocol::duration epoch_pace::look_every() const {
  return {std::clamp<std::int64_t>(term.ms / 20, 50, 250)};
}

epoch_lease::plan epoch_lease::next() const {
  if (lost_) return {};
  if (holds_) return {epoch_step::renew, renew_at_};
  const auto takeable = takeable_at();
  if (takeable && *takeable <= look_at_) return {epoch_step::take, *takeable};
  return {epoch_step::look, look_at_};
}

std::optional<std::int64_t> epoch_lease::takeable_at() const {
  if (!has_looked_) return std::nullopt;
  // A row of ours is one of a take whose answer was lost: nothing was ever answered under it.
  const bool is_free = !row_ || row_->released || row_->by.holder == mine_.holder;
  const std::int64_t wait = is_free ? 0 : std::max(row_->by.term.ms, shortest_term_ms);
  return std::max(unchanged_since_ + wait, not_before_);
}

void epoch_lease::see(std::int64_t answered_ms, const std::optional<epoch_row>& found) {
  // The holder sent its renewal before the row changed, and the row had changed before the answer:
  // counted from the answer, a whole term is over later here than there.
  if (!has_looked_ || found != row_) unchanged_since_ = answered_ms;
  has_looked_ = true;
  row_ = found;
}

void epoch_lease::looked(std::int64_t answered_ms, const std::optional<epoch_row>& found) {
  see(answered_ms, found);
  look_at_ = answered_ms + pace().look_every().ms;
}

void epoch_lease::took(std::int64_t sent_ms, std::int64_t answered_ms,
                       const std::optional<epoch_row>& won) {
  if (!won) {
    has_looked_ = false;
    look_at_ = answered_ms;
    return;
  }
  see(answered_ms, won);
  holds_ = true;
  until_ms_ = sent_ms + mine_.term.ms - pace().margin().ms;
  renew_at_ = sent_ms + pace().renew_every().ms;
}

void epoch_lease::renewed(std::int64_t sent_ms, const std::optional<epoch_row>& still) {
  if (!holds_) return;
  if (!still) return depose();
  row_ = still;
  until_ms_ = std::max(until_ms_, sent_ms + mine_.term.ms - pace().margin().ms);
  renew_at_ = sent_ms + pace().renew_every().ms;
}

void epoch_lease::failed(std::int64_t at_ms) {
  const std::int64_t again = at_ms + pace().retry_after().ms;
  if (holds_) {
    renew_at_ = again;
    return;
  }
  // What a lost take has done is in the row.
  look_at_ = again;
  not_before_ = again + 1;
}

void epoch_lease::pass(std::int64_t now_ms) {
  if (holds_ && now_ms >= until_ms_) depose();
}

}  // namespace leasehold::server
