// The head of a whole message from server to client (RFC 6455 5.2): final, not masked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::server {

struct frame_head {
  std::array<char, 10> bytes{};
  std::size_t length = 2;
  [[nodiscard]] std::string_view text() const { return {bytes.data(), length}; }
  [[nodiscard]] std::size_t size() const { return length; }
};

/// `text`: the kind of message.
inline frame_head message_head(bool text, std::size_t size) {
  frame_head head;
  head.bytes[0] = static_cast<char>(text ? 0x81 : 0x82);
  if (size < 126) {
    head.bytes[1] = static_cast<char>(size);
    return head;
  }
  const std::size_t width = size <= 0xffff ? 2 : 8;
  head.bytes[1] = static_cast<char>(width == 2 ? 126 : 127);
  head.length = 2 + width;
  for (std::size_t i = 0; i < width; ++i) {
    head.bytes[1 + width - i] = static_cast<char>(size >> (8 * i) & 0xff);
  }
  return head;
}

inline constexpr std::string_view ping_frame{"\x89\x00", 2};
/// The first byte of a close frame.
inline constexpr char close_frame_byte = static_cast<char>(0x88);

}  // namespace leasehold::server
