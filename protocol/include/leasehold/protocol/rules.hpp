// What the coordinator decides, and nothing else: pure, deterministic, without a clock. Live
// traffic, recovery, replay and verify all call step(); nothing else changes a record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "leasehold/protocol/event.hpp"
#include "leasehold/protocol/policy.hpp"
#include "leasehold/protocol/reason.hpp"
#include "leasehold/protocol/record.hpp"
#include "leasehold/protocol/units.hpp"

namespace leasehold::protocol {

/// Goes up when a rule changes what it decides; each row of the live evidence names it.
inline constexpr std::int64_t rule_version = 1;

/// Which row of the decision tables decided, generated from rules.def; `none` stands only in rows
/// that no rule decided (those about the store).
enum class rule_id : std::uint16_t {
  none = 0,
#define LEASEHOLD_RULE(name, number, word) name = number,
#include "leasehold/protocol/rules.def"
#undef LEASEHOLD_RULE
};
std::string_view word(rule_id id) noexcept;
/// All rules in the order of rules.def.
std::span<const rule_id> all_rules() noexcept;

/// The flags of an evidence row (protocol.md 4).
struct row_flags {
  bool stale_generation = false;
  bool late_progress = false;
  bool lease_expired = false;
  bool ownership_conflict = false;
  friend bool operator==(const row_flags&, const row_flags&) = default;
};

/// The answer to one event, before it is made true.
struct verdict {
  protocol::decision decision = decision::rejected;
  protocol::reason reason = reason::none;
  rule_id rule = rule_id::none;
  row_flags flags;
  friend bool operator==(const verdict&, const verdict&) = default;
};

/// One evidence row, given to a sink at the moment it came to be. The references live as long as
/// the call; the record is the one *after* the row.
struct row {
  instant at;  ///< a deadline's row is dated at its deadline
  event_kind kind;
  protocol::origin origin;
  const event* input;  ///< null for the coordinator's own rows: every frame_* column is empty
  lease_state state_before;
  verdict answer;
  bool derived;  ///< follows from the event that was stepped, and not from an input of its own
  row_number deferred_row;  ///< of a final row: where its frame was deferred
  generation floor;         ///< of an offer or acquire: where it is above the lease's generation
};

/// Hears of each row in order. Must not throw.
class row_sink {
 public:
  virtual void on_row(const row& what, const record& after) = 0;

 protected:
  ~row_sink() = default;
};

/// Names the answer to `what` at `now`; touches nothing. Every deadline due at `now` has been
/// applied before. `floor`: see step. [L5-L12]
verdict decide(const record& before, const policy& chosen, const event& what, instant now,
               generation floor = {});

/// Makes an answer true. The only function that changes a record.
void apply(record& target, const policy& chosen, const event& what, const verdict& answer,
           instant now, generation floor = {});

/// The lease's next deadline: of an offer, of authority, of a reconcile window. Nothing for a lease
/// that waits for nobody's time.
std::optional<instant> next_deadline(const record& r) noexcept;

/// Whether an event with the id of a request that took effect is that request again, and not
/// another one under its name.
bool is_repeat(const remembered_request& done, const event& what) noexcept;

/// Applies the deadlines of one lease due at `now`, each dated at its deadline, oldest first.
void expire_due(record& r, const policy& chosen, instant now, row_sink& rows);

/// What the stored grant record says about the holder that the record at hand names (protocol.md
/// 7a). In replay there is no other record, so it confirms.
enum class grant_record : std::uint8_t { confirms, contradicts };

/// Whether a conflict is resolved at the instant at which it was opened (7a).
bool resolves_conflict(const policy& chosen, grant_record stored) noexcept;

/// Judges one event (not recover) at `now`: first the deadlines that are due, then the event, then
/// what follows from it (activation, deferred frames, conflict resolution, proof of stopping).
/// `floor`: the highest forgotten generation of the shard; a grant is above both (architecture.md
/// 4). `stored`: what a conflict over the lease is resolved by; it matters only where
/// may_need_grant_record says so.
void step(record& r, const policy& chosen, const event& what, instant now, row_sink& rows,
          generation floor = {}, grant_record stored = grant_record::confirms);

/// Whether judging `what` may open a conflict that the stored grant record decides.
bool may_need_grant_record(const record& r, const policy& chosen, const event& what) noexcept;

/// The parts of `recover` (protocol.md 5); the caller runs each over all its leases, by lease_id
/// within the second, before the next: due deadlines (but with outage_expiry extend not those of
/// live leases with graces left), the grace, what is still due.
void recover_due(record& r, const policy& chosen, instant now, row_sink& rows);
void recover_grace(record& r, const policy& chosen, instant now, row_sink& rows);

/// Whether nothing is lost when the coordinator knows the lease no more: a settled job, or a lock
/// that nobody holds and that may be granted at `now`. The generations that it had are never
/// granted again, because its shard keeps the highest of them as floor (architecture.md 4).
bool may_be_forgotten(const record& r, instant now) noexcept;

/// By how much a floor rises when a backup is restored: more grants than that are not made between
/// a backup and a restore.
inline constexpr std::int64_t restored_floor_step = std::int64_t{1} << 32;

/// What a restored backup cannot know about an unsettled job: who was granted it since. One
/// nameless generation more is unproven, and nobody is granted it before `grants_from`. False where
/// the record stays as it is (architecture.md 4).
bool restore_record(record& r, instant grants_from) noexcept;

}  // namespace leasehold::protocol
