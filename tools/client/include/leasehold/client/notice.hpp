// What a worker session tells the program around it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "leasehold/protocol/frame.hpp"

namespace leasehold::client {

/// A point on this process's own monotonic clock, in ms. The clock must count the time in which the
/// machine was suspended.
struct local_time {
  std::int64_t ms = 0;
  friend constexpr auto operator<=>(local_time, local_time) = default;
};
constexpr local_time operator+(local_time at, protocol::duration by) noexcept {
  return {at.ms + by.ms};
}
constexpr local_time operator-(local_time at, protocol::duration by) noexcept {
  return {at.ms - by.ms};
}

/// One generation of one lease: what a worker is told to work on, and its fencing token.
struct grant {
  protocol::lease_id lease;
  protocol::generation gen;
  friend auto operator<=>(const grant&, const grant&) = default;
};

/// Why the work of a grant must stop though nobody asked for a cancel.
enum class lost_reason : std::uint8_t {
  expired,         ///< the coordinator let it expire, or granted a newer generation
  revoked,         ///< an operator ended it
  conflict,        ///< two holders claimed it
  settled,         ///< the job has ended
  local_deadline,  ///< no renew was answered in time; authority may end at any moment
  superseded,      ///< another process speaks with this process's identity
};
std::string_view word(lost_reason why) noexcept;

/// Authority began: start the work, once.
struct job_start {
  grant what;
  protocol::job_id job;
  std::string queue;
  std::string payload;
  std::int64_t attempt = 0;
  protocol::duration lease_duration;
  protocol::duration cancel_grace;
  std::string last_progress;  ///< of the generation before
  std::string trace_id;
  local_time deadline;  ///< work must have stopped then, unless a job_deadline moves it
};
/// The local deadline moved.
struct job_deadline {
  grant what;
  local_time deadline;
};
/// Stop the work by `deadline` and report cancelled, or what happened instead.
struct job_cancel {
  grant what;
  local_time deadline;
};
/// Stop the work now; report how it ended all the same, as proof that it stopped.
struct job_lost {
  grant what;
  lost_reason why;
};
/// The coordinator's final answer to a result or release: nothing more is known of the grant here.
struct job_closed {
  grant what;
  protocol::decision decision;
  protocol::reason reason;
};
struct session_ready {
  protocol::holder holder;
  std::int64_t epoch = 0;
  std::string node;
};
/// The coordinator drains: no offers come from here any more.
struct session_drain {
  std::string where;  ///< another address, or empty
};

enum class over_reason : std::uint8_t {
  silent,      ///< nothing was heard for three heartbeat intervals, or for answer_silence
  no_welcome,  ///< Hello was not answered in time
  moved,       ///< drained: go elsewhere
  goodbye,     ///< said goodbye on purpose
  superseded,  ///< another session of the same identity took over: never come back
};
std::string_view word(over_reason why) noexcept;
/// The session has no more use for its socket: close it.
struct session_over {
  over_reason why;
};

using notice = std::variant<job_start, job_deadline, job_cancel, job_lost, job_closed,
                            session_ready, session_drain, session_over>;

}  // namespace leasehold::client
