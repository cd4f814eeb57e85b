// What can happen to a lease: frames of workers, operations of clients and operators, and the
// coordinator's own events, all as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

/// The kind of an event (the column `event`, the word `op` of scenario files).
enum class event_kind : std::uint8_t {
  // frames of a worker (protocol.md 4)
  ack = 1,
  decline,
  renew,
  progress,
  cancel_ack,
  result,
  release,
  // operations of clients, operators and the coordinator (protocol.md 5)
  submit = 20,
  offer,
  withdraw,
  acquire,
  cancel,
  revoke,
  resolve,
  reconcile,
  prove,
  recover,
  // what the coordinator derives
  activate = 40,
  expire,
  reconcile_close,
  stop,
  // rows about the store and not about a lease
  clock_anchored = 60,
  policy,
  forget,
  base,
  counted,
  restore,
};

enum class origin : std::uint8_t { worker = 1, client, operator_, coordinator };

/// How an attempt ended; `none` where nothing is known.
enum class outcome : std::uint8_t { none = 0, success, failed, cancelled };

/// An event as it came in. A field is meaningful where its kind says so, else 0, "" or false.
/// Numbers are what the sender wrote, checked by nobody yet.
struct event {
  event_kind kind = event_kind::ack;
  lease_id lease;
  job_id job;                ///< submit, offer
  protocol::generation gen;  ///< frames, prove
  protocol::holder from;     ///< frames, offer, acquire, resolve: the column frame_holder
  protocol::sequence seq;    ///< renew, progress
  instant sent_at;           ///< frames; coordinator time by the sender's reckoning
  std::string value;         ///< progress, at most 1 KiB
  protocol::outcome ending = outcome::none;  ///< result, reconcile
  std::string unknown_outcome;  ///< the word that was sent where `ending` could not hold it
  std::string detail;           ///< result, reconcile, at most 4 KiB
  bool retryable = false;       ///< result failed
  bool force = false;           ///< revoke
  request_id request;

  /// Not judged, only kept as evidence: which frame of which session this was, and its trace.
  std::int64_t frame_id = 0;
  std::int64_t session_epoch = 0;
  std::string trace_id;

  friend bool operator==(const event&, const event&) = default;
};

/// True for the kinds of protocol.md section 4.
constexpr bool is_frame(event_kind kind) noexcept {
  return kind >= event_kind::ack && kind <= event_kind::release;
}

/// Who causes an event of this kind: the column `origin`.
origin origin_of(event_kind kind) noexcept;

std::string_view word(event_kind kind) noexcept;
std::string_view word(origin who) noexcept;
/// "" for none: the form of the column frame_outcome. record's terminal_result says "none".
std::string_view word(outcome how) noexcept;
std::optional<event_kind> event_kind_from_word(std::string_view text) noexcept;
std::optional<outcome> outcome_from_word(std::string_view text) noexcept;

}  // namespace leasehold::protocol
