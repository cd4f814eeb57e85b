#include "src/socket_pace.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::chrono::milliseconds least_wait{1};

}  // namespace

bool socket_pace::take_piece(time_point at, std::size_t held) {
  last_byte_ = at;
  if (pieces_++ == 0) message_began_ = at;
  return pieces_ <= limits_.pieces + held / 512 && at - message_began_ <= limits_.assembly;
}

bool socket_pace::take_control(time_point at) {
  last_byte_ = at;
  const double rate = limits_.control_frames_per_second;
  const double burst = limits_.control_frame_burst;
  const std::chrono::duration<double> since = at - control_at_;
  control_at_ = at;
  control_tokens_ = std::min(burst, control_tokens_ + since.count() * rate) - 1;
  return control_tokens_ >= 0;
}

socket_pace::due socket_pace::look(time_point at) {
  const bool stood_still = std::exchange(look_due_, time_point::max()) < at - limits_.ping;
  if (stood_still) message_began_ = last_byte_ = at;
  if (pieces_ > 0 && at >= message_began_ + limits_.assembly) return due::message_too_slow;
  if (at >= last_byte_ + limits_.idle) return due::nothing_heard;
  if (at < last_byte_ + limits_.ping || pinged_for_ == last_byte_) return due::nothing;
  pinged_for_ = last_byte_;
  return due::ping;
}

socket_pace::time_point socket_pace::next_look(time_point at) {
  time_point next = last_byte_ + limits_.ping;
  if (pinged_for_ == last_byte_) next = std::min(last_byte_ + limits_.idle, at + limits_.ping);
  if (pieces_ > 0) next = std::min(next, message_began_ + limits_.assembly);
  return look_due_ = std::max(next, at + least_wait);
}

}  // namespace leasehold::server
