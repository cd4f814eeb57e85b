#include "outbox.hpp"

#include <algorithm>

namespace leasehold::client {
namespace {

constexpr std::size_t most_sendings = 8;
constexpr protocol::duration deferred_resend{5000};

int rank_of(protocol::event_kind kind) {
  using protocol::event_kind;
  if (kind == event_kind::renew) return 0;
  if (kind == event_kind::ack) return 1;
  if (kind == event_kind::cancel_ack) return 2;
  if (kind == event_kind::result) return 3;
  if (kind == event_kind::release) return 4;
  if (kind == event_kind::decline) return 5;
  return 6;
}

}  // namespace

protocol::duration jitter::around(protocol::duration middle) {
  const auto tenth = middle.ms / 10;
  return {
      std::uniform_int_distribution<std::int64_t>(middle.ms - tenth, middle.ms + tenth)(random_)};
}

protocol::duration jitter::after(protocol::duration least) {
  return {least.ms + std::uniform_int_distribution<std::int64_t>(0, least.ms / 10)(random_)};
}

outbox::key outbox::key_of(const grant& about, protocol::event_kind kind) {
  return {rank_of(kind), about};
}

void outbox::add(local_time now, const grant& about, protocol::lease_frame content, patience wait,
                 protocol::instant not_before) {
  const auto which = key_of(about, content.what.kind);
  frames_[which] = {.content = std::move(content),
                    .wait = wait,
                    .due = now,
                    .not_before = not_before,
                    .first_sent = {},
                    .sendings = {},
                    .in_flight = false,
                    .deferred = false};
}

bool outbox::has(const grant& about, protocol::event_kind kind) const {
  return frames_.contains(key_of(about, kind));
}

const protocol::lease_frame* outbox::find(const grant& about, protocol::event_kind kind) const {
  const auto at = frames_.find(key_of(about, kind));
  return at == frames_.end() ? nullptr : &at->second.content;
}

void outbox::drop(const grant& about, protocol::event_kind kind) {
  const auto at = frames_.find(key_of(about, kind));
  if (at != frames_.end()) forget(at);
}

void outbox::clear() {
  frames_.clear();
  by_frame_id_.clear();
  in_flight_ = 0;
}

void outbox::forget(std::map<key, kept_frame>::iterator at) {
  for (const auto& s : at->second.sendings) by_frame_id_.erase({s.epoch, s.frame_id});
  if (at->second.in_flight) --in_flight_;
  frames_.erase(at);
}

std::optional<outbox::answered> outbox::judge(local_time now,
                                              const protocol::frame_verdict& verdict) {
  const auto named = by_frame_id_.find({verdict.epoch, verdict.answers});
  if (named == by_frame_id_.end()) return std::nullopt;
  const auto at = frames_.find(named->second);
  auto& frame = at->second;
  const auto sent = std::find_if(
      frame.sendings.begin(), frame.sendings.end(),
      [&](const sending& s) { return s.epoch == verdict.epoch && s.frame_id == verdict.answers; });
  answered answer{.about = at->first.second,
                  .content = frame.content,
                  .first_sent = frame.first_sent,
                  .sent = sent->at,
                  .kept = false};
  using protocol::reason_class;
  switch (verdict.outcome) {
    case reason_class::ok:
    case reason_class::permanent:
      // A verdict about an old socket says nothing about the lease: the frame is sent again.
      answer.kept = verdict.reason == protocol::reason::session_superseded;
      break;
    case reason_class::pending:
      answer.kept = true;
      frame.deferred = true;
      frame.due = now + std::max(frame.wait.first, deferred_resend);
      break;
    case reason_class::retryable:
    case reason_class::unknown_outcome:
      answer.kept = true;
      frame.due = now + spread_.after(std::max(frame.wait.first, verdict.retry_after));
      break;
  }
  if (!answer.kept) forget(at);
  return answer;
}

void outbox::reopen(local_time now, std::size_t allowed) {
  most_in_flight_ = allowed == 0 ? bound_ : std::min(bound_, allowed);
  in_flight_ = 0;
  for (auto& [which, frame] : frames_) {
    frame.in_flight = false;
    if (!frame.deferred) frame.due = now;
  }
}

protocol::worker_frame outbox::send(local_time now, const key& which, kept_frame& frame,
                                    sending_session& session) {
  auto& what = frame.content.what;
  if (frame.sendings.empty()) {
    frame.first_sent = now;
    what.sent_at = protocol::later({now.ms + session.server_minus_local_ms}, frame.not_before);
  }
  if (!frame.in_flight) {
    frame.in_flight = true;
    ++in_flight_;
  }
  if (frame.sendings.size() == most_sendings) {
    by_frame_id_.erase({frame.sendings.front().epoch, frame.sendings.front().frame_id});
    frame.sendings.erase(frame.sendings.begin());
  }
  what.frame_id = ++session.last_frame_id;
  frame.sendings.push_back({session.epoch, what.frame_id, now});
  by_frame_id_[{session.epoch, what.frame_id}] = which;
  frame.due = now + spread_.around(frame.wait.first);
  frame.wait.first = std::min(protocol::duration{frame.wait.first.ms * 2}, frame.wait.most);
  return {.frame_id = what.frame_id, .body = frame.content};
}

std::optional<local_time> outbox::next_due() const {
  std::optional<local_time> next;
  for (const auto& [which, frame] : frames_) {
    if (!frame.in_flight && in_flight_ >= most_in_flight_) continue;
    if (!next || frame.due < *next) next = frame.due;
  }
  return next;
}

}  // namespace leasehold::client
