// A timer that fires by the coordinator's clock, also after a suspend: a timerfd on CLOCK_BOOTTIME,
// waited for on the loop of a thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "leasehold/actors/ports.hpp"
#include "src/system_clock.hpp"

namespace leasehold::server {

class boot_timer final : public actors::timer {
 public:
  /// On the loop's thread, as everything else of it. Throws std::system_error when the process has
  /// no descriptor left.
  boot_timer(boost::asio::io_context& loop, std::shared_ptr<const system_clock> clock);
  ~boot_timer() override;
  boot_timer(const boot_timer&) = delete;
  boot_timer& operator=(const boot_timer&) = delete;

  /// `due` runs on the loop, never inside this call, as soon as the clock has reached `at`.
  void arm(protocol::instant at, std::function<void()> due) override;
  void disarm() override;

  /// How many timers the kernel holds for us: 0 or 1.
  [[nodiscard]] int armed() const noexcept { return due_ ? 1 : 0; }

 private:
  void wait();
  void fire();

  std::shared_ptr<const system_clock> clock_;
  boost::asio::posix::stream_descriptor descriptor_;
  std::function<void()> due_;  // empty: not armed
  protocol::instant at_;
  bool waiting_ = false;
  // Tells a completion that was under way when the timer was destroyed.
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);
};

}  // namespace leasehold::server
