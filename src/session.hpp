// One worker's WebSocket as the coordinator sees it: messages to frames on the way in, frames to
// one message on the way out. Judges nothing; what it refuses it refuses for its form.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "leasehold/actors/gateway.hpp"
#include "leasehold/protocol/codec.hpp"
#include "src/rate_limits.hpp"
#include "src/routes.hpp"
#include "src/transport.hpp"

namespace leasehold::server {

/// Lives on its socket's thread from the upgrade until both the socket and the coordinator have let
/// it go.
class session final : public socket_events,
                      public credentialed,
                      public actors::outbound,
                      public std::enable_shared_from_this<session> {
 public:
  /// Unreadable frames within a minute that a session may send; the next one closes it with 1008.
  static constexpr std::size_t bad_frames_a_minute = 10;
  /// A sender that is over its rate for this long is closed with 1008.
  static constexpr protocol::duration longest_slowing{30'000};

  session(const call& admitted, protocol::encoding how, tenant_quota::ticket place);

  /// Makes the session known to the coordinator.
  void start(std::shared_ptr<socket> on);

  void on_message(std::span<const std::byte> message, bool text) override;
  void on_close() override;
  void check_credential() override;

  void send(std::span<const protocol::coordinator_frame> frames) override;
  void close(protocol::close_code code, std::string_view why) override;
  void pause_reading(bool paused) override;

 private:
  /// False once there were too many bad frames.
  bool count_bad(std::size_t frames, protocol::instant now);
  void slow_down(std::size_t bytes, std::size_t frames, protocol::instant now);
  void resume_reading();
  void apply_pause();

  std::shared_ptr<api_context> api_;
  credential credential_;
  tenant_quota::ticket place_;
  protocol::codec codec_;
  std::shared_ptr<socket> socket_;  ///< null once it is closed
  actors::session_id id_ = 0;
  std::deque<protocol::instant> bad_frames_;  ///< of the last minute
  bucket frames_;
  bucket bytes_;
  protocol::instant slowed_since_;  ///< 0: within its rate
  bool paused_by_coordinator_ = false;
  bool paused_by_rate_ = false;
};

}  // namespace leasehold::server
