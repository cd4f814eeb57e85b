// Until when a lock may be relied on here, reckoned from what the coordinator told. Pure: the time
// is handed in.
#pragma once

#include <chrono>
#include <cstdint>

#include "tools/exec/boot_clock.hpp"

namespace leasehold::tools {

/// What an answer says about a term, in ms of the coordinator's clock.
struct told_term {
  std::int64_t from_ms = 0;     ///< when it began: acquired_at of a grant, renewed_at of a renew
  std::int64_t expires_ms = 0;  ///< expires_at: when authority ends unless it is renewed
  friend bool operator==(const told_term&, const told_term&) = default;
};

/// The end of authority, as it is safe to believe here.
struct authority {
  boot_time deadline;           ///< no later than expires_at, whatever the way took [L7]
  std::int64_t expires_ms = 0;  ///< the same end in coordinator time, as told
  friend bool operator==(const authority&, const authority&) = default;
};

/// The coordinator began the term after `sent`, so that `sent` and the length of the term never
/// reach beyond the end that it keeps.
authority first_authority(boot_time sent, const told_term& told);

/// After a renew. What was safe to believe stays so unless an earlier end was told.
authority renewed_authority(const authority& before, boot_time sent, const told_term& told);

/// How a term of some length is spent.
struct term_plan {
  std::chrono::milliseconds term{};   ///< ttl
  std::chrono::milliseconds grace{};  ///< between TERM and KILL
};

/// The shortest term that renews, TERM and KILL have room in.
inline constexpr std::chrono::milliseconds shortest_term{500};

/// How long before the deadline the group has had its KILL: a tenth of the term, and at least
/// 400 ms, or a quarter of the term where that is less. What was killed dies within it.
std::chrono::milliseconds margin_of(const term_plan& plan);
/// A fifth of the term, at most 5 s.
std::chrono::milliseconds default_grace(std::chrono::milliseconds term);
/// The longest grace that leaves half of the term to renews.
std::chrono::milliseconds longest_grace(std::chrono::milliseconds term);

/// When TERM is sent unless a renew was accepted.
boot_time stop_time(boot_time deadline, const term_plan& plan);
/// When KILL is sent at the latest.
boot_time kill_time(boot_time deadline, const term_plan& plan);
/// When the watchdog sends KILL: after `leasehold exec` had its turn, and with three quarters of
/// the margin left for the group to die in.
boot_time watchdog_time(boot_time deadline, const term_plan& plan);

}  // namespace leasehold::tools
