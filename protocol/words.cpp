// The words of the evidence, both ways.
#include <array>
#include <utility>

#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/record.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::protocol {
namespace {

template <class Value, std::size_t Count>
using vocabulary = std::array<std::pair<Value, std::string_view>, Count>;

constexpr vocabulary<event_kind, 27> event_words{{
    {event_kind::ack, "ack"},
    {event_kind::decline, "decline"},
    {event_kind::renew, "renew"},
    {event_kind::progress, "progress"},
    {event_kind::cancel_ack, "cancel_ack"},
    {event_kind::result, "result"},
    {event_kind::release, "release"},
    {event_kind::submit, "submit"},
    {event_kind::offer, "offer"},
    {event_kind::withdraw, "withdraw"},
    {event_kind::acquire, "acquire"},
    {event_kind::cancel, "cancel"},
    {event_kind::revoke, "revoke"},
    {event_kind::resolve, "resolve"},
    {event_kind::reconcile, "reconcile"},
    {event_kind::prove, "prove"},
    {event_kind::recover, "recover"},
    {event_kind::activate, "activate"},
    {event_kind::expire, "expire"},
    {event_kind::reconcile_close, "reconcile_close"},
    {event_kind::stop, "stop"},
    {event_kind::clock_anchored, "clock_anchored"},
    {event_kind::policy, "policy"},
    {event_kind::forget, "forget"},
    {event_kind::base, "base"},
    {event_kind::counted, "counted"},
    {event_kind::restore, "restore"},
}};

/// Who causes what is neither a worker's frame nor the coordinator's own.
constexpr std::array<std::pair<event_kind, origin>, 6> causes{{
    {event_kind::submit, origin::client},
    {event_kind::acquire, origin::client},
    {event_kind::cancel, origin::client},
    {event_kind::revoke, origin::operator_},
    {event_kind::resolve, origin::operator_},
    {event_kind::reconcile, origin::operator_},
}};

constexpr vocabulary<origin, 4> origin_words{{
    {origin::worker, "worker"},
    {origin::client, "client"},
    {origin::operator_, "operator"},
    {origin::coordinator, "coordinator"},
}};

constexpr vocabulary<outcome, 4> outcome_words{{
    {outcome::none, ""},
    {outcome::success, "success"},
    {outcome::failed, "failed"},
    {outcome::cancelled, "cancelled"},
}};

constexpr vocabulary<lease_state, 14> state_words{{
    {lease_state::none, "none"},
    {lease_state::vacant, "vacant"},
    {lease_state::offered, "offered"},
    {lease_state::acked, "acked"},
    {lease_state::active, "active"},
    {lease_state::declined, "declined"},
    {lease_state::expired, "expired"},
    {lease_state::released, "released"},
    {lease_state::revoked, "revoked"},
    {lease_state::retry_wait, "retry_wait"},
    {lease_state::unresolved, "unresolved"},
    {lease_state::completed, "completed"},
    {lease_state::failed, "failed"},
    {lease_state::cancelled, "cancelled"},
}};

constexpr vocabulary<lease_kind, 3> kind_words{{
    {lease_kind::none, "none"},
    {lease_kind::job, "job"},
    {lease_kind::lock, "lock"},
}};

constexpr vocabulary<ack_state, 5> ack_words{{
    {ack_state::none, "none"},
    {ack_state::accepted, "accepted"},
    {ack_state::missed, "missed"},
    {ack_state::declined, "declined"},
    {ack_state::withdrawn, "withdrawn"},
}};

template <class Value, std::size_t Count>
constexpr std::string_view find_word(const vocabulary<Value, Count>& words, Value wanted) noexcept {
  for (const auto& [value, text] : words) {
    if (value == wanted) return text;
  }
  return {};
}

template <class Value, std::size_t Count>
constexpr std::optional<Value> find_value(const vocabulary<Value, Count>& words,
                                          std::string_view wanted) noexcept {
  for (const auto& [value, text] : words) {
    if (text == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

origin origin_of(event_kind kind) noexcept {
  if (is_frame(kind)) return origin::worker;
  for (const auto& [caused, who] : causes) {
    if (caused == kind) return who;
  }
  return origin::coordinator;
}

std::string_view word(event_kind kind) noexcept { return find_word(event_words, kind); }
std::string_view word(origin who) noexcept { return find_word(origin_words, who); }
std::string_view word(outcome how) noexcept { return find_word(outcome_words, how); }
std::string_view word(lease_state s) noexcept { return find_word(state_words, s); }
std::string_view word(lease_kind k) noexcept { return find_word(kind_words, k); }
std::string_view word(ack_state a) noexcept { return find_word(ack_words, a); }

std::string_view terminal_word(outcome how) noexcept {
  return how == outcome::none ? std::string_view{"none"} : word(how);
}

std::optional<event_kind> event_kind_from_word(std::string_view text) noexcept {
  return find_value(event_words, text);
}
std::optional<outcome> outcome_from_word(std::string_view text) noexcept {
  return find_value(outcome_words, text);
}
std::optional<lease_state> lease_state_from_word(std::string_view text) noexcept {
  return find_value(state_words, text);
}

std::string_view word(rule_id id) noexcept {
  switch (id) {
    case rule_id::none:
      return "";
#define LEASEHOLD_RULE(name, number, word) \
  case rule_id::name:                      \
    return word;
#include "leasehold/protocol/rules.def"
#undef LEASEHOLD_RULE
  }
  return "";
}

std::span<const rule_id> all_rules() noexcept {
  static constexpr std::array rules{
#define LEASEHOLD_RULE(name, number, word) rule_id::name,
#include "leasehold/protocol/rules.def"
#undef LEASEHOLD_RULE
  };
  return rules;
}

}  // namespace leasehold::protocol
