// The driver's sessions over sockets, and submits over HTTP, until the server is gone. Submits
// follow a standby to the active one, until the load ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "live_server.hpp"
#include "support/driver.hpp"

namespace leasehold::e2e {

struct load_options {
  std::size_t sessions = 64;
  std::size_t threads = 2;  ///< of the driver, for the sessions; as many submit
  int life = 0;             ///< how often the server was started before
  std::uint64_t seed = 1;
  std::chrono::milliseconds submit_pause{0};  ///< between two submits
};

class socket_load {
 public:
  /// Connects all sessions and begins.
  socket_load(const live_server& server, tests::driver_log& log, const load_options& how);
  /// Says no more, and hears until every socket has ended, or for a moment.
  ~socket_load() {
    for (auto& each : threads_) each.request_stop();
  }
  socket_load(const socket_load&) = delete;
  socket_load& operator=(const socket_load&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace leasehold::e2e
