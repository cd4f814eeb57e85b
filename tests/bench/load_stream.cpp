#include "load_stream.hpp"

#include <poll.h>

#include "leasehold/protocol/codec.hpp"

namespace leasehold::bench {

namespace {

enum opcode : unsigned char { close_frame = 8, ping = 9, pong = 10, whole_binary = 0x82 };

constexpr unsigned char masked = 0x80;

/// The mask is zero: the bytes are their own masked form.
void put_head(std::string& out, unsigned char first, std::size_t size) {
  out += static_cast<char>(first);
  const int width = size < 126 ? 0 : size <= 0xffff ? 2 : 8;
  out += static_cast<char>(masked | (width == 0 ? size : width == 2 ? 126U : 127U));
  for (int i = width - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i) & 0xff);
  out.append(4, '\0');
}

}  // namespace

load_stream::load_stream(std::uint16_t port, const std::string& token, int receive_buffer)
    : socket_(port, receive_buffer) {
  socket_.put(
      "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: bGVhc2Vob2xkLWxvYWQtMQ==\r\n"
      "Sec-WebSocket-Protocol: " +
      std::string(protocol::subprotocol_protobuf) + "\r\nAuthorization: Bearer " + token +
      "\r\n\r\n");
  socket_.flush();
  while (!socket_.gone()) {
    const auto end = socket_.unread().find("\r\n\r\n");
    if (end != std::string_view::npos) {
      const bool taken = socket_.unread().starts_with("HTTP/1.1 101");
      socket_.take(taken ? end + 4 : 0);
      if (!taken) socket_.close();
      return;
    }
    pollfd one{socket_.descriptor(), POLLIN, 0};
    ::poll(&one, 1, -1);
    socket_.fill();
  }
}

void load_stream::send(std::string_view message) {
  put_head(socket_.outgoing(), whole_binary, message.size());
  socket_.put(message);
}

std::optional<std::string_view> load_stream::next() {
  for (;;) {
    const auto bytes = socket_.unread();
    if (bytes.size() < 2) return std::nullopt;
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    std::size_t size = at(1) & 0x7f;
    const std::size_t width = size < 126 ? 0 : size == 126 ? 2 : 8;
    const std::size_t head = 2 + width;
    if (bytes.size() < head) return std::nullopt;
    if (width != 0) size = 0;
    for (std::size_t i = 0; i < width; ++i) size = size << 8 | at(2 + i);
    if (bytes.size() < head + size) return std::nullopt;
    const auto payload = bytes.substr(head, size);
    socket_.take(head + size);
    switch (at(0) & 0x0f) {
      case ping:
        put_head(socket_.outgoing(), 0x80 | pong, size);
        socket_.put(payload);
        break;
      case close_frame:
        socket_.close();
        return std::nullopt;
      case pong:
        break;
      default:
        return payload;
    }
  }
}

}  // namespace leasehold::bench
