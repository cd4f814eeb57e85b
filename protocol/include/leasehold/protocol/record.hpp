// A lease as data (protocol.md 1 and 2). Only `apply` of rules.hpp changes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/rare.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

/// `none`: the lease is not known. acked lasts no longer than one durable group.
enum class lease_state : std::uint8_t {
  none = 0,
  vacant,
  offered,
  acked,
  active,
  declined,
  expired,
  released,
  revoked,
  retry_wait,
  unresolved,
  completed,
  failed,
  cancelled,
};

enum class lease_kind : std::uint8_t { none = 0, job, lock };
enum class ack_state : std::uint8_t { none = 0, accepted, missed, declined, withdrawn };

/// A generation that had authority, ended by expire or revoke, and may still be at work.
struct unproven_generation {
  protocol::generation gen;
  protocol::holder from;
  instant last_sent;  ///< highest sent_at of its accepted renews and progress; 0: none
  friend bool operator==(const unproven_generation&, const unproven_generation&) = default;
};

/// A frame that arrived before the lease was active. `row` is where its deferral stands in the
/// evidence; it is evidence and never judged.
struct deferred_frame {
  event frame;
  row_number row;
  friend bool operator==(const deferred_frame&, const deferred_frame&) = default;
};

/// A request that took effect, and what a repeat of it is answered with.
struct remembered_request {
  request_id id;
  event_kind kind = event_kind::cancel;
  /// The request as far as two of them are compared: generation, holder, outcome, detail, force.
  protocol::generation gen;
  protocol::holder from;
  outcome ending = outcome::none;
  std::string
      unknown_outcome;  ///< only a scenario can set it: neither API nor wire carries one here
  std::string detail;
  bool force = false;
  protocol::generation answered;  ///< the lease's generation when it took effect
  friend bool operator==(const remembered_request&, const remembered_request&) = default;
};

/// What the current generation reported with its last accepted result.
struct reported_result {
  outcome ending = outcome::none;
  std::string detail;
  friend bool operator==(const reported_result&, const reported_result&) = default;
};

inline constexpr std::size_t named_unproven = 16;
inline constexpr std::size_t remembered_requests = 64;
inline constexpr std::int64_t highest_generation = max_number;
inline constexpr std::int64_t most_graces = 3;

/// The whole of a lease. Instants are 0 where they are not set. A live lease has one of these in
/// memory: small fields stand together, and what few leases have is kept elsewhere.
struct record {
  lease_id lease;
  job_id job;
  lease_kind kind = lease_kind::none;
  lease_state state = lease_state::none;
  protocol::ack_state acked = ack_state::none;
  outcome terminal_result = outcome::none;
  bool frozen = false;
  /// Set once the window of an unresolved lease has closed and an operator is waited for.
  bool reconcile_window_over = false;
  protocol::generation gen;
  protocol::holder held_by;  ///< of the current or last generation
  instant issued_at;
  instant acquired_at;
  duration lease_duration;  ///< the policy's, as it was at the submit or last grant
  instant expires_at;
  instant ack_deadline;
  sequence renew_sequence;
  instant renew_time;
  sequence progress_sequence;
  std::string progress_value;
  instant cancel_requested_at;
  instant cancel_acked_at;
  instant cancel_deadline;
  std::string terminal_detail;
  rare<reported_result> reported;
  std::int64_t attempt = 0;
  std::int64_t losses = 0;
  instant last_sent;  ///< highest sent_at of the current generation's accepted renews and progress
  std::vector<unproven_generation> unproven;  ///< oldest first, at most named_unproven
  std::int64_t unproven_nameless = 0;
  instant next_offer_at;
  instant reconcile_deadline;
  std::int64_t graces = 0;
  rare_list<deferred_frame> deferred;
  rare_list<remembered_request> requests;

  [[nodiscard]] bool known() const noexcept { return state != lease_state::none; }
  [[nodiscard]] std::int64_t unproven_count() const noexcept {
    return static_cast<std::int64_t>(unproven.size()) + unproven_nameless;
  }
  friend bool operator==(const record&, const record&) = default;
};

/// offered, acked or active.
constexpr bool is_live(lease_state s) noexcept {
  return s == lease_state::offered || s == lease_state::acked || s == lease_state::active;
}
/// completed, failed or cancelled: nothing leaves such a state.
constexpr bool is_settled(lease_state s) noexcept {
  return s == lease_state::completed || s == lease_state::failed || s == lease_state::cancelled;
}
/// A state from which the lease may be granted, once it is not frozen and next_offer_at has come.
constexpr bool is_grantable(lease_state s) noexcept {
  return s == lease_state::vacant || s == lease_state::declined || s == lease_state::expired ||
         s == lease_state::released || s == lease_state::revoked || s == lease_state::retry_wait;
}

/// Whether the generation that an acquire was granted is the live one yet.
inline bool holds(const record& r, generation granted) noexcept {
  return r.gen == granted && is_live(r.state);
}

/// The broken invariant's name, or nothing. Holds after every row (tests and verify check it).
std::optional<std::string_view> broken_invariant(const record& r);

std::string_view word(lease_state s) noexcept;
std::string_view word(lease_kind k) noexcept;
std::string_view word(ack_state a) noexcept;
/// The column terminal_result: "none" where outcome has "".
std::string_view terminal_word(outcome how) noexcept;
std::optional<lease_state> lease_state_from_word(std::string_view text) noexcept;

}  // namespace leasehold::protocol
