// One WebSocket client and the loop it runs on, without naming what implements them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leasehold/client/notice.hpp"

namespace leasehold::client {

/// Where a coordinator's stream is.
struct stream_address {
  bool tls = false;
  std::string host;
  std::string port;
  std::string target = "/v1/stream";
  friend bool operator==(const stream_address&, const stream_address&) = default;
};

/// Reads ws://HOST[:PORT][/PATH], or the same with wss, http or https. Without a path it is
/// /v1/stream. Nothing when `url` is not of that form; user information and queries are not taken.
std::optional<stream_address> parse_stream_address(std::string_view url);

/// How a connection ended, or why there was none.
struct link_end {
  std::uint16_t close_code = 0;  ///< 0: there was no close frame
  int http_status = 0;           ///< of a refused upgrade; else 0
  protocol::duration retry_after{0};
  bool is_standby = false;  ///< refused by one that is not the active coordinator
  std::string active;       ///< HOST:PORT of the one that is, as the standby says; may be empty
  std::string sentence;
};

/// What happens on the link; all calls come from its loop.
class link_events {
 public:
  virtual ~link_events() = default;
  virtual void on_open() = 0;
  virtual void on_message(std::span<const std::byte> message) = 0;
  virtual void on_end(const link_end& how) = 0;
  virtual void on_wake() = 0;
};

/// All calls but post(), run() and the destructor are made on the loop.
class stream_link {
 public:
  virtual ~stream_link() = default;
  /// Ends in on_open, or in on_end.
  virtual void open(const stream_address& where, const std::string& token, bool json) = 0;
  virtual void send(std::string message) = 0;
  /// Closes what is open or opening; on_end follows. Code 0: at once, without the closing
  /// handshake.
  virtual void close(std::uint16_t code) = 0;
  /// Calls on_wake() at `when`; a later call replaces it.
  virtual void wake_at(local_time when) = 0;
  virtual void post(std::function<void()> task) = 0;
  /// Runs the loop until stop().
  virtual void run() = 0;
  virtual void stop() = 0;
};

struct link_options {
  std::string ca_file;    ///< certificates to trust (PEM); empty: the system's
  std::string cert_file;  ///< our own certificate with those up to its root (PEM); empty: none
  std::string key_file;   ///< its key (PEM)
  std::string user_agent;
};

/// What is wrong with the files, in one sentence; nothing when TLS can be spoken with them.
std::optional<std::string> find_link_fault(const link_options& options);

std::unique_ptr<stream_link> make_stream_link(link_events& events, link_options options);

/// This machine's time since it booted, suspend included.
local_time local_now();

}  // namespace leasehold::client
