// Reasons, decisions and classes, all generated from reason.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace leasehold::protocol {

/// Why a decision was taken. `none` stands only in rows that have no decision yet.
enum class reason : std::uint16_t {
  none = 0,
#define LEASEHOLD_REASON(name, number, class_, status, text) name = number,
#include "leasehold/protocol/reason.def"
#undef LEASEHOLD_REASON
};

/// What became of an event. Frames end as accepted, ignored or rejected, perhaps after deferred;
/// applied is the word for what the coordinator and operators do.
enum class decision : std::uint8_t {
  accepted = 1,
  applied = 2,
  ignored = 3,
  rejected = 4,
  deferred = 5
};

/// What a caller should make of an answer [D13 of the reliability page].
enum class reason_class : std::uint8_t {
  ok = 1,
  permanent = 2,
  retryable = 3,
  pending = 4,
  unknown_outcome = 5
};

/// One line of reason.def. `refusal_class` and `http_status` are those of a refusal.
struct reason_entry {
  reason code;
  std::uint16_t number;
  std::string_view word;
  reason_class refusal_class;
  int http_status;
  std::string_view text;
};

/// All reasons in the order of reason.def.
std::span<const reason_entry> all_reasons() noexcept;
/// The entry of a reason; an unknown number yields nothing.
const reason_entry* find_reason(reason code) noexcept;
std::optional<reason> reason_from_word(std::string_view word) noexcept;

std::string_view word(reason code) noexcept;
std::string_view word(decision what) noexcept;
std::string_view word(reason_class what) noexcept;
std::optional<decision> decision_from_word(std::string_view text) noexcept;

/// The class of an answer: ok unless refused or pending.
reason_class class_of(decision what, reason code) noexcept;
/// The HTTP status of an answer: 200 unless refused (a new grant's 201 is the route's business).
int http_status_of(decision what, reason code) noexcept;

}  // namespace leasehold::protocol
