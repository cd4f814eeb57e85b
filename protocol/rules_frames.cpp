// How a worker's frame is judged: the ladder of rules 1 to 16 and the tables by kind, as one table
// of disjoint rows [L5-L12].
#include <array>
#include <cassert>

#include "decision_table.hpp"
#include "mutation.hpp"
#include "rules_parts.hpp"

namespace leasehold::protocol::parts {
namespace {

// Where the lease stands. An acked lease is active for a frame: it lasts no longer than one group.
enum class stage : std::uint8_t {
  unknown,
  vacant,
  offered,
  active,
  declined,
  expired,
  released,
  revoked,
  retry_wait,
  unresolved,
  settled,
  how_many,
};
enum class frame_is : std::uint8_t {
  ack,
  decline,
  renew,
  progress,
  cancel_ack,
  result,
  release,
  how_many,
};
enum class form_is : std::uint8_t { sound, broken, how_many };
/// What a result or release proves about an unresolved lease (rule 4).
enum class proof_is : std::uint8_t { none, of_one, of_the_last, how_many };
enum class generation_is : std::uint8_t { below, current, above, how_many };
enum class holder_is : std::uint8_t { recorded, other, how_many };
enum class conflict_is : std::uint8_t { closed, open, how_many };
enum class sent_is : std::uint8_t { plausible, in_future, before_issue, how_many };
enum class cancel_is : std::uint8_t { absent, asked, acknowledged, how_many };
/// Against the last accepted one; `same_as_other` is a progress of that sequence with another
/// value.
enum class sequence_is : std::uint8_t { below, last, last_other_value, above, how_many };
enum class ending_is : std::uint8_t { success, cancelled, failed, failed_retryable, how_many };
/// A result against the one that was recorded (rule 9).
enum class recorded_is : std::uint8_t { nothing, same, other, how_many };
enum class buffer_is : std::uint8_t { open, full, how_many };
enum class lease_is : std::uint8_t { job, lock, how_many };
enum class loss_is : std::uint8_t { bearable, the_last, how_many };
enum class attempt_is : std::uint8_t { bearable, the_last, how_many };
/// Whether generations other than the frame's may still be at work.
enum class elsewhere : std::uint8_t { proven, unproven, how_many };

using facts =
    tables::fact_space<stage, frame_is, form_is, request_is, proof_is, generation_is, holder_is,
                       conflict_is, sent_is, cancel_is, sequence_is, ending_is, recorded_is,
                       buffer_is, lease_is, cap_is, loss_is, attempt_is, elsewhere>;

/// Which flags a row sets; `late` only on progress.
enum flag : std::uint8_t { no_flag = 0, stale = 1, late = 2, expiry = 4, conflict = 8 };

struct frame_row {
  rule_id rule;
  facts::box when;
  protocol::decision decision;
  protocol::reason reason;
  int flags = no_flag;
};

using enum decision;

// Each name below is what is left of the cases after the rules before it.
constexpr auto known = facts::any.except(stage::unknown);
constexpr auto sound = known.only(form_is::sound);
constexpr auto fresh = sound.only(request_is::fresh);
constexpr auto unproving = fresh.only(proof_is::none);
constexpr auto current = unproving.only(generation_is::current);
constexpr auto its_holders = current.only(holder_is::recorded);
constexpr auto result = its_holders.only(frame_is::result);
constexpr auto live = its_holders.only(stage::offered, stage::active);
constexpr auto peaceful = live.only(conflict_is::closed);
constexpr auto judged = peaceful.only(sent_is::plausible);

constexpr auto offered = judged.only(stage::offered);
constexpr auto declining = offered.only(frame_is::decline);
constexpr auto early = offered.except(frame_is::ack, frame_is::decline);

constexpr auto active = judged.only(stage::active);
constexpr auto renewing = active.only(frame_is::renew);
constexpr auto progressing = active.only(frame_is::progress);
constexpr auto progress_wanted = progressing.only(cancel_is::absent);
constexpr auto acknowledging = active.only(frame_is::cancel_ack);
constexpr auto releasing = active.only(frame_is::release);
constexpr auto releasing_freely = releasing.only(cancel_is::absent);
constexpr auto releasing_a_job = releasing_freely.only(lease_is::job);
constexpr auto releasing_as_asked = releasing.except(cancel_is::absent);
constexpr auto reporting = active.only(frame_is::result).only(lease_is::job);
constexpr auto reporting_cancelled = reporting.only(ending_is::cancelled);
constexpr auto reporting_as_asked = reporting_cancelled.except(cancel_is::absent);
constexpr auto reporting_retryable =
    reporting.only(ending_is::failed_retryable).only(cancel_is::absent);

constexpr std::array table{
    frame_row{rule_id::unknown_lease, facts::any.only(stage::unknown), rejected,
              reason::unknown_lease},
    frame_row{rule_id::invalid, known.only(form_is::broken), rejected, reason::invalid_frame},
    frame_row{rule_id::repeated_request, sound.only(request_is::same), ignored,
              reason::duplicate_request},
    frame_row{rule_id::repeated_request, sound.only(request_is::other), rejected,
              reason::request_reused},
    frame_row{rule_id::reconciling_report, fresh.only(proof_is::of_one), accepted,
              reason::reconciled_in_part},
    frame_row{rule_id::reconciling_report, fresh.only(proof_is::of_the_last), accepted,
              reason::reconciled},
    frame_row{rule_id::generation_above, unproving.only(generation_is::above), rejected,
              reason::unknown_generation},
    frame_row{rule_id::generation_below, unproving.only(generation_is::below), rejected,
              reason::stale_generation, stale | late},
    frame_row{rule_id::other_holder_live,
              current.only(holder_is::other).only(stage::offered, stage::active), rejected,
              reason::ownership_conflict, conflict},
    frame_row{rule_id::other_holder,
              current.only(holder_is::other).except(stage::offered, stage::active), rejected,
              reason::holder_mismatch, late},

    // 9: a result that comes after the end.
    frame_row{rule_id::result_after_end,
              result.only(stage::settled, stage::retry_wait).only(recorded_is::nothing), rejected,
              reason::lease_settled},
    frame_row{
        rule_id::result_after_end,
        result.only(stage::settled, stage::retry_wait, stage::unresolved).only(recorded_is::same),
        ignored, reason::duplicate_terminal},
    frame_row{
        rule_id::result_after_end,
        result.only(stage::settled, stage::retry_wait, stage::unresolved).only(recorded_is::other),
        rejected, reason::terminal_conflict},
    // 10: another kind that comes after the end.
    frame_row{rule_id::after_end, its_holders.only(stage::settled).except(frame_is::result),
              rejected, reason::lease_settled, late},
    frame_row{rule_id::after_end, its_holders.only(stage::retry_wait).except(frame_is::result),
              rejected, reason::generation_closed, late},
    // 11 and 12: the generation was handed back, taken back or never taken.
    frame_row{rule_id::repeated_close, its_holders.only(stage::released).only(frame_is::release),
              ignored, reason::duplicate_release},
    frame_row{rule_id::repeated_close, its_holders.only(stage::declined).only(frame_is::decline),
              ignored, reason::duplicate_decline},
    frame_row{rule_id::closed, its_holders.only(stage::vacant), rejected, reason::offer_withdrawn,
              late},
    frame_row{rule_id::closed, its_holders.only(stage::declined).except(frame_is::decline),
              rejected, reason::offer_declined, late},
    frame_row{rule_id::closed, its_holders.only(stage::released).except(frame_is::release),
              rejected, reason::lease_released, late},
    frame_row{rule_id::closed, its_holders.only(stage::revoked), rejected, reason::lease_revoked,
              late},
    // 13: its time is over.
    frame_row{rule_id::expired, its_holders.only(stage::expired), rejected, reason::lease_expired,
              expiry | late},
    frame_row{rule_id::expired, its_holders.only(stage::unresolved).except(frame_is::result),
              rejected, reason::lease_expired, expiry | late},
    frame_row{rule_id::expired, result.only(stage::unresolved).only(recorded_is::nothing), rejected,
              reason::lease_expired, expiry},
    // 14 to 16: the lease is live, and yet.
    frame_row{rule_id::frozen, live.only(conflict_is::open), rejected, reason::lease_frozen,
              conflict | late},
    frame_row{rule_id::sent_in_future, peaceful.only(sent_is::in_future), rejected,
              reason::timestamp_in_future, late},
    frame_row{rule_id::sent_before_issue, peaceful.only(sent_is::before_issue), rejected,
              reason::timestamp_before_issue, late},

    frame_row{rule_id::ack_offered, offered.only(frame_is::ack), accepted, reason::ack_accepted},
    frame_row{rule_id::decline_offered, declining.only(loss_is::bearable), accepted,
              reason::offer_declined},
    frame_row{rule_id::decline_exhausted, declining.only(loss_is::the_last), accepted,
              reason::losses_exhausted},
    frame_row{rule_id::early_full, early.only(buffer_is::full), rejected,
              reason::reorder_buffer_full, late},
    frame_row{rule_id::early_deferred, early.only(buffer_is::open), deferred,
              reason::awaiting_activation},

    frame_row{rule_id::ack_duplicate, active.only(frame_is::ack), ignored, reason::duplicate_ack},
    frame_row{rule_id::decline_acked, active.only(frame_is::decline), rejected,
              reason::already_acked},

    frame_row{rule_id::renew_duplicate,
              renewing.only(sequence_is::last, sequence_is::last_other_value), ignored,
              reason::duplicate_renew},
    frame_row{rule_id::renew_stale, renewing.only(sequence_is::below), ignored,
              reason::stale_sequence},
    frame_row{rule_id::renew_capped, renewing.only(sequence_is::above).only(cap_is::lifetime),
              rejected, reason::max_lifetime_reached},
    frame_row{rule_id::renew_capped, renewing.only(sequence_is::above).only(cap_is::cancel),
              rejected, reason::cancel_pending},
    frame_row{rule_id::renew_newer, renewing.only(sequence_is::above).only(cap_is::away), accepted,
              reason::renewed},

    frame_row{rule_id::progress_cancelled, progressing.except(cancel_is::absent), ignored,
              reason::progress_after_cancel, late},
    frame_row{rule_id::progress_duplicate, progress_wanted.only(sequence_is::last), ignored,
              reason::duplicate_progress},
    frame_row{rule_id::progress_conflict, progress_wanted.only(sequence_is::last_other_value),
              rejected, reason::sequence_conflict},
    frame_row{rule_id::progress_late, progress_wanted.only(sequence_is::below), ignored,
              reason::late_progress, late},
    frame_row{rule_id::progress_newer, progress_wanted.only(sequence_is::above), accepted,
              reason::progress_recorded},

    frame_row{rule_id::cancel_ack_unasked, acknowledging.only(cancel_is::absent), rejected,
              reason::cancel_not_requested},
    frame_row{rule_id::cancel_ack_duplicate, acknowledging.only(cancel_is::acknowledged), ignored,
              reason::duplicate_cancel_ack},
    frame_row{rule_id::cancel_ack_first, acknowledging.only(cancel_is::asked), accepted,
              reason::cancel_acknowledged},

    frame_row{rule_id::release_lock, releasing_freely.only(lease_is::lock), accepted,
              reason::released},
    frame_row{rule_id::release_job, releasing_a_job.only(loss_is::bearable), accepted,
              reason::released},
    frame_row{rule_id::release_exhausted, releasing_a_job.only(loss_is::the_last), accepted,
              reason::losses_exhausted},
    frame_row{rule_id::release_cancelled, releasing_as_asked.only(elsewhere::proven), accepted,
              reason::cancel_completed},
    frame_row{rule_id::release_unreconciled, releasing_as_asked.only(elsewhere::unproven), accepted,
              reason::cancel_unreconciled},

    frame_row{rule_id::result_lock, active.only(frame_is::result).only(lease_is::lock), rejected,
              reason::not_a_job},
    frame_row{rule_id::result_cancel_unasked, reporting_cancelled.only(cancel_is::absent), rejected,
              reason::cancel_not_requested},
    frame_row{rule_id::result_success, reporting.only(ending_is::success).only(cancel_is::absent),
              accepted, reason::completed},
    frame_row{rule_id::result_success, reporting.only(ending_is::success).except(cancel_is::absent),
              accepted, reason::completed_despite_cancel},
    frame_row{rule_id::result_cancelled, reporting_as_asked.only(elsewhere::proven), accepted,
              reason::cancel_completed},
    frame_row{rule_id::result_unreconciled, reporting_as_asked.only(elsewhere::unproven), accepted,
              reason::cancel_unreconciled},
    frame_row{rule_id::result_retry, reporting_retryable.only(attempt_is::bearable), accepted,
              reason::retry_scheduled},
    frame_row{rule_id::result_exhausted, reporting_retryable.only(attempt_is::the_last), accepted,
              reason::attempts_exhausted},
    frame_row{rule_id::result_failed, reporting.only(ending_is::failed), accepted,
              reason::job_failed},
    frame_row{rule_id::result_failed,
              reporting.only(ending_is::failed_retryable).except(cancel_is::absent), accepted,
              reason::job_failed},
};

static_assert(facts::partitioned_by(std::span<const frame_row>(table)),
              "every case of a worker's frame meets exactly one row");

constexpr stage stage_of(lease_state s) noexcept {
  switch (s) {
    case lease_state::none:
      return stage::unknown;
    case lease_state::vacant:
      return stage::vacant;
    case lease_state::offered:
      return stage::offered;
    case lease_state::acked:
    case lease_state::active:
      return stage::active;
    case lease_state::declined:
      return stage::declined;
    case lease_state::expired:
      return stage::expired;
    case lease_state::released:
      return stage::released;
    case lease_state::revoked:
      return stage::revoked;
    case lease_state::retry_wait:
      return stage::retry_wait;
    case lease_state::unresolved:
      return stage::unresolved;
    case lease_state::completed:
    case lease_state::failed:
    case lease_state::cancelled:
      return stage::settled;
  }
  return stage::unknown;
}

static_assert(frame_is::how_many == frame_is{static_cast<int>(event_kind::release)});
constexpr frame_is frame_kind(event_kind kind) noexcept {
  return frame_is{static_cast<std::uint8_t>(static_cast<int>(kind) - 1)};
}

form_is form_of(const event& what) noexcept {
  const bool sequenced = what.kind == event_kind::renew || what.kind == event_kind::progress;
  const bool broken = what.gen.value < 1 || what.sent_at.ms < 1 || what.from.empty() ||
                      (sequenced && what.seq.value < 1) ||
                      (what.kind == event_kind::result && what.ending == outcome::none);
  return broken ? form_is::broken : form_is::sound;
}

proof_is proof_of(const record& r, const event& what) noexcept {
  if (r.state != lease_state::unresolved || find_stopped(r, what) == nullptr) return proof_is::none;
  return r.unproven_count() > 1 ? proof_is::of_one : proof_is::of_the_last;
}

generation_is compare(generation named, generation held) noexcept {
  if (named == held) return generation_is::current;
  return named < held ? generation_is::below : generation_is::above;
}

sent_is sent_of(const record& r, const policy& chosen, const event& what, instant now) noexcept {
  // The difference is exact where a sum would saturate: both are at least 0.
  if (what.sent_at > now && what.sent_at.ms - now.ms > chosen.max_clock_skew.ms) {
    return sent_is::in_future;
  }
  return what.sent_at < r.issued_at - chosen.max_clock_skew ? sent_is::before_issue
                                                            : sent_is::plausible;
}

cancel_is cancel_of(const record& r) noexcept {
  if (!r.cancel_requested_at) return cancel_is::absent;
  return r.cancel_acked_at ? cancel_is::acknowledged : cancel_is::asked;
}

/// M14: only the lower half of a sequence is compared, as a signed number.
[[maybe_unused]] constexpr bool is_below_in_32_bits(sequence a, sequence b) noexcept {
  return static_cast<std::int32_t>(a.value) < static_cast<std::int32_t>(b.value);
}

sequence_is sequence_of(const record& r, const event& what) noexcept {
  const bool progress = what.kind == event_kind::progress;
  const auto last = progress ? r.progress_sequence : r.renew_sequence;
  if (what.seq != last) {
    if (progress && mutated(8)) return sequence_is::above;  // M8: the last arrival wins
    const bool below = mutated(14) ? is_below_in_32_bits(what.seq, last) : what.seq < last;
    return below ? sequence_is::below : sequence_is::above;
  }
  return progress && what.value != r.progress_value ? sequence_is::last_other_value
                                                    : sequence_is::last;
}

ending_is ending_of(const event& what) noexcept {
  switch (what.ending) {
    case outcome::success:
      return ending_is::success;
    case outcome::cancelled:
      return ending_is::cancelled;
    case outcome::failed:
      return what.retryable ? ending_is::failed_retryable : ending_is::failed;
    case outcome::none:
      break;
  }
  return ending_is::success;
}

recorded_is recorded_of(const record& r, const event& what) noexcept {
  if (what.kind != event_kind::result || r.terminal_result == outcome::none) {
    return recorded_is::nothing;
  }
  const bool same = r.reported
                        ? r.reported->ending == what.ending && r.reported->detail == what.detail
                        : r.terminal_result == what.ending;
  return same ? recorded_is::same : recorded_is::other;
}

facts::one_case facts_of(const record& r, const policy& chosen, const event& what, instant now) {
  const bool full = static_cast<std::int64_t>(r.deferred.size()) >= chosen.defer_limit;
  const bool renewing_now = what.kind == event_kind::renew;
  return facts::make_case(
      stage_of(r.state), frame_kind(what.kind), form_of(what),
      what.kind == event_kind::release ? compare_request(r, what) : request_is::fresh,
      proof_of(r, what), compare(what.gen, r.gen),
      // M6: whoever a frame names is taken for the holder.
      mutated(6) || what.from == r.held_by ? holder_is::recorded : holder_is::other,
      r.frozen ? conflict_is::open : conflict_is::closed, sent_of(r, chosen, what, now),
      cancel_of(r), sequence_of(r, what), ending_of(what), recorded_of(r, what),
      full ? buffer_is::full : buffer_is::open,
      r.kind == lease_kind::lock ? lease_is::lock : lease_is::job,
      renewing_now ? renewal_of(r, chosen, now).stopped_by : cap_is::away,
      next_loss_is_last(r, chosen) ? loss_is::the_last : loss_is::bearable,
      attempts_used_up(r, chosen) ? attempt_is::the_last : attempt_is::bearable,
      r.unproven_count() > 0 ? elsewhere::unproven : elsewhere::proven);
}

row_flags flags_of(const frame_row& row, event_kind kind) noexcept {
  return {.stale_generation = (row.flags & stale) != 0,
          .late_progress = kind == event_kind::progress && (row.flags & late) != 0,
          .lease_expired = (row.flags & expiry) != 0,
          .ownership_conflict = (row.flags & conflict) != 0};
}

}  // namespace

verdict decide_frame(const record& r, const policy& chosen, const event& what, instant now) {
  const auto met = facts_of(r, chosen, what, now);
  for (const auto& row : table) {
    if (row.when.has(met)) return {row.decision, row.reason, row.rule, flags_of(row, what.kind)};
  }
  assert(false && "the table is a partition");
  return {};
}

}  // namespace leasehold::protocol::parts
