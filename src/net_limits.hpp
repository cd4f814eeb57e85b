// The bounds of what a peer can make this process hold or wait for, and what is counted on the way.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace leasehold::server {

/// Times and sizes of one connection, before and after its upgrade.
struct net_limits {
  using ms = std::chrono::milliseconds;

  // HTTP
  ms head{5'000};   ///< from accept or a request's first byte until its head is complete; a TLS
                    ///< handshake has as long before that
  ms body{30'000};  ///< from a complete head until the body is complete
  ms idle{60'000};  ///< between two requests; of a socket: without a byte from the peer
  std::size_t target_bytes = std::size_t{4} * 1024;
  std::size_t head_bytes = std::size_t{16} * 1024;
  std::size_t fields = 64;
  std::size_t body_bytes = std::size_t{1024} * 1024;
  /// Of answers that wait for a peer to read them; the next request is read when they are fewer.
  std::size_t answer_bytes = std::size_t{256} * 1024;

  // WebSocket
  ms ping{20'000};          ///< without a byte from the peer, until it is asked for one
  ms assembly{10'000};      ///< from a message's first byte until its last
  ms closing{2'000};        ///< for a close handshake, and for what is still unsent then
  std::size_t pieces = 64;  ///< of a message; one more for each 512 bytes of it
  int control_frames_per_second = 5;
  int control_frame_burst = 20;

  // Connections of the process
  std::size_t connections = 100'000;
  std::size_t reserved_descriptors = 256;   ///< never used by connections
  std::size_t fewest_connections = 64;      ///< with room for fewer nothing is started
  std::size_t handshakes = 2'000;           ///< connections without a first complete request
  std::size_t handshakes_per_address = 20;  ///< addresses of this machine are exempt
};

/// Counted by all threads of one listener, read by anybody.
struct net_counters {
  using count = std::atomic<std::int64_t>;
  count connections_accepted{0};
  count connections_refused{0};
  count connections_open{0};
  count requests{0};
  count requests_refused{0};  ///< before the API saw them
  count sockets_opened{0};
  count sockets_open{0};
  count tls_handshakes{0};  ///< that worked
  count tls_failures{0};
  std::atomic<const char*> tls_failure{""};  ///< why the newest of them failed
  count slow_readers{0};
  count messages_read{0};
  count messages_sent{0};
  count write_calls{0};  ///< system calls that write to a peer
  count bytes_read{0};
  count bytes_sent{0};
};

}  // namespace leasehold::server
