// The frames of the stream (stream.md) as plain structs; codec.hpp turns bytes into them and back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/lock_key.hpp"
#include "leasehold/protocol/policy.hpp"
#include "leasehold/protocol/process_handle.hpp"
#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/record.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

using labels = std::map<std::string, std::string>;

// ---- worker to coordinator ---------------------------------------------------------------------

/// A queue that a worker takes jobs from; `offers` are the labels it has: a job is offered only to
/// workers that have each of the job's labels.
struct hello_queue {
  std::string queue;
  labels has;
  friend bool operator==(const hello_queue&, const hello_queue&) = default;
};

struct running_lease {
  lease_id lease;
  generation gen;
  row_number row;
  friend bool operator==(const running_lease&, const running_lease&) = default;
};

struct hello {
  std::string incarnation;  ///< 32 hex digits
  std::string client_name;
  std::string client_version;
  std::vector<hello_queue> queues;
  std::vector<running_lease> running;
  std::int64_t highest_frame_kind = 0;
  friend bool operator==(const hello&, const hello&) = default;
};

/// Absolute: how many leases of this queue the worker is willing to hold in all. A lower sequence
/// of the same epoch is ignored.
struct credit {
  std::int64_t epoch = 0;
  protocol::sequence seq;
  std::string queue;
  std::int64_t slots = 0;
  friend bool operator==(const credit&, const credit&) = default;
};

/// Any frame that is judged about a lease: ack, decline, renew, progress, cancel_ack, result,
/// release. A result may carry the last progress, which is judged just before it.
struct lease_frame {
  event what;
  sequence last_progress_sequence;  ///< result: 0 when it carries none
  std::string last_progress_value;
  std::string decline_reason;  ///< decline; evidence for people, at most 4 KiB
  friend bool operator==(const lease_frame&, const lease_frame&) = default;
};

/// Takes a lock if it is free, or waits in line for it [T]. What is not set has the default of the
/// coordinator.
struct acquire {
  event what;             ///< its kind, who asks (from), sent_at, request; the lock has no id yet
  lock_name name;         ///< as typed
  duration ttl;           ///< 0: not set
  duration max_lifetime;  ///< 0: none
  duration lock_delay;    ///< 0: none
  duration wait;          ///< 0: it does not wait
  std::string execution_id;
  labels metadata;
  job_id tie_job;  ///< empty: it is tied to nothing
  generation tie_generation;
  friend bool operator==(const acquire&, const acquire&) = default;
};

/// Ends the wait of an Acquire of the same session.
struct stop_waiting {
  lock_name name;            ///< as in the Acquire
  std::int64_t acquire = 0;  ///< its frame_id
  friend bool operator==(const stop_waiting&, const stop_waiting&) = default;
};

/// The process that works on an attempt. No event of its lease: it makes no row, and the handle is
/// never shown [D2.3].
struct process_registration {
  lease_id lease;
  generation gen;
  holder from;
  process_handle process;
  friend bool operator==(const process_registration&, const process_registration&) = default;
};

struct worker_heartbeat {
  std::int64_t echoed_stamp = 0;
  friend bool operator==(const worker_heartbeat&, const worker_heartbeat&) = default;
};

/// Hands the listed generations back, then the session closes with 1000.
struct goodbye {
  std::vector<running_lease> releases;
  friend bool operator==(const goodbye&, const goodbye&) = default;
};

struct worker_frame {
  std::int64_t frame_id = 0;
  std::variant<hello, credit, lease_frame, worker_heartbeat, goodbye, acquire, stop_waiting,
               process_registration>
      body;
  friend bool operator==(const worker_frame&, const worker_frame&) = default;
};

// ---- coordinator to worker ---------------------------------------------------------------------

/// Where a lease stands, in every frame of the coordinator about it.
struct lease_standing {
  lease_id lease;
  generation gen;
  row_number row;
  lease_state state = lease_state::none;
  instant expires_at;
  sequence renew_sequence;
  sequence progress_sequence;
  bool cancel_requested = false;
  instant cancel_deadline;
  friend bool operator==(const lease_standing&, const lease_standing&) = default;
};

enum class loss : std::uint8_t { expired = 1, revoked, conflict, settled };
std::string_view word(loss why) noexcept;

struct lost_lease {
  lease_id lease;
  generation gen;
  row_number row;
  loss why = loss::expired;
  friend bool operator==(const lost_lease&, const lost_lease&) = default;
};

struct welcome {
  protocol::holder holder;
  std::int64_t session_epoch = 0;
  std::vector<lease_standing> resumed;
  std::vector<lost_lease> lost;
  instant server_time;
  std::int64_t frames_in_flight = 0;
  std::int64_t message_bytes = 0;
  duration heartbeat_interval;
  std::string node;
  friend bool operator==(const welcome&, const welcome&) = default;
};

/// What an acquire was granted when its request took effect, and whether that is the live token
/// yet.
struct past_grant {
  generation gen;  ///< 0: none
  bool holds = false;
  friend bool operator==(const past_grant&, const past_grant&) = default;
};

/// Answers one frame, after the commit that makes the answer true. `epoch` is the session in which
/// the answered frame was sent: a final verdict of a deferred frame may come in a later one.
struct frame_verdict {
  std::int64_t answers = 0;
  std::int64_t epoch = 0;
  protocol::decision decision = decision::rejected;
  protocol::reason reason = reason::none;
  reason_class outcome = reason_class::permanent;
  duration retry_after;
  lease_standing standing;
  past_grant grant;  ///< of an acquire
  friend bool operator==(const frame_verdict&, const frame_verdict&) = default;
};

struct offer {
  lease_standing standing;
  job_id job;
  std::string queue;
  std::string payload;
  std::int64_t attempt = 0;
  instant ack_deadline;
  duration lease_duration;
  duration cancel_grace;
  duration max_lifetime;
  std::string last_progress;  ///< of the generation before
  std::string trace_id;
  friend bool operator==(const offer&, const offer&) = default;
};

struct activated {
  lease_standing standing;
  instant acquired_at;
  friend bool operator==(const activated&, const activated&) = default;
};

struct cancel_notice {
  lease_standing standing;
  friend bool operator==(const cancel_notice&, const cancel_notice&) = default;
};

struct lease_lost {
  lost_lease lost;
  friend bool operator==(const lease_lost&, const lease_lost&) = default;
};

struct granted {
  lease_standing standing;
  request_id request;
  friend bool operator==(const granted&, const granted&) = default;
};

struct drain {
  instant release_by;
  std::string where;  ///< another address, or empty
  friend bool operator==(const drain&, const drain&) = default;
};

struct server_heartbeat {
  instant server_time;
  friend bool operator==(const server_heartbeat&, const server_heartbeat&) = default;
};

struct coordinator_frame {
  std::int64_t frame_id = 0;
  std::variant<welcome, frame_verdict, offer, activated, cancel_notice, lease_lost, granted, drain,
               server_heartbeat>
      body;
  friend bool operator==(const coordinator_frame&, const coordinator_frame&) = default;
};

/// Close codes of the stream (stream.md). Below 4000: RFC 6455.
enum class close_code : std::uint16_t {
  goodbye = 1000,
  going_away = 1001,
  protocol_error = 1002,
  wrong_message_type = 1003,
  bad_text = 1007,
  policy = 1008,
  too_big = 1009,
  internal_error = 1011,
  superseded = 4001,
  slow_reader = 4002,
  no_heartbeat = 4003,
  credential_ended = 4004,
  draining = 4005,
};

}  // namespace leasehold::protocol
