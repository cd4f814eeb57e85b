// Facts and changes that several rules share.
#include "rules_parts.hpp"

#include <algorithm>

namespace leasehold::protocol {

bool is_repeat(const remembered_request& done, const event& what) noexcept {
  return done.kind == what.kind && done.from == what.from && done.gen == what.gen &&
         done.ending == what.ending && done.unknown_outcome == what.unknown_outcome &&
         done.detail == what.detail && done.force == what.force;
}

}  // namespace leasehold::protocol

namespace leasehold::protocol::parts {

request_is compare_request(const record& r, const event& what) noexcept {
  if (what.request.empty()) return request_is::fresh;
  for (const auto& done : r.requests) {
    if (done.id != what.request) continue;
    return is_repeat(done, what) ? request_is::same : request_is::other;
  }
  return request_is::fresh;
}

const unproven_generation* find_unproven(const record& r, generation gen) noexcept {
  for (const auto& open : r.unproven) {
    if (open.gen == gen) return &open;
  }
  return nullptr;
}

const unproven_generation* find_stopped(const record& r, const event& what) noexcept {
  if (what.kind != event_kind::result && what.kind != event_kind::release) return nullptr;
  const auto* open = find_unproven(r, what.gen);
  if (open == nullptr || open->from != what.from || what.sent_at < open->last_sent) return nullptr;
  return open;
}

std::optional<instant> end_of_life(const record& r, const policy& chosen) noexcept {
  if (chosen.max_lifetime.ms == 0) return std::nullopt;
  return r.acquired_at + chosen.max_lifetime;
}

duration term_of(const policy& chosen) noexcept {
  if (chosen.max_lifetime.ms == 0) return chosen.lease_duration;
  return std::min(chosen.lease_duration, chosen.max_lifetime);
}

renewal renewal_of(const record& r, const policy& chosen, instant now) noexcept {
  renewal next{now + chosen.lease_duration};
  std::optional<instant> cap = end_of_life(r, chosen);
  cap_is kind = cap_is::lifetime;
  if (r.cancel_requested_at && (!cap || r.cancel_deadline <= *cap)) {
    cap = r.cancel_deadline;
    kind = cap_is::cancel;
  }
  if (cap && *cap < next.expires_at) {
    if (*cap <= r.expires_at) next.stopped_by = kind;
    next.expires_at = *cap;
  }
  next.expires_at = later(next.expires_at, r.expires_at);
  return next;
}

std::optional<instant> grace_of(const record& r, const policy& chosen, instant now) noexcept {
  if (!is_live(r.state) || r.graces >= most_graces) return std::nullopt;
  instant wanted = now + chosen.recovery_grace;
  if (r.state != lease_state::offered) {
    wanted = now + std::min(chosen.recovery_grace, chosen.lease_duration);
    if (const auto end = end_of_life(r, chosen)) wanted = earlier(wanted, *end);
  }
  if (r.cancel_requested_at) wanted = earlier(wanted, r.cancel_deadline);
  if (wanted <= r.expires_at || wanted <= now) return std::nullopt;
  return wanted;
}

bool next_loss_is_last(const record& r, const policy& chosen) noexcept {
  return r.kind == lease_kind::job && chosen.max_losses > 0 && r.losses + 1 >= chosen.max_losses;
}

bool attempts_used_up(const record& r, const policy& chosen) noexcept {
  return r.kind == lease_kind::job && chosen.max_attempts > 0 && r.attempt >= chosen.max_attempts;
}

void settle(record& r, lease_state end, outcome terminal, const std::string& detail) {
  r.state = end;
  r.frozen = false;
  r.terminal_result = terminal;
  r.terminal_detail = detail;
}

void fail_without_result(record& r) {
  r.state = lease_state::failed;
  r.frozen = false;
}

void become_unresolved(record& r, const policy& chosen, instant from) {
  r.state = lease_state::unresolved;
  r.reconcile_deadline = from + chosen.reconcile_window;
  r.reconcile_window_over = false;
}

void lose(record& r, const policy& chosen, instant at) {
  ++r.losses;
  r.next_offer_at = at + backoff(chosen, r.losses);
}

void add_unproven(record& r) {
  if (r.unproven.size() == named_unproven) {
    r.unproven.erase(r.unproven.begin());
    ++r.unproven_nameless;
  }
  r.unproven.push_back({r.gen, r.held_by, r.last_sent});
}

void drop_unproven(record& r, generation gen) {
  std::erase_if(r.unproven, [gen](const auto& open) { return open.gen == gen; });
}

void remember(record& r, const event& what) {
  if (what.request.empty()) return;
  if (r.requests.size() == remembered_requests) r.requests.erase(r.requests.begin());
  r.requests.push_back({what.request, what.kind, what.gen, what.from, what.ending,
                        what.unknown_outcome, what.detail, what.force, r.gen});
}

void grant_sooner_if_revoked(record& r, const policy& chosen, generation stopped, instant now) {
  if (r.state != lease_state::revoked || stopped != r.gen) return;
  r.next_offer_at = earlier(r.next_offer_at, now + chosen.lock_delay);
}

std::vector<deferred_frame> take_deferred(record& r) {
  auto waiting = r.deferred.take();
  // The kinds of event_kind stand in this very order.
  static_assert(
      event_kind::renew < event_kind::progress && event_kind::progress < event_kind::cancel_ack &&
      event_kind::cancel_ack < event_kind::result && event_kind::result < event_kind::release);
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
    return std::tie(a.frame.kind, a.frame.seq, a.frame.sent_at) <
           std::tie(b.frame.kind, b.frame.seq, b.frame.sent_at);
  });
  return waiting;
}

}  // namespace leasehold::protocol::parts
