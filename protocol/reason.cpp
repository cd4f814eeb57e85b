// Everything that follows from reason.def.
#include "leasehold/protocol/reason.hpp"

#include <algorithm>
#include <array>

namespace leasehold::protocol {
namespace {

constexpr std::array reasons{
#define LEASEHOLD_REASON(name, number, class_, status, text) \
  reason_entry{reason::name, number, #name, reason_class::class_, status, text},
#include "leasehold/protocol/reason.def"
#undef LEASEHOLD_REASON
};

constexpr std::size_t highest_number =
    std::max_element(reasons.begin(), reasons.end(),
                     [](const auto& a, const auto& b) { return a.number < b.number; }) -> number;

// Where each number stands in `reasons`, from 1; 0: no such number.
constexpr auto places = [] {
  std::array<std::uint16_t, highest_number + 1> by_number{};
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    auto& place = by_number[reasons[i].number];
    if (place != 0) throw "reason.def uses a number twice";
    place = static_cast<std::uint16_t>(i + 1);
  }
  return by_number;
}();

}  // namespace

std::span<const reason_entry> all_reasons() noexcept { return reasons; }

const reason_entry* find_reason(reason code) noexcept {
  const auto number = static_cast<std::size_t>(code);
  if (number > highest_number || places[number] == 0) return nullptr;
  return &reasons[places[number] - 1U];
}

std::optional<reason> reason_from_word(std::string_view word) noexcept {
  const auto found = std::find_if(reasons.begin(), reasons.end(),
                                  [word](const auto& entry) { return entry.word == word; });
  if (found == reasons.end()) return std::nullopt;
  return found->code;
}

std::string_view word(reason code) noexcept {
  const auto* entry = find_reason(code);
  return entry == nullptr ? std::string_view{} : entry->word;
}

std::string_view word(decision what) noexcept {
  switch (what) {
    case decision::accepted:
      return "accepted";
    case decision::applied:
      return "applied";
    case decision::ignored:
      return "ignored";
    case decision::rejected:
      return "rejected";
    case decision::deferred:
      return "deferred";
  }
  return "";
}

std::string_view word(reason_class what) noexcept {
  switch (what) {
    case reason_class::ok:
      return "ok";
    case reason_class::permanent:
      return "permanent";
    case reason_class::retryable:
      return "retryable";
    case reason_class::pending:
      return "pending";
    case reason_class::unknown_outcome:
      return "unknown_outcome";
  }
  return "";
}

std::optional<decision> decision_from_word(std::string_view text) noexcept {
  for (const auto what : {decision::accepted, decision::applied, decision::ignored,
                          decision::rejected, decision::deferred}) {
    if (word(what) == text) return what;
  }
  return std::nullopt;
}

reason_class class_of(decision what, reason code) noexcept {
  if (what == decision::deferred) return reason_class::pending;
  const auto* entry = find_reason(code);
  if (what != decision::rejected || entry == nullptr) return reason_class::ok;
  return entry->refusal_class;
}

int http_status_of(decision what, reason code) noexcept {
  if (what == decision::deferred) return 202;
  const auto* entry = find_reason(code);
  if (what != decision::rejected || entry == nullptr) return 200;
  return entry->http_status;
}

}  // namespace leasehold::protocol
