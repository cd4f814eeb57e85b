// The bounds of protocol.md 1 on what people send.
#include <limits>

#include "codec_wire.hpp"

namespace leasehold::protocol::wire {
namespace {

constexpr bool is_id_char(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == ':' || c == '-';
}

constexpr bool is_hex_digit(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

template <class Predicate>
bool all_of(std::string_view text, Predicate fits) {
  for (const char c : text) {
    if (!fits(c)) return false;
  }
  return true;
}

}  // namespace

void bounds::complain(std::string_view name, std::string what) {
  if (broken()) return;
  sentence_ = "The field " + std::string(name) + " " + std::move(what) + ".";
}

void bounds::length(std::string_view name, std::string_view text, std::size_t most) {
  if (text.size() > most) {
    complain(name, "has " + std::to_string(text.size()) + " bytes; at most " +
                       std::to_string(most) + " are allowed");
  }
}

void bounds::id(std::string_view name, std::string_view text) {
  if (text.empty() || text.size() > limits_.id || !all_of(text, is_id_char)) {
    complain(name, "must be 1 to " + std::to_string(limits_.id) + " characters of A-Za-z0-9._:-");
  }
}

void bounds::optional_id(std::string_view name, std::string_view text) {
  if (!text.empty()) id(name, text);
}

void bounds::incarnation(std::string_view text) {
  if (text.size() != incarnation_digits || !all_of(text, is_hex_digit)) {
    complain("incarnation", "must be 32 lower-case hex digits");
  }
}

void bounds::process(const process_handle& handle) {
  if (!is_well_formed(handle)) {
    complain(
        "process",
        "must have a platform of 1 to 16 of a-z0-9, a pid that leads its group, the boot id of "
        "its machine and its start ticks");
  }
}

void bounds::number(std::string_view name, std::int64_t value) {
  if (value > max_number || value < -max_number) {
    complain(name, "must be within 2^53 - 1 of 0");
  }
}

void bounds::frame_id(std::uint64_t number) {
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    complain("frame_id", "must be below 2^63");
  }
}

}  // namespace leasehold::protocol::wire
