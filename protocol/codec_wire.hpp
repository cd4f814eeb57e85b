// How frames and Protobuf messages become each other; known to the codec's files alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/protocol/codec.hpp"
#include "leasehold/v1/stream.pb.h"

namespace leasehold::protocol::wire {

/// Bounds that codec.hpp leaves to the codec.
inline constexpr std::size_t most_label_bytes = 256;
inline constexpr std::size_t most_name_bytes = 128;
inline constexpr std::size_t most_payload_bytes = std::size_t{64} * 1024;
inline constexpr std::size_t incarnation_digits = 32;

/// Collects the first broken bound of a frame as a sentence.
class bounds {
 public:
  explicit bounds(const field_limits& limits) : limits_(limits) {}

  /// Like an id, but nothing at all is allowed too.
  void optional_id(std::string_view name, std::string_view text);
  /// 1 to limits.id of `A-Za-z0-9._:-`.
  void id(std::string_view name, std::string_view text);
  void holder(std::string_view text) { length("holder", text, limits_.holder); }
  void request(std::string_view text) { length("request_id", text, limits_.request_id); }
  void value(std::string_view name, std::string_view text) { length(name, text, limits_.value); }
  void detail(std::string_view name, std::string_view text) { length(name, text, limits_.detail); }
  void length(std::string_view name, std::string_view text, std::size_t most);
  void incarnation(std::string_view text);
  /// Says which field is wrong, and never what it holds.
  void process(const process_handle& handle);
  void frame_id(std::uint64_t number);
  /// At most 2^53 - 1, so that evidence has no number that JSON cannot hold.
  void number(std::string_view name, std::int64_t value);
  void missing(std::string_view name) { complain(name, "must be given"); }
  void negative(std::string_view name) { complain(name, "must not be negative"); }
  void too_long(std::string_view name, std::size_t most) {
    complain(name, "has more than " + std::to_string(most) + " bytes in all");
  }

  [[nodiscard]] bool broken() const noexcept { return !sentence_.empty(); }
  [[nodiscard]] std::string take_sentence() noexcept { return std::move(sentence_); }

 private:
  void complain(std::string_view name, std::string what);

  field_limits limits_;
  std::string sentence_;
};

/// Reads one frame. Texts are moved out of `from`. Nothing: `found` says why.
std::optional<worker_frame> read(v1::WorkerFrame& from, bounds& found, bool& unsupported);
std::optional<coordinator_frame> read(v1::CoordinatorFrame& from, bounds& found, bool& unsupported);

void write(const worker_frame& from, v1::WorkerFrame& to);
void write(const coordinator_frame& from, v1::CoordinatorFrame& to);

void read(v1::Acquire& from, bounds& found, acquire& to);
void write(const acquire& from, v1::Acquire& to);
void read(v1::StopWaiting& from, bounds& found, stop_waiting& to);
void write(const stop_waiting& from, v1::StopWaiting& to);

void read(v1::RunningLease& from, bounds& found, running_lease& to);
void write(const running_lease& from, v1::RunningLease& to);

/// An enum of ours from a number of the wire; one that the enum does not have becomes `otherwise`.
template <class Ours>
Ours enum_from(int number, Ours lowest, Ours highest, Ours otherwise) noexcept {
  const bool fits = number >= static_cast<int>(lowest) && number <= static_cast<int>(highest);
  return fits ? static_cast<Ours>(number) : otherwise;
}

}  // namespace leasehold::protocol::wire
