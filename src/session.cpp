#include "src/session.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::server {

using protocol::close_code;

session::session(const call& admitted, protocol::encoding how, tenant_quota::ticket place)
    : api_(admitted.api),
      credential_(admitted.make_credential()),
      place_(std::move(place)),
      codec_(how) {}

void session::start(std::shared_ptr<socket> on) {
  socket_ = std::move(on);
  id_ = api_->gateway->open_session(credential_.who(), shared_from_this());
  api_->sockets.add(shared_from_this());
  check_credential();  // it may have ended between the upgrade's request and its answer
}

void session::check_credential() {
  if (!credential_.holds()) close(close_code::credential_ended, credential_ended);
}

void session::on_message(std::span<const std::byte> message, bool text) {
  const protocol::instant ingress = api_->gateway->now();
  if (socket_ == nullptr) return;
  if (!api_->may_answer()) {
    close(close_code::going_away, no_longer_active);
    return;
  }
  if (text != (codec_.how() == protocol::encoding::json)) {
    close(close_code::wrong_message_type, "This subprotocol takes the other kind of message.");
    return;
  }
  if (!credential_.holds()) {
    close(close_code::credential_ended, credential_ended);
    return;
  }
  auto decoded = codec_.decode_worker(message);
  // A message that cannot be read as a whole is answered as one unreadable frame.
  if (decoded.broken) decoded.unreadable.push_back(*std::exchange(decoded.broken, std::nullopt));
  const std::size_t bad = decoded.unreadable.size();
  const std::size_t frames = decoded.frames.size() + bad;
  api_->shared.counters->messages_in.add();
  const bool tolerable = count_bad(bad, ingress);
  api_->gateway->deliver(id_, std::move(decoded), ingress);
  if (!tolerable) {
    close(close_code::policy, "More than 10 unreadable frames within a minute.");
    return;
  }
  slow_down(message.size(), frames, ingress);
}

void session::on_close() {
  socket_.reset();
  place_.reset();
  api_->sockets.remove(this);
  api_->gateway->close_session(id_);
}

void session::send(std::span<const protocol::coordinator_frame> frames) {
  if (socket_ == nullptr || frames.empty()) return;
  if (!credential_.holds()) {
    // Nothing more leaves to a revoked credential; an offer that was on its way is missed or
    // withdrawn.
    close(close_code::credential_ended, credential_ended);
    return;
  }
  if (!api_->may_answer()) {
    close(close_code::going_away, no_longer_active);
    return;
  }
  std::string message;
  codec_.encode(frames, message);
  api_->shared.counters->messages_out.add();
  socket_->send(std::move(message));
}

void session::close(close_code code, std::string_view why) {
  if (socket_ != nullptr) socket_->close(code, why);
}

void session::pause_reading(bool paused) {
  paused_by_coordinator_ = paused;
  apply_pause();
}

bool session::count_bad(std::size_t frames, protocol::instant now) {
  if (frames == 0) return true;
  while (!bad_frames_.empty() && bad_frames_.front() + protocol::duration{60'000} <= now) {
    bad_frames_.pop_front();
  }
  const std::size_t counted = std::min(frames, bad_frames_a_minute + 1);
  bad_frames_.insert(bad_frames_.end(), counted, now);
  return bad_frames_.size() <= bad_frames_a_minute;
}

void session::slow_down(std::size_t bytes, std::size_t frames, protocol::instant now) {
  const auto chosen = api_->shared.chosen->current();
  const auto wait =
      std::max(frames_.charge(static_cast<std::int64_t>(frames), chosen->frames_per_second, now),
               bytes_.charge(static_cast<std::int64_t>(bytes), chosen->bytes_per_second, now));
  if (wait.ms == 0) {
    slowed_since_ = {};
    return;
  }
  if (!slowed_since_) slowed_since_ = now;
  if (now >= slowed_since_ + longest_slowing) {
    close(close_code::policy, "More frames or bytes a second than a session may send.");
    return;
  }
  paused_by_rate_ = true;
  apply_pause();
  api_->after(wait, [self = weak_from_this()] {
    if (const auto s = self.lock()) s->resume_reading();
  });
}

void session::resume_reading() {
  paused_by_rate_ = false;
  apply_pause();
}

void session::apply_pause() {
  if (socket_ != nullptr) socket_->pause_reading(paused_by_coordinator_ || paused_by_rate_);
}

}  // namespace leasehold::server
