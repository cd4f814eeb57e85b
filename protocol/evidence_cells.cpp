// The columns of the evidence, in their order, filled from a row and the record after it.
#include <array>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {
namespace {

constexpr std::array<std::string_view, 47> columns_of_replay{"step",
                                                             "at",
                                                             "origin",
                                                             "event",
                                                             "lease_id",
                                                             "job_id",
                                                             "generation",
                                                             "holder_identity",
                                                             "frame_generation",
                                                             "frame_holder",
                                                             "frame_sequence",
                                                             "sent_at",
                                                             "state_before",
                                                             "state",
                                                             "issued_at",
                                                             "acquired_at",
                                                             "lease_duration",
                                                             "expires_at",
                                                             "ack_deadline",
                                                             "ack_state",
                                                             "renew_sequence",
                                                             "renew_time",
                                                             "progress_sequence",
                                                             "progress_value",
                                                             "cancel_requested_at",
                                                             "cancel_acked_at",
                                                             "terminal_result",
                                                             "stale_generation",
                                                             "late_progress",
                                                             "lease_expired",
                                                             "ownership_conflict",
                                                             "decision",
                                                             "reason",
                                                             "kind",
                                                             "attempt",
                                                             "losses",
                                                             "unproven",
                                                             "frozen",
                                                             "next_offer_at",
                                                             "cancel_deadline",
                                                             "reconcile_deadline",
                                                             "graces",
                                                             "frame_value",
                                                             "frame_outcome",
                                                             "frame_detail",
                                                             "frame_retryable",
                                                             "request_id"};

constexpr std::array<std::string_view, 11> columns_of_live_evidence{
    "row",        "prev_row", "tenant",       "rule",     "rule_version", "policy",
    "ingress_at", "fired_at", "deferred_row", "frame_id", "trace_id"};

/// Gives cells to the sink under the names of a list, one after the other.
class cell_writer {
 public:
  cell_writer(std::span<const std::string_view> names, const cell_sink& out)
      : names_(names), out_(out) {}

  void put(std::int64_t number) { give(cell{number}); }
  void put(bool truth) { give(cell{truth}); }
  void put(std::string_view text) { give(cell{std::string(text)}); }
  void put(instant at) { put(at.ms); }

  template <class... Values>
  void put_all(const Values&... values) {
    (put(values), ...);
  }

 private:
  void give(const cell& value) {
    out_(names_.front(), value);
    names_ = names_.subspan(1);
  }

  std::span<const std::string_view> names_;
  const cell_sink& out_;
};

std::string_view outcome_word(const event& what) {
  return what.ending == outcome::none ? std::string_view(what.unknown_outcome) : word(what.ending);
}

}  // namespace

std::span<const std::string_view> replay_columns() noexcept { return columns_of_replay; }
std::span<const std::string_view> live_columns() noexcept { return columns_of_live_evidence; }

void write_cells(std::int64_t step, const row& what, const record& after, const cell_sink& out) {
  static const event no_input;
  const event& input = what.input == nullptr ? no_input : *what.input;
  const record& r = after;
  const std::string_view lease = r.known() ? r.lease.value : input.lease.value;
  const row_flags& flags = what.answer.flags;

  cell_writer cells(columns_of_replay, out);
  cells.put_all(step, what.at, word(what.origin), word(what.kind), lease, r.job.value, r.gen.value,
                r.held_by.value);
  cells.put_all(input.gen.value, input.from.value, input.seq.value, input.sent_at);
  cells.put_all(word(what.state_before), word(r.state), r.issued_at, r.acquired_at,
                r.lease_duration.ms, r.expires_at, r.ack_deadline, word(r.acked));
  cells.put_all(r.renew_sequence.value, r.renew_time, r.progress_sequence.value, r.progress_value);
  cells.put_all(r.cancel_requested_at, r.cancel_acked_at, terminal_word(r.terminal_result));
  cells.put_all(flags.stale_generation, flags.late_progress, flags.lease_expired,
                flags.ownership_conflict, word(what.answer.decision), word(what.answer.reason));
  cells.put_all(word(r.kind), r.attempt, r.losses, r.unproven_count(), r.frozen, r.next_offer_at,
                r.cancel_deadline, r.reconcile_deadline, r.graces);
  cells.put_all(input.value, outcome_word(input), input.detail, input.retryable,
                input.request.value);
}

void write_cells(const stored_row& r, const record& after, row_number deferred_row,
                 const cell_sink& out) {
  // The automatic resolve bears an operator's kind.
  const bool own = !r.has_input || r.answer.rule == rule_id::resolved_by_record;
  const row shown{r.at,
                  r.input.kind,
                  own ? origin::coordinator : origin_of(r.input.kind),
                  own ? nullptr : &r.input,
                  r.state_before,
                  r.answer,
                  r.derived,
                  deferred_row,
                  {}};
  write_cells(0, shown, after, [&](std::string_view column, const cell& value) {
    // A row without input of a lease that is not known (or about the store) still names its lease.
    out(column, column == "lease_id" ? cell{r.key.lease.value} : value);
  });

  cell_writer cells(columns_of_live_evidence, out);
  cells.put_all(r.row.value, r.prev_row.value, r.key.tenant.value, word(r.answer.rule),
                r.rule_version, to_text(r.policy), r.ingress_at, r.fired_at, deferred_row.value,
                r.input.frame_id, r.input.trace_id);
}

}  // namespace leasehold::protocol
