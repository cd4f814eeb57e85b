// A peer for tests that can send any bytes: plain blocking POSIX sockets, every wait with a
// deadline.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::test {

/// One TCP connection to a port of this machine. Reads give what came within the deadline.
class raw_peer {
 public:
  /// Longer than the silence after which the server pings: nothing may come before.
  static constexpr std::chrono::milliseconds patience{40'000};

  /// `receive_buffer` > 0: of the kernel, for peers that read slowly.
  explicit raw_peer(std::uint16_t port, int receive_buffer = 0)
      : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  raw_peer(raw_peer&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        connected_(other.connected_),
        read_(std::move(other.read_)) {}
  raw_peer& operator=(raw_peer&&) = delete;
  ~raw_peer() { close(); }

  [[nodiscard]] bool connected() const { return connected_; }

  /// False when the other end has closed or does not read in time.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!wait_for(POLLOUT, patience)) return false;
      const auto sent =
          ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Ends the sending direction, as `shutdown(SHUT_WR)`.
  void half_close() { ::shutdown(descriptor_, SHUT_WR); }

  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  /// Closes with RST.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

  /// Reads until `text` has come and gives everything up to its end; nothing when it does not come.
  std::optional<std::string> read_until(std::string_view text) {
    const auto by = deadline();
    for (;;) {
      if (const auto at = read_.find(text); at != std::string::npos) return take(at + text.size());
      if (!read_more(by)) return std::nullopt;
    }
  }

  std::optional<std::string> read_exactly(std::size_t bytes) {
    const auto by = deadline();
    while (read_.size() < bytes) {
      if (!read_more(by)) return std::nullopt;
    }
    return take(bytes);
  }

  /// Reads until the other end has closed (in good order or by RST); nothing when it does not.
  std::optional<std::string> read_to_end(std::chrono::milliseconds within = patience) {
    const auto by = std::chrono::steady_clock::now() + within;
    while (read_more(by)) {
    }
    if (!ended_) return std::nullopt;
    return take(read_.size());
  }

  /// True when nothing comes, not even the end, within `time`.
  bool silent_for(std::chrono::milliseconds time) {
    return read_.empty() && !wait_for(POLLIN, time);
  }

 private:
  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + patience;
  }

  std::string take(std::size_t bytes) {
    std::string taken = read_.substr(0, bytes);
    read_.erase(0, bytes);
    return taken;
  }

  bool wait_for(short what, std::chrono::milliseconds time) const {
    pollfd one{descriptor_, what, 0};
    return ::poll(&one, 1, static_cast<int>(time.count())) > 0;
  }

  bool read_more(std::chrono::steady_clock::time_point by) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        by - std::chrono::steady_clock::now());
    if (ended_ || left.count() <= 0 || !wait_for(POLLIN, left)) return false;
    std::array<char, 16384> buffer{};
    const auto got = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      ended_ = true;
      return false;
    }
    read_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  int descriptor_;
  bool connected_ = false;
  bool ended_ = false;
  std::string read_;
};

/// An answer as read from the wire.
struct raw_answer {
  int status = 0;
  std::string head;  ///< with the empty line
  std::string body;
  [[nodiscard]] bool has(std::string_view text) const {
    return head.find(text) != std::string::npos;
  }
};

/// The decimal number that stands there; 0 when none does.
inline std::int64_t number_at(std::string_view text, std::size_t at) {
  std::int64_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

/// Reads one answer by its content-length. `body`: false for an answer to HEAD.
template <class Peer>
std::optional<raw_answer> read_answer(Peer& peer, bool body = true) {
  const auto head = peer.read_until("\r\n\r\n");
  if (!head || head->size() < 12) return std::nullopt;
  raw_answer answer{static_cast<int>(number_at(*head, 9)), *head, ""};
  const auto at = head->find("content-length: ");
  if (!body || at == std::string::npos) return answer;
  const auto length = static_cast<std::size_t>(number_at(*head, at + 16));
  const auto read = peer.read_exactly(length);
  if (!read) return std::nullopt;
  answer.body = *read;
  return answer;
}

// ---- WebSocket

/// A frame as a client sends it. All of it can be wrong on purpose.
struct raw_frame {
  int opcode = 2;  ///< 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong
  std::string payload;
  bool fin = true;
  bool masked = true;
  int reserved = 0;  ///< the three bits
  std::optional<std::uint64_t> claimed_length = {};
};

inline std::string bytes_of(const raw_frame& frame) {
  const std::uint64_t length = frame.claimed_length.value_or(frame.payload.size());
  const int width = length < 126 ? 0 : length <= 0xffff ? 2 : 8;
  std::string bytes;
  bytes += static_cast<char>((frame.fin ? 0x80 : 0) | frame.reserved << 4 | frame.opcode);
  const int short_length = width == 0 ? static_cast<int>(length) : width == 2 ? 126 : 127;
  bytes += static_cast<char>((frame.masked ? 0x80 : 0) | short_length);
  for (int i = width - 1; i >= 0; --i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  const std::string_view mask{"\x12\x34\x56\x78", 4};
  if (frame.masked) bytes += mask;
  for (std::size_t i = 0; i < frame.payload.size(); ++i) {
    bytes += frame.masked ? static_cast<char>(frame.payload[i] ^ mask[i % 4]) : frame.payload[i];
  }
  return bytes;
}

/// Reads one frame of the server.
template <class Peer>
std::optional<raw_frame> read_frame(Peer& peer) {
  const auto head = peer.read_exactly(2);
  if (!head) return std::nullopt;
  const auto byte = [](char c) {
    return static_cast<std::uint64_t>(static_cast<unsigned char>(c));
  };
  std::uint64_t length = byte((*head)[1]) & 0x7f;
  if (length >= 126) {
    const auto more = peer.read_exactly(length == 126 ? 2 : 8);
    if (!more) return std::nullopt;
    length = 0;
    for (const char c : *more) length = length << 8 | byte(c);
  }
  const auto payload = peer.read_exactly(static_cast<std::size_t>(length));
  if (!payload) return std::nullopt;
  raw_frame frame;
  frame.opcode = static_cast<int>(byte((*head)[0]) & 0x0f);
  frame.fin = (byte((*head)[0]) & 0x80) != 0;
  frame.masked = (byte((*head)[1]) & 0x80) != 0;
  frame.payload = *payload;
  return frame;
}

/// Skips to the server's close frame and gives its code: 1005 when it has none, nothing when it
/// does not come.
template <class Peer>
std::optional<int> read_close_code(Peer& peer) {
  while (const auto frame = read_frame(peer)) {
    if (frame->opcode != 8) continue;
    if (frame->payload.size() < 2) return 1005;
    return static_cast<unsigned char>(frame->payload[0]) << 8 |
           static_cast<unsigned char>(frame->payload[1]);
  }
  return std::nullopt;
}

/// The bytes of an upgrade request for `target`; `more`: further header lines, each with its CRLF.
inline std::string upgrade_request(std::string_view target, std::string_view more = {}) {
  return "GET " + std::string{target} +
         " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
         std::string{more} + "\r\n";
}

}  // namespace leasehold::test
