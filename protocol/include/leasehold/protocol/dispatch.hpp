// Cancellation dispatch (cancellation-dispatch.md): who may act on a cancel, what came of it, and
// when it is tried again. Pure: the time and the token are given, the store makes the change true.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/process_handle.hpp"
#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/record.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

/// By which way the work of an attempt is asked, or made, to stop.
enum class dispatch_stage : std::uint8_t {
  stream = 1,   ///< CancelRequested to the holder's connection
  process = 2,  ///< TERM and KILL to the registered process
};

enum class dispatch_status : std::uint8_t {
  pending = 1,     ///< may be claimed at next_attempt_at
  leased = 2,      ///< claimed: lease_owner alone acts until lease_expires_at
  retry_wait = 3,  ///< failed in passing; may be claimed at next_attempt_at
  dispatched = 4,  ///< done as far as a controller can; the terminal result is waited for
  blocked = 5,     ///< the process is not provably the one: an operator must look
  closed = 6,      ///< the job is settled, or its attempt proven to have ended
};

/// What a controller says about one claim.
enum class dispatch_result : std::uint8_t {
  none = 0,
  termination_requested = 1,
  already_exited = 2,
  identity_mismatch = 3,
  pid_mismatch = 4,
  unsupported = 5,
  invalid = 6,
  controller_missing = 7,
  handle_missing = 8,
  dispatch_error = 9,
};

enum class dispatch_event_kind : std::uint8_t {
  cancel_dispatched = 1,
  cancel_dispatch_blocked = 2,
  cancel_dispatch_failed = 3,
  cancel_dispatch_retried = 4,   ///< an operator asked for another attempt
  cancel_dispatch_resolved = 5,  ///< an operator said that nothing is left to do
};

inline constexpr std::array all_dispatch_stages{dispatch_stage::stream, dispatch_stage::process};
inline constexpr std::array all_dispatch_statuses{
    dispatch_status::pending,    dispatch_status::leased,  dispatch_status::retry_wait,
    dispatch_status::dispatched, dispatch_status::blocked, dispatch_status::closed};
inline constexpr std::array all_dispatch_results{
    dispatch_result::termination_requested, dispatch_result::already_exited,
    dispatch_result::identity_mismatch,     dispatch_result::pid_mismatch,
    dispatch_result::unsupported,           dispatch_result::invalid,
    dispatch_result::controller_missing,    dispatch_result::handle_missing,
    dispatch_result::dispatch_error};

/// The word in stores, metrics, HTTP and documents.
std::string_view word(dispatch_stage what) noexcept;
std::string_view word(dispatch_status what) noexcept;
std::string_view word(dispatch_result what) noexcept;  ///< none: ""
std::string_view word(dispatch_event_kind what) noexcept;
std::optional<dispatch_stage> dispatch_stage_from(std::string_view word) noexcept;
std::optional<dispatch_status> dispatch_status_from(std::string_view word) noexcept;
std::optional<dispatch_result> dispatch_result_from(std::string_view word) noexcept;
std::optional<dispatch_event_kind> dispatch_event_kind_from(std::string_view word) noexcept;

/// The durable record of one cancel's side effect. At most one per job; it is bound to one attempt
/// (lease, generation) and never moves to another.
struct dispatch_record {
  lease_key key;  ///< of the job: its lease
  generation gen;
  instant cancel_requested_at;
  instant cancel_deadline;  ///< of the live attempt; of an unproven one the time of the cancel
  std::string host;         ///< boot id of the registered process; empty: no handle is known
  dispatch_stage stage = dispatch_stage::stream;
  dispatch_status status = dispatch_status::pending;
  std::int64_t version = 0;         ///< rises by one with every change
  std::int64_t dispatch_count = 0;  ///< claims so far
  instant next_attempt_at;          ///< not to be claimed before; 0: at once
  std::string lease_owner;          ///< of the claim; empty: not claimed
  std::string lease_token;          ///< 32 hex digits, unpredictable; empty: not claimed
  instant lease_expires_at;
  dispatch_result last_result = dispatch_result::none;
  instant last_dispatched_at;  ///< of the newest result
  instant created_at;
  instant updated_at;
  friend bool operator==(const dispatch_record&, const dispatch_record&) = default;
};

/// A fact about a dispatch. Append-only; `version` is the record's after it, and unique per job.
struct dispatch_event {
  lease_key key;
  std::int64_t version = 0;
  instant at;
  dispatch_event_kind kind = dispatch_event_kind::cancel_dispatched;
  generation gen;
  std::int64_t dispatch_count = 0;
  dispatch_result result = dispatch_result::none;  ///< none for what an operator did
  friend bool operator==(const dispatch_event&, const dispatch_event&) = default;
};

/// Hard bounds [D2.5, D2.6].
inline constexpr duration longest_claim{300'000};
inline constexpr std::int64_t most_backoff_exponent = 16;

/// Length of a claim and of the pauses between attempts.
struct dispatch_pace {
  duration claim{30'000};  ///< 1 ms to longest_claim; longer than a controller takes
  duration backoff{1'000};
  duration backoff_max{300'000};
  friend bool operator==(const dispatch_pace&, const dispatch_pace&) = default;
};

/// min(max, base * 2^(count-1)), the exponent at most most_backoff_exponent; count from 1.
duration dispatch_backoff(const dispatch_pace& pace, std::int64_t count) noexcept;

/// What a claimant asks for; the attempt and the cancel are those it saw when it looked.
struct dispatch_claim {
  lease_key key;
  generation gen;
  instant cancel_requested_at;
  dispatch_stage stage = dispatch_stage::stream;
  std::string host;  ///< of a process stage: the claimant's boot id
  std::string owner;
  std::string token;  ///< 32 hex digits that nobody else can know
};

/// reason::none: claimed, and `record` says so (leased, version + 1, dispatch_count + 1). Else why
/// not, and nothing changed: attempt_mismatch (another attempt, cancel, stage or host),
/// dispatch_closed, dispatch_done, dispatch_blocked, claim_held, not_due.
reason claim_dispatch(dispatch_record& record, const dispatch_claim& asked, instant now,
                      const dispatch_pace& pace);

/// What a claimant reports; it must hold the claim.
struct dispatch_report {
  lease_key key;
  generation gen;
  std::string owner;
  std::string token;
  std::int64_t version = 0;  ///< of the record when it was claimed
  dispatch_result result = dispatch_result::dispatch_error;
};

/// reason::none: the record has the result, its claim is cleared, and `event` is to be appended in
/// the same transaction. Else stale_claim, and nothing changed.
reason report_dispatch(dispatch_record& record, const dispatch_report& said, instant now,
                       const dispatch_pace& pace, dispatch_event& event);

enum class dispatch_operation : std::uint8_t {
  retry = 1,    ///< any but closed: pending at once, in its stage
  resolve = 2,  ///< any but closed: closed; whether the work stopped is said by `reconcile`
};

/// reason::none: done, and `event` is to be appended in the same transaction. Else dispatch_closed
/// or claim_held (a claim is being acted on).
reason operate_dispatch(dispatch_record& record, dispatch_operation what, instant now,
                        dispatch_event& event);

/// What the coordinator does to the tables in the transaction of a row.
struct dispatch_change {
  enum class kind : std::uint8_t {
    open = 1,    ///< an accepted cancel left an attempt live or unproven
    close = 2,   ///< the job settled, or the attempt was proven to have ended
    forget = 3,  ///< the settled job is forgotten: record, events and handles go
    handle = 4,  ///< the worker registered the process of its attempt
  };
  kind what = kind::open;
  lease_key key;
  generation gen;               ///< open, close (0: whichever it is bound to), handle
  instant at;                   ///< the coordinator's time of the row
  instant cancel_requested_at;  ///< open
  instant cancel_deadline;      ///< open
  process_handle process;       ///< handle
};

/// The record that `open` makes: pending, in the stream stage, due at once. `host` is that of the
/// attempt's handle when one was registered before.
dispatch_record open_dispatch(const dispatch_change& change, std::string host);

/// False: nothing changed, because it is closed, or bound to another attempt than `what.gen`.
bool close_dispatch(dispatch_record& record, const dispatch_change& what);
/// The handle of the record's attempt became known: the process stage is open to it. False, and
/// nothing changed: it is closed, bound to another attempt, or knows that host already.
bool register_process(dispatch_record& record, const dispatch_change& what);

/// What the step from `before` to `after` of one job means for its dispatch: open, close, or
/// nothing. `gen` of an open record is the live generation, else the newest that is unproven.
std::optional<dispatch_change> dispatch_change_of(const tenant_id& tenant, const record& before,
                                                  const record& after, instant at);

}  // namespace leasehold::protocol
