// The plain interface between sockets and the coordinator: what a WebSocket is to everybody but the
// one file that knows Beast.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/protocol/frame.hpp"

namespace leasehold::server {

/// One WebSocket, on its own thread. All calls and callbacks are made there.
class socket {
 public:
  virtual ~socket() = default;
  /// Queues one message. Past the outbound bound the socket closes with 4002 and drops what waits.
  virtual void send(std::string message) = 0;
  virtual void close(protocol::close_code code, std::string_view why) = 0;
  virtual void pause_reading(bool paused) = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
};

/// What happens on a socket. After on_close nothing more is called.
class socket_events {
 public:
  virtual ~socket_events() = default;
  /// One whole message, read now. `text`: the kind of message.
  virtual void on_message(std::span<const std::byte> message, bool text) = 0;
  virtual void on_close() = 0;
};

/// A request as read from the socket: bounded, complete, with unique single-value headers.
struct http_request {
  std::string method;
  std::string target;                                        ///< path and query as sent
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  std::string body;
  std::string peer;                      ///< address, for counters only
  std::vector<std::string> certificate;  ///< names in the client's certificate, where it has one
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

struct http_response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// The answer to an upgrade request: refuse with a plain status, or accept with a subprotocol and
/// the events of the socket that comes to be.
struct upgrade_refused {
  http_response response;
};
struct upgrade_accepted {
  std::string subprotocol;  ///< empty: none is named
  std::function<std::shared_ptr<socket_events>(std::shared_ptr<socket>)> start;
  std::size_t message_limit = std::size_t{64} * 1024;
  std::size_t outbound_limit = std::size_t{256} * 1024;
  bool text = false;  ///< the kind of the messages that are sent
};

/// Answers requests; implemented by the HTTP API. Called on the connection's thread; `reply` is
/// called once, on that thread, now or later. A client that goes away sets `gone`.
class http_handler {
 public:
  virtual ~http_handler() = default;
  virtual void handle(http_request request, std::shared_ptr<const std::atomic<bool>> gone,
                      std::function<void(http_response)> reply) = 0;
  virtual std::variant<upgrade_refused, upgrade_accepted> upgrade(const http_request& request) = 0;
};

}  // namespace leasehold::server
