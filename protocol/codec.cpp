#include "leasehold/protocol/codec.hpp"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include <array>
#include <limits>
#include <utility>

#include "codec_wire.hpp"

namespace leasehold::protocol {
namespace {

namespace proto = google::protobuf;

/// Our deepest message is five levels deep; what nests deeper only wants to hurt.
constexpr int deepest_nesting = 16;
constexpr std::size_t first_block_bytes = std::size_t{16} * 1024;

bool parse(encoding how, std::span<const std::byte> bytes, proto::Message& into) {
  const auto* data = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  if (how == encoding::json) {
    proto::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    return proto::util::JsonStringToMessage(proto::StringPiece(data, bytes.size()), &into, options)
        .ok();
  }
  proto::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(data),
                                 static_cast<int>(bytes.size()));
  in.SetRecursionLimit(deepest_nesting);
  return into.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

void print(encoding how, const proto::Message& from, std::string& out) {
  if (how == encoding::protobuf) {
    from.AppendToString(&out);
    return;
  }
  proto::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  // Text that is not UTF-8 has no JSON form; who makes frames sees to it that there is none.
  std::string text;
  if (proto::util::MessageToJsonString(from, &text, options).ok()) out += text;
}

unreadable_frame broken_message(reason why, std::string sentence) {
  return {.frame_id = 0, .reason = why, .sentence = std::move(sentence)};
}

std::int64_t visible_id(std::uint64_t frame_id) noexcept {
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  return frame_id > static_cast<std::uint64_t>(highest) ? 0 : static_cast<std::int64_t>(frame_id);
}

template <class Frame, class Message>
void read_frames(Message& message, const field_limits& limits, decoded_message<Frame>& out) {
  out.frames.reserve(static_cast<std::size_t>(message.frames_size()));
  for (auto& from : *message.mutable_frames()) {
    wire::bounds found(limits);
    bool unsupported = false;
    const auto id = visible_id(from.frame_id());
    if (auto frame = wire::read(from, found, unsupported)) {
      out.frames.push_back(*std::move(frame));
    } else if (unsupported) {
      out.unreadable.push_back({id, reason::unsupported_frame,
                                "The frame has no body of a kind that this side knows; send one of "
                                "the kinds of leasehold.v1."});
    } else {
      out.unreadable.push_back({id, reason::invalid_frame, found.take_sentence()});
    }
  }
}

template <class Frame, class Message>
decoded_message<Frame> decode(encoding how, const field_limits& limits, Message& message,
                              std::span<const std::byte> bytes) {
  decoded_message<Frame> out;
  if (!parse(how, bytes, message)) {
    out.broken =
        broken_message(reason::malformed,
                       how == encoding::json
                           ? "The message is not JSON of the form that leasehold.v1.json asks for."
                           : "The message is not a Protobuf message of leasehold.v1.");
  } else if (static_cast<std::size_t>(message.frames_size()) > limits.frames) {
    out.broken = broken_message(reason::too_large,
                                "The message has " + std::to_string(message.frames_size()) +
                                    " frames; send at most " + std::to_string(limits.frames) + ".");
  } else {
    read_frames(message, limits, out);
  }
  return out;
}

}  // namespace

/// The arena keeps its first block for the life of the codec, so a usual batch is decoded and
/// encoded without asking the allocator for its messages.
struct codec::buffers {
  std::array<char, first_block_bytes> first_block;
  proto::Arena arena;
  /// Protobuf writes each unreadable text to stderr: a peer must not be able to fill a log with it.
  proto::LogSilencer quiet;

  buffers() : arena(options(first_block)) {}

  static proto::ArenaOptions options(std::array<char, first_block_bytes>& block) {
    proto::ArenaOptions chosen;
    chosen.initial_block = block.data();
    chosen.initial_block_size = block.size();
    return chosen;
  }

  template <class Message>
  Message& fresh() {
    arena.Reset();
    return *proto::Arena::CreateMessage<Message>(&arena);
  }
};

codec::codec(encoding how, field_limits limits)
    : buffers_(std::make_unique<buffers>()), how_(how), limits_(limits) {}
codec::~codec() = default;
codec::codec(codec&&) noexcept = default;
codec& codec::operator=(codec&&) noexcept = default;

encoding codec::how() const noexcept { return how_; }

decoded_message<worker_frame> codec::decode_worker(std::span<const std::byte> message) {
  return decode<worker_frame>(how_, limits_, buffers_->fresh<v1::WorkerMessage>(), message);
}

decoded_message<coordinator_frame> codec::decode_coordinator(std::span<const std::byte> message) {
  return decode<coordinator_frame>(how_, limits_, buffers_->fresh<v1::CoordinatorMessage>(),
                                   message);
}

void codec::encode(std::span<const worker_frame> frames, std::string& out) {
  auto& message = buffers_->fresh<v1::WorkerMessage>();
  for (const auto& frame : frames) wire::write(frame, *message.add_frames());
  print(how_, message, out);
}

void codec::encode(std::span<const coordinator_frame> frames, std::string& out) {
  auto& message = buffers_->fresh<v1::CoordinatorMessage>();
  for (const auto& frame : frames) wire::write(frame, *message.add_frames());
  print(how_, message, out);
}

}  // namespace leasehold::protocol
