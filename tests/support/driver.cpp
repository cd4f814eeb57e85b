#include "support/driver.hpp"

#include <algorithm>
#include <variant>

namespace leasehold::tests {

using protocol::event_kind;

namespace {

/// Frames of a session that the coordinator has not answered; it would stop reading at more.
constexpr std::size_t most_unanswered = 256;

}  // namespace

driven_session::driven_session(options how, driver_log& log,
                               std::function<protocol::instant()> clock)
    : how_(std::move(how)), log_(log), clock_(std::move(clock)), random_(how_.seed) {}

driven_session::message driven_session::hello() {
  protocol::hello said;
  said.incarnation = how_.incarnation;
  said.client_name = "driver";
  said.queues.push_back({how_.queue, {}});
  message out;
  out.push_back({next_frame_++, std::move(said)});
  return out;
}

void driven_session::hear(std::span<const protocol::coordinator_frame> frames) {
  for (const auto& frame : frames) {
    if (const auto* said = std::get_if<protocol::welcome>(&frame.body)) {
      take_welcome(*said);
    } else {
      inbox_.push_back(frame);
    }
  }
  if (!welcomed()) return;
  std::ranges::shuffle(inbox_, random_);
  // Some wait, so that what comes later overtakes them; never when nothing comes any more.
  const std::size_t waiting = random_() % 4;
  while (!inbox_.empty() && (inbox_.size() > waiting || unanswered_.size() <= waiting)) {
    const auto frame = std::move(inbox_.back());
    inbox_.pop_back();
    take(frame);
  }
}

std::optional<driven_session::message> driven_session::next_message() {
  if (!welcomed() || outbox_.empty()) return std::nullopt;
  if (unanswered_.size() + how_.batch > most_unanswered) return std::nullopt;
  if (outbox_.size() < how_.batch && !unanswered_.empty()) return std::nullopt;
  message out;
  kept_message kept{epoch_, {}};
  while (!outbox_.empty() && out.size() < how_.batch) {
    std::swap(outbox_[random_() % outbox_.size()], outbox_.back());
    out.push_back({next_frame_++, std::move(outbox_.back())});
    outbox_.pop_back();
    if (const auto* about = std::get_if<protocol::lease_frame>(&out.back().body)) {
      unanswered_.insert(out.back().frame_id);
      kept.frames.emplace_back(out.back().frame_id, about->what.lease.value);
    }
  }
  log_.keep(std::move(kept));
  return out;
}

void driven_session::take(const protocol::coordinator_frame& frame) {
  if (const auto* offer = std::get_if<protocol::offer>(&frame.body)) {
    take_offer(*offer);
  } else if (const auto* verdict = std::get_if<protocol::frame_verdict>(&frame.body)) {
    take_verdict(*verdict);
  } else if (const auto* began = std::get_if<protocol::activated>(&frame.body)) {
    keep(began->standing);
  } else if (const auto* notice = std::get_if<protocol::cancel_notice>(&frame.body)) {
    keep(notice->standing);
    want(this->frame(notice->standing, event_kind::cancel_ack));
  } else if (const auto* lost = std::get_if<protocol::lease_lost>(&frame.body)) {
    log_.keep(
        kept_standing{lost->lost.lease.value, lost->lost.gen.value, lost->lost.row.value, {}});
  }
}

void driven_session::take_welcome(const protocol::welcome& what) {
  holder_ = what.holder;
  epoch_ = what.session_epoch;
  for (const auto& standing : what.resumed) {
    keep(standing);
    go_on(standing);
  }
  want(protocol::credit{epoch_, {1}, how_.queue, how_.slots});
}

void driven_session::take_offer(const protocol::offer& what) {
  keep(what.standing, holder_.value);
  if (chance(10)) return;  // it is offered again when nobody takes it
  if (chance(10)) return want(frame(what.standing, event_kind::decline));
  go_on(what.standing);
}

/// Everything that a worker says of a lease, at once: the channel orders it anew.
void driven_session::go_on(const protocol::lease_standing& standing) {
  want(frame(standing, event_kind::ack));
  for (std::int64_t i = 1; i <= 2; ++i) {
    want(frame(standing, event_kind::renew, standing.renew_sequence.value + i));
    auto progress = frame(standing, event_kind::progress, standing.progress_sequence.value + i);
    progress.what.value = "step " + std::to_string(progress.what.seq.value);
    want(std::move(progress));
  }
  if (chance(10)) return want(frame(standing, event_kind::release));
  if (chance(10)) return;  // its lease ends by itself
  auto result = frame(standing, event_kind::result);
  result.what.ending = chance(80) ? protocol::outcome::success : protocol::outcome::failed;
  result.what.retryable = true;
  want(std::move(result));
}

void driven_session::take_verdict(const protocol::frame_verdict& what) {
  unanswered_.erase(what.answers);
  log_.keep(kept_verdict{what.epoch, what.answers, what.standing.lease.value,
                         what.standing.gen.value, what.standing.row.value, what.decision,
                         what.reason});
}

void driven_session::keep(const protocol::lease_standing& standing, std::string offered_to) {
  log_.keep(kept_standing{standing.lease.value, standing.gen.value, standing.row.value,
                          std::move(offered_to)});
}

void driven_session::want(body what) {
  if (chance(10)) outbox_.push_back(what);
  outbox_.push_back(std::move(what));
}

protocol::lease_frame driven_session::frame(const protocol::lease_standing& about, event_kind kind,
                                            std::int64_t seq) const {
  protocol::lease_frame f;
  f.what.kind = kind;
  f.what.lease = about.lease;
  f.what.gen = about.gen;
  f.what.from = holder_;
  f.what.seq = {seq};
  f.what.sent_at = clock_();
  return f;
}

}  // namespace leasehold::tests
