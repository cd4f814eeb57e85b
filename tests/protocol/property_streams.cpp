#include "tests/protocol/property_streams.hpp"

#include <algorithm>
#include <ostream>

namespace leasehold {

using namespace protocol;

namespace {

constexpr event_kind of_a_job[] = {
    event_kind::offer,      event_kind::ack,    event_kind::renew,  event_kind::progress,
    event_kind::ack,        event_kind::offer,  event_kind::result, event_kind::release,
    event_kind::cancel_ack, event_kind::cancel, event_kind::revoke, event_kind::decline,
    event_kind::renew,      event_kind::prove,  event_kind::submit, event_kind::resolve,
    event_kind::reconcile,  event_kind::result, event_kind::offer,  event_kind::withdraw,
    event_kind::acquire,    event_kind::result, event_kind::cancel, event_kind::cancel_ack,
    event_kind::cancel_ack, event_kind::ack,    event_kind::result, event_kind::offer};
constexpr event_kind of_a_lock[] = {event_kind::acquire, event_kind::renew,   event_kind::progress,
                                    event_kind::release, event_kind::acquire, event_kind::ack,
                                    event_kind::result,  event_kind::revoke,  event_kind::resolve,
                                    event_kind::acquire, event_kind::decline, event_kind::cancel};

constexpr outcome endings[] = {outcome::success, outcome::failed, outcome::cancelled,
                               outcome::none};
constexpr std::int64_t sent_offsets[] = {0, -1, -5, 1, 20, 21, -20, -21, -200, -100'000, 100'000};
constexpr std::int64_t steps[] = {0, 1, 1, 2, 5, 10, 40, 300};

template <class Table>
auto pick(const Table& table, int index) {
  return table[static_cast<std::size_t>(index) % std::size(table)];
}

instant time_of(const choice& c, const record& lease, instant now) {
  if (c.time < 8) return instant{now.ms + pick(steps, c.time)};
  const instant due = next_deadline(lease).value_or(instant{now.ms + 3});
  const instant target = c.time < 11 ? due : lease.next_offer_at;
  const std::int64_t beside = c.time % 3 - 1;  // one before, at, one after
  return later(now, instant{target.ms + beside});
}

holder holder_of(const choice& c, const record& lease, event_kind kind) {
  if (c.holder == 3) return holder{};
  if (c.holder != 0) return holder{c.holder == 1 ? "a" : "b"};
  if (kind == event_kind::offer || kind == event_kind::acquire) return holder{"a"};
  if (c.generation > 0) {
    for (const unproven_generation& u : lease.unproven) {
      if (u.gen.value == lease.gen.value - c.generation) return u.from;
    }
  }
  return lease.held_by;
}

void fill_frame(event& what, const choice& c, const record& lease, instant now) {
  what.gen = generation{lease.gen.value - c.generation};
  what.sent_at = instant{now.ms + pick(sent_offsets, c.sent)};
  if (what.kind == event_kind::renew) {
    what.seq = sequence{c.sequence == 0 ? lease.renew_sequence.value + 1 : c.sequence - 1};
  }
  if (what.kind == event_kind::progress) {
    what.seq = sequence{c.sequence == 0 ? lease.progress_sequence.value + 1 : c.sequence - 1};
    what.value = c.value == 0 ? "10%" : "20%";
  }
  if (what.kind == event_kind::result) {
    what.ending = pick(endings, c.ending);
    what.retryable = c.flag;
    what.detail = c.value == 0 ? "" : "d";
  }
}

}  // namespace

moment resolve_choice(const choice& c, subject about, const record& lease, instant now) {
  moment out;
  out.at = time_of(c, lease, now);
  event& what = out.what;
  what.kind = about == subject::job ? pick(of_a_job, c.kind) : pick(of_a_lock, c.kind);
  what.lease = lease_id{"L"};
  const event_kind kind = what.kind;
  if (kind == event_kind::submit || kind == event_kind::offer) what.job = job_id{"J"};
  const bool names_holder = is_frame(kind) || kind == event_kind::offer ||
                            kind == event_kind::acquire || (kind == event_kind::resolve && c.flag);
  if (names_holder) what.from = holder_of(c, lease, kind);
  if (is_frame(kind)) fill_frame(what, c, lease, out.at);
  if (kind == event_kind::prove) what.gen = generation{lease.gen.value - c.generation};
  if (kind == event_kind::revoke) what.force = c.flag;
  if (kind == event_kind::reconcile) what.ending = pick(endings, c.ending + 1);
  const bool may_have_id = kind == event_kind::release || kind == event_kind::acquire ||
                           kind == event_kind::cancel || kind == event_kind::revoke ||
                           kind == event_kind::resolve || kind == event_kind::reconcile;
  if (may_have_id && c.request != 0) what.request = request_id{"r" + std::to_string(c.request)};
  return out;
}

bool goes_on_with_another(const choice& c, const record& lease) {
  return is_settled(lease.state) && c.flag;
}

policy policy_number(int number) {
  policy chosen;
  chosen.ack_timeout = duration{40};
  chosen.lease_duration = duration{60};
  chosen.cancel_grace = duration{30};
  chosen.reconcile_window = duration{50};
  chosen.max_clock_skew = duration{20};
  chosen.retry_backoff = duration{number % 2 == 0 ? 0 : 10};
  chosen.retry_backoff_max = duration{25};
  chosen.max_lifetime = duration{number % 3 == 2 ? 100 : 0};
  chosen.max_attempts = number % 4 == 3 ? 1 + number % 3 : 0;
  chosen.max_losses = number % 5 == 4 ? 2 : 0;
  chosen.lock_delay = duration{number % 4 == 1 ? 15 : 0};
  chosen.on_ack_timeout = number % 6 == 5 ? on_deadline::fail : on_deadline::reoffer;
  chosen.on_expiry = number % 7 == 6 ? on_deadline::fail : on_deadline::reoffer;
  chosen.on_conflict = number % 2 == 1 ? on_conflict::freeze : on_conflict::resolve_by_record;
  chosen.on_unresolved = number % 3 == 1 ? on_unresolved::fail : on_unresolved::operator_;
  chosen.defer_limit = number % 5 == 2 ? 2 : 64;
  return chosen;
}

std::ostream& operator<<(std::ostream& out, const choice& c) {
  return out << "{" << c.kind << ", " << c.generation << ", " << c.holder << ", " << c.sequence
             << ", " << c.value << ", " << c.ending << ", " << c.sent << ", " << c.time << ", "
             << c.request << ", " << c.flag << "}";
}

std::ostream& operator<<(std::ostream& out, const moment& m) {
  out << m.at.ms << " " << word(m.what.kind);
  if (m.what.gen.value != 0) out << " generation " << m.what.gen.value;
  if (!m.what.from.empty()) out << " by " << m.what.from.value;
  if (m.what.seq.value != 0) out << " sequence " << m.what.seq.value;
  if (m.what.ending != outcome::none) out << " " << word(m.what.ending);
  if (m.what.retryable) out << " retryable";
  if (m.what.force) out << " force";
  if (!m.what.request.empty()) out << " request " << m.what.request.value;
  if (m.what.sent_at.ms != 0) out << " sent " << m.what.sent_at.ms;
  return out;
}

}  // namespace leasehold
