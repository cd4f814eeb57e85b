// How long an open socket may take, and how often it may ask: the rules about time of one socket,
// without a clock or a timer of their own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "src/net_limits.hpp"

namespace leasehold::server {

class socket_pace {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// What is due at a look at the time.
  enum class due : std::uint8_t { nothing, ping, message_too_slow, nothing_heard };

  socket_pace(const net_limits& limits, time_point opened)
      : limits_(limits),
        last_byte_(opened),
        control_at_(opened),
        control_tokens_(limits.control_frame_burst) {}

  /// Bytes came, or silence is to be counted from here.
  void hear(time_point at) { last_byte_ = at; }
  /// A piece of a message that is not whole yet, `held` bytes of which are here. False: too many
  /// pieces, or too slow ones.
  [[nodiscard]] bool take_piece(time_point at, std::size_t held);
  /// That was the first piece of its message.
  [[nodiscard]] bool began_message() const { return pieces_ == 1; }
  void end_message() { pieces_ = 0; }
  /// A ping or pong of the peer. False: it sends too many.
  [[nodiscard]] bool take_control(time_point at);

  /// Asked for a ping it counts as sent. A look that comes too late by a ping's wait tells that
  /// this process stood still: what the peer said meanwhile is not read yet, so its time begins
  /// anew.
  [[nodiscard]] due look(time_point at);
  /// When to look again.
  [[nodiscard]] time_point next_look(time_point at);

 private:
  const net_limits& limits_;
  std::size_t pieces_ = 0;  // of the message that is being read
  time_point message_began_;
  time_point last_byte_;
  time_point pinged_for_;  // the last_byte_ after which a ping was sent
  time_point look_due_ = time_point::max();
  time_point control_at_;
  double control_tokens_;
};

}  // namespace leasehold::server
