// Bytes of the stream into frames and back, for both subprotocols of stream.md. The only part of
// protocol/ that knows Protobuf; no generated header is included here.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/protocol/frame.hpp"
#include "leasehold/protocol/reason.hpp"

namespace leasehold::protocol {

inline constexpr std::string_view subprotocol_protobuf = "leasehold.v1.protobuf";
inline constexpr std::string_view subprotocol_json = "leasehold.v1.json";

enum class encoding : std::uint8_t { protobuf, json };

/// Limits on what people send (protocol.md 1); a frame over one is malformed.
struct field_limits {
  std::size_t id = 128;
  std::size_t holder = 200;
  std::size_t request_id = 64;
  std::size_t value = 1024;
  std::size_t detail = 4096;
  std::size_t frames = 1024;  ///< in one message
};

/// A frame that could not be read, or that breaks a bound, and how it is answered: malformed,
/// invalid_frame or unsupported_frame. `frame_id` is 0 when even that could not be read.
struct unreadable_frame {
  std::int64_t frame_id = 0;
  protocol::reason reason = reason::malformed;
  std::string sentence;
};

template <class Frame>
struct decoded_message {
  std::vector<Frame> frames;
  std::vector<unreadable_frame> unreadable;
  /// Set when the message as a whole cannot be read; then there are no frames.
  std::optional<unreadable_frame> broken;
};

/// Reads and writes whole messages of one encoding. One object per session and thread: it keeps its
/// buffers. Never throws on bad input.
class codec {
 public:
  explicit codec(encoding how, field_limits limits = {});
  ~codec();
  codec(codec&&) noexcept;
  codec& operator=(codec&&) noexcept;

  [[nodiscard]] encoding how() const noexcept;

  decoded_message<worker_frame> decode_worker(std::span<const std::byte> message);
  decoded_message<coordinator_frame> decode_coordinator(std::span<const std::byte> message);

  /// Appends the message that carries these frames to `out`.
  void encode(std::span<const worker_frame> frames, std::string& out);
  void encode(std::span<const coordinator_frame> frames, std::string& out);

 private:
  struct buffers;
  std::unique_ptr<buffers> buffers_;
  encoding how_;
  field_limits limits_;
};

}  // namespace leasehold::protocol
