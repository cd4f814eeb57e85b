// What a load puts into sent_at: the coordinator's time, as of its Welcome and this machine's time
// since.
#pragma once

#include <chrono>

#include "leasehold/protocol/units.hpp"

namespace leasehold::bench {

class server_clock {
 public:
  void set(protocol::instant server_time) {
    at_welcome_ = server_time;
    read_ = std::chrono::steady_clock::now();
  }
  [[nodiscard]] protocol::instant now() const {
    const auto since = std::chrono::steady_clock::now() - read_;
    return {at_welcome_.ms + std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
  }

 private:
  protocol::instant at_welcome_;
  std::chrono::steady_clock::time_point read_;
};

}  // namespace leasehold::bench
