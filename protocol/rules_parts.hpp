// The parts of decide and apply: frames, operations, and what the coordinator derives. Each part
// has a table (rules_*.cpp) and the changes that its rows stand for (rules_*_apply.cpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "leasehold/protocol/rules.hpp"

namespace leasehold::protocol::parts {

verdict decide_frame(const record& r, const policy& chosen, const event& what, instant now);
verdict decide_operation(const record& r, const policy& chosen, const event& what, instant now,
                         generation floor);
verdict decide_derived(const record& r, const policy& chosen, const event& what, instant now);

void apply_frame(record& r, const policy& chosen, const event& what, const verdict& answer,
                 instant now);
void apply_operation(record& r, const policy& chosen, const event& what, const verdict& answer,
                     instant now, generation floor);
void apply_derived(record& r, const policy& chosen, const event& what, const verdict& answer,
                   instant now);

/// Takes the frames that waited for the ACK out of the record, in the order in which they are
/// judged: by kind (renew, progress, cancel_ack, result, release), sequence, sent_at, arrival.
std::vector<deferred_frame> take_deferred(record& r);

// ---- facts that deciding and applying share ----------------------------------------------------

/// Whether a request that took effect bears this id, and whether it was the same one (rule 3).
enum class request_is : std::uint8_t { fresh, same, other, how_many };
request_is compare_request(const record& r, const event& what) noexcept;

/// The generation of which a result or release proves that its work stopped: unproven, by its
/// holder, and not older than the last that was heard of it.
const unproven_generation* find_stopped(const record& r, const event& what) noexcept;
/// The unproven generation of that number, if it is known by name.
const unproven_generation* find_unproven(const record& r, generation gen) noexcept;

enum class cap_is : std::uint8_t { away, lifetime, cancel, how_many };

/// What a newer renew would do: the new deadline, or the cap that leaves nothing to extend.
struct renewal {
  instant expires_at;
  cap_is stopped_by = cap_is::away;
};
renewal renewal_of(const record& r, const policy& chosen, instant now) noexcept;

/// The deadline of a recovery grace; nothing when the lease gets none.
std::optional<instant> grace_of(const record& r, const policy& chosen, instant now) noexcept;

/// acquired_at + max_lifetime, where one is set.
std::optional<instant> end_of_life(const record& r, const policy& chosen) noexcept;

/// How long authority lasts without a renew.
duration term_of(const policy& chosen) noexcept;

/// True when one more loss is the last one allowed.
bool next_loss_is_last(const record& r, const policy& chosen) noexcept;
bool attempts_used_up(const record& r, const policy& chosen) noexcept;

// ---- changes that several rules make -----------------------------------------------------------

void settle(record& r, lease_state end, outcome terminal, const std::string& detail);
/// Ends a job without a result: terminal_result stays as it was.
void fail_without_result(record& r);
void become_unresolved(record& r, const policy& chosen, instant from);
void lose(record& r, const policy& chosen, instant at);
void add_unproven(record& r);
void drop_unproven(record& r, generation gen);
void remember(record& r, const event& what);
/// A revoked lease may be granted after lock_delay once the work of its last generation is gone.
void grant_sooner_if_revoked(record& r, const policy& chosen, generation stopped, instant now);

}  // namespace leasehold::protocol::parts
