// One WebSocket of a load on its socket: whole messages out and in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "load_socket.hpp"

namespace leasehold::bench {

class load_stream {
 public:
  /// Upgrades; blocks until the answer is there. gone() when it is a refusal.
  load_stream(std::uint16_t port, const std::string& token, int receive_buffer = 0);

  [[nodiscard]] load_socket& socket() noexcept { return socket_; }
  void send(std::string_view message);
  /// The next message that has come; valid until the socket is filled again. Pings are answered.
  std::optional<std::string_view> next();

 private:
  load_socket socket_;
};

}  // namespace leasehold::bench
