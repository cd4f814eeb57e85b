#include "leasehold/protocol/dispatch.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::protocol {

namespace {

template <class Value, std::size_t Count>
using vocabulary = std::array<std::pair<Value, std::string_view>, Count>;

constexpr vocabulary<dispatch_stage, 2> stages{
    {{dispatch_stage::stream, "stream"}, {dispatch_stage::process, "process"}}};

constexpr vocabulary<dispatch_status, 6> statuses{{
    {dispatch_status::pending, "pending"},
    {dispatch_status::leased, "leased"},
    {dispatch_status::retry_wait, "retry_wait"},
    {dispatch_status::dispatched, "dispatched"},
    {dispatch_status::blocked, "blocked"},
    {dispatch_status::closed, "closed"},
}};

constexpr vocabulary<dispatch_result, 10> results{{
    {dispatch_result::none, ""},
    {dispatch_result::termination_requested, "termination_requested"},
    {dispatch_result::already_exited, "already_exited"},
    {dispatch_result::identity_mismatch, "identity_mismatch"},
    {dispatch_result::pid_mismatch, "pid_mismatch"},
    {dispatch_result::unsupported, "unsupported"},
    {dispatch_result::invalid, "invalid"},
    {dispatch_result::controller_missing, "controller_missing"},
    {dispatch_result::handle_missing, "handle_missing"},
    {dispatch_result::dispatch_error, "dispatch_error"},
}};

constexpr vocabulary<dispatch_event_kind, 5> event_kinds{{
    {dispatch_event_kind::cancel_dispatched, "cancel_dispatched"},
    {dispatch_event_kind::cancel_dispatch_blocked, "cancel_dispatch_blocked"},
    {dispatch_event_kind::cancel_dispatch_failed, "cancel_dispatch_failed"},
    {dispatch_event_kind::cancel_dispatch_retried, "cancel_dispatch_retried"},
    {dispatch_event_kind::cancel_dispatch_resolved, "cancel_dispatch_resolved"},
}};

template <class Value, std::size_t Count>
std::string_view word_in(const vocabulary<Value, Count>& all, Value what) noexcept {
  const auto found = std::ranges::find(all, what, [](const auto& each) { return each.first; });
  return found == all.end() ? std::string_view{} : found->second;
}

template <class Value, std::size_t Count>
std::optional<Value> value_in(const vocabulary<Value, Count>& all, std::string_view text) noexcept {
  const auto found = std::ranges::find(all, text, [](const auto& each) { return each.second; });
  if (text.empty() || found == all.end()) return std::nullopt;
  return found->first;
}

bool is_held(const dispatch_record& record, instant now) {
  return record.status == dispatch_status::leased && now < record.lease_expires_at;
}

void end_claim(dispatch_record& record) {
  record.lease_owner.clear();
  record.lease_token.clear();
  record.lease_expires_at = {};
}

void change(dispatch_record& record, dispatch_status to, instant now) {
  record.status = to;
  record.version += 1;
  record.updated_at = now;
}

dispatch_event event_of(const dispatch_record& record, dispatch_event_kind kind,
                        dispatch_result result, instant now) {
  return {record.key, record.version, now, kind, record.gen, record.dispatch_count, result};
}

/// What a result means, whatever the stage.
dispatch_event_kind kind_of(dispatch_result result) {
  switch (result) {
    case dispatch_result::termination_requested:
    case dispatch_result::already_exited:
      return dispatch_event_kind::cancel_dispatched;
    case dispatch_result::identity_mismatch:
    case dispatch_result::pid_mismatch:
    case dispatch_result::unsupported:
    case dispatch_result::invalid:
      return dispatch_event_kind::cancel_dispatch_blocked;
    case dispatch_result::none:
    case dispatch_result::controller_missing:
    case dispatch_result::handle_missing:
    case dispatch_result::dispatch_error:
      return dispatch_event_kind::cancel_dispatch_failed;
  }
  return dispatch_event_kind::cancel_dispatch_failed;
}

bool has_next_stage(const dispatch_record& record) {
  return record.stage == dispatch_stage::stream && !record.host.empty();
}

void enter_process_stage(dispatch_record& record, instant due, instant now) {
  record.stage = dispatch_stage::process;
  record.next_attempt_at = due;
  change(record, dispatch_status::pending, now);
}

void wait_for_retry(dispatch_record& record, instant now, const dispatch_pace& pace) {
  instant due = now + dispatch_backoff(pace, record.dispatch_count);
  // The process is not left running because the stream's pause was long.
  if (has_next_stage(record)) due = earlier(due, record.cancel_deadline);
  record.next_attempt_at = due;
  change(record, dispatch_status::retry_wait, now);
}

/// The live generation, else the newest that is unproven, else none: what a cancel is about.
generation attempt_of(const record& r) {
  if (is_live(r.state)) return r.gen;
  return r.unproven.empty() ? generation{} : r.unproven.back().gen;
}

bool is_live_or_unproven(const record& r, generation gen) {
  if (is_live(r.state) && r.gen == gen) return true;
  return std::ranges::any_of(r.unproven, [gen](const auto& each) { return each.gen == gen; });
}

}  // namespace

std::string_view word(dispatch_stage what) noexcept { return word_in(stages, what); }
std::string_view word(dispatch_status what) noexcept { return word_in(statuses, what); }
std::string_view word(dispatch_result what) noexcept { return word_in(results, what); }
std::string_view word(dispatch_event_kind what) noexcept { return word_in(event_kinds, what); }

std::optional<dispatch_stage> dispatch_stage_from(std::string_view word) noexcept {
  return value_in(stages, word);
}
std::optional<dispatch_status> dispatch_status_from(std::string_view word) noexcept {
  return value_in(statuses, word);
}
std::optional<dispatch_result> dispatch_result_from(std::string_view word) noexcept {
  return value_in(results, word);
}
std::optional<dispatch_event_kind> dispatch_event_kind_from(std::string_view word) noexcept {
  return value_in(event_kinds, word);
}

duration dispatch_backoff(const dispatch_pace& pace, std::int64_t count) noexcept {
  const auto exponent = std::clamp<std::int64_t>(count, 1, most_backoff_exponent + 1) - 1;
  const std::int64_t factor = std::int64_t{1} << static_cast<unsigned>(exponent);
  if (pace.backoff.ms > pace.backoff_max.ms / factor) return pace.backoff_max;
  return {pace.backoff.ms * factor};
}

reason claim_dispatch(dispatch_record& record, const dispatch_claim& asked, instant now,
                      const dispatch_pace& pace) {
  const bool same = record.key == asked.key && record.gen == asked.gen &&
                    record.cancel_requested_at == asked.cancel_requested_at;
  if (!same) return reason::attempt_mismatch;
  switch (record.status) {
    case dispatch_status::closed:
      return reason::dispatch_closed;
    case dispatch_status::dispatched:
      return reason::dispatch_done;
    case dispatch_status::blocked:
      return reason::dispatch_blocked;
    case dispatch_status::leased:
    case dispatch_status::pending:
    case dispatch_status::retry_wait:
      break;
  }
  if (record.stage != asked.stage) return reason::attempt_mismatch;
  if (record.stage == dispatch_stage::process && record.host != asked.host) {
    return reason::attempt_mismatch;
  }
  if (is_held(record, now)) return reason::claim_held;
  if (record.status != dispatch_status::leased && now < record.next_attempt_at) {
    return reason::not_due;
  }
  record.dispatch_count += 1;
  record.lease_owner = asked.owner;
  record.lease_token = asked.token;
  record.lease_expires_at = now + std::min(pace.claim, longest_claim);
  change(record, dispatch_status::leased, now);
  return reason::none;
}

reason report_dispatch(dispatch_record& record, const dispatch_report& said, instant now,
                       const dispatch_pace& pace, dispatch_event& event) {
  const bool holds = record.status == dispatch_status::leased && record.key == said.key &&
                     record.gen == said.gen && record.lease_owner == said.owner &&
                     record.lease_token == said.token && record.version == said.version;
  // A claim that is over is over even while nobody else has taken it.
  if (!holds || now >= record.lease_expires_at) return reason::stale_claim;
  end_claim(record);
  record.last_result = said.result;
  record.last_dispatched_at = now;
  const auto kind = kind_of(said.result);
  const bool is_past_deadline = now >= record.cancel_deadline;
  switch (kind) {
    case dispatch_event_kind::cancel_dispatched:
      if (said.result == dispatch_result::termination_requested && has_next_stage(record)) {
        enter_process_stage(record, record.cancel_deadline, now);
      } else {
        record.next_attempt_at = {};
        change(record, dispatch_status::dispatched, now);
      }
      break;
    case dispatch_event_kind::cancel_dispatch_blocked:
      record.next_attempt_at = {};
      change(record, dispatch_status::blocked, now);
      break;
    case dispatch_event_kind::cancel_dispatch_failed:
    case dispatch_event_kind::cancel_dispatch_retried:
    case dispatch_event_kind::cancel_dispatch_resolved:
      if (has_next_stage(record) && is_past_deadline) {
        enter_process_stage(record, now, now);
      } else {
        wait_for_retry(record, now, pace);
      }
      break;
  }
  event = event_of(record, kind, said.result, now);
  return reason::none;
}

reason operate_dispatch(dispatch_record& record, dispatch_operation what, instant now,
                        dispatch_event& event) {
  if (record.status == dispatch_status::closed) return reason::dispatch_closed;
  if (is_held(record, now)) return reason::claim_held;
  end_claim(record);
  switch (what) {
    case dispatch_operation::retry:
      record.next_attempt_at = now;
      change(record, dispatch_status::pending, now);
      event = event_of(record, dispatch_event_kind::cancel_dispatch_retried, dispatch_result::none,
                       now);
      break;
    case dispatch_operation::resolve:
      record.next_attempt_at = {};
      change(record, dispatch_status::closed, now);
      event = event_of(record, dispatch_event_kind::cancel_dispatch_resolved, dispatch_result::none,
                       now);
      break;
  }
  return reason::none;
}

dispatch_record open_dispatch(const dispatch_change& change, std::string host) {
  dispatch_record record;
  record.key = change.key;
  record.gen = change.gen;
  record.cancel_requested_at = change.cancel_requested_at;
  record.cancel_deadline = change.cancel_deadline;
  record.host = std::move(host);
  record.created_at = change.at;
  record.updated_at = change.at;
  return record;
}

bool close_dispatch(dispatch_record& record, const dispatch_change& what) {
  const bool is_another = what.gen.value != 0 && what.gen != record.gen;
  if (is_another || record.status == dispatch_status::closed) return false;
  end_claim(record);
  record.next_attempt_at = {};
  change(record, dispatch_status::closed, what.at);
  return true;
}

bool register_process(dispatch_record& record, const dispatch_change& what) {
  if (record.gen != what.gen || record.status == dispatch_status::closed) return false;
  const bool is_known = record.host == what.process.boot_id;
  record.host = what.process.boot_id;
  const bool stream_is_over = record.stage == dispatch_stage::stream &&
                              record.status == dispatch_status::dispatched &&
                              record.last_result == dispatch_result::termination_requested;
  if (stream_is_over) {
    enter_process_stage(record, record.cancel_deadline, what.at);
  } else if (is_known) {
    return false;
  } else {
    // The process is not left running because the stream's pause was long.
    const bool pauses = has_next_stage(record) && record.status == dispatch_status::retry_wait;
    if (pauses) {
      record.next_attempt_at =
          earlier(record.next_attempt_at, later(record.cancel_deadline, what.at));
    }
    change(record, record.status, what.at);
  }
  return true;
}

std::optional<dispatch_change> dispatch_change_of(const tenant_id& tenant, const record& before,
                                                  const record& after, instant at) {
  if (after.kind != lease_kind::job) return std::nullopt;
  dispatch_change change;
  change.key = {tenant, after.lease};
  change.at = at;
  if (!before.cancel_requested_at) {
    change.gen = attempt_of(after);
    const bool opens = after.cancel_requested_at && !is_settled(after.state);
    if (!opens || change.gen.value == 0) return std::nullopt;
    change.what = dispatch_change::kind::open;
    change.cancel_requested_at = after.cancel_requested_at;
    change.cancel_deadline =
        is_live(after.state) ? after.cancel_deadline : after.cancel_requested_at;
    return change;
  }
  change.what = dispatch_change::kind::close;
  if (is_settled(after.state)) {
    if (is_settled(before.state)) return std::nullopt;
    return change;
  }
  // No grant follows a cancel, so the newest attempt is the one that the dispatch is bound to.
  const auto bound = attempt_of(before);
  if (bound.value == 0 || is_live_or_unproven(after, bound)) return std::nullopt;
  change.gen = bound;
  return change;
}

}  // namespace leasehold::protocol
