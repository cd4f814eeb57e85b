#include <algorithm>
#include <utility>

#include "fold_mismatch.hpp"
#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {

namespace {

/// Rows that are about the store or that begin or end a lease's history, and follow from no rule.
bool is_store_row(event_kind kind) noexcept { return kind >= event_kind::clock_anchored; }

/// The resolve that follows a conflict is not asked for: without it the stored grant record did not
/// confirm the holder, and the lease stays frozen (protocol.md 7a). It is the last row of its
/// event.
bool may_be_absent(event_kind kind, bool derived) noexcept {
  return derived && kind == event_kind::resolve;
}

std::string described(event_kind kind, instant at) {
  return quoted(word(kind)) + " at " + std::to_string(at.ms);
}

}  // namespace

/// Keeps the rows of one call of the rules, each with the record after it.
class fold::collector final : public row_sink {
 public:
  void on_row(const row& what, const record& after) override {
    const bool has_input = what.input != nullptr;
    rows.push_back({what.kind, what.at, what.answer, what.state_before, what.deferred_row,
                    what.derived, has_input, what.floor,
                    has_input && what.derived ? *what.input : event{}, after});
  }
  expected_rows rows;
};

void fold::learn(policy_id id, const policy& chosen) { policies_[id] = chosen; }

const policy* fold::policy_of(policy_id id) const {
  const auto found = policies_.find(id);
  return found == policies_.end() ? nullptr : &found->second;
}

void fold::load(lease_key key, lease_image image) {
  headless_.erase(key);
  // They come in order where there are very many of them.
  leases_.insert_or_assign(leases_.end(), std::move(key), std::move(image));
}

const fold::lease_image* fold::find(const lease_key& key) const {
  const auto found = leases_.find(key);
  return found == leases_.end() ? nullptr : &found->second;
}

std::vector<fold::mismatch> fold::missing_rows() const {
  std::vector<mismatch> missing;
  for (const auto& [key, due] : expected_) {
    if (may_be_absent(due.front().kind, due.front().derived)) continue;
    const lease_image* image = find(key);
    const row_number after = image != nullptr ? image->last_row : row_number{};
    missing.push_back({after, "event",
                       "after this row of lease " + quoted(key.lease.value) +
                           " the rules ask for " + described(due.front().kind, due.front().at) +
                           ", which the log does not have"});
  }
  for (const auto& [key, newest] : headless_) {
    missing.push_back({newest, "event",
                       "the first rows of lease " + quoted(key.lease.value) +
                           " were cut, and no base row stands for them"});
  }
  return missing;
}

std::optional<fold::mismatch> fold::feed(const stored_row& r) {
  deferred_row_ = {};
  if (is_store_row(r.input.kind)) return feed_store_row(r);
  const auto found = leases_.find(r.key);
  if (found != leases_.end()) {
    if (r.row.value != 0 && r.row <= found->second.last_row) return std::nullopt;
    return feed_lease_row(r, found->second);
  }
  if (is_headless(r)) return feed_headless(r);
  lease_image unknown;
  auto fault = feed_lease_row(r, unknown);
  if (unknown.state.known()) leases_.emplace(r.key, std::move(unknown));
  return fault;
}

std::optional<fold::mismatch> fold::feed_lease_row(const stored_row& r, lease_image& image) {
  std::optional<mismatch> fault;
  if (r.prev_row != image.last_row) {
    fault = differs(r, "prev_row", r.prev_row.value, image.last_row.value);
  } else if (r.rule_version != rule_version) {
    fault = differs(r, "rule_version", r.rule_version, rule_version);
  } else if (r.has_input && r.input.lease != r.key.lease) {
    fault = differs(r, "lease_id", r.input.lease.value, r.key.lease.value);
  } else {
    fault = find_policy_fault(r, image);
    if (!fault) fault = find_floor_fault(r, image);
  }
  expected_rows due;
  if (!expected_.empty()) {
    if (const auto found = expected_.find(r.key); found != expected_.end()) {
      due = std::move(found->second);
      expected_.erase(found);
    }
  }
  auto judged = judge(r, image, due);
  if (!due.empty()) expected_.emplace(r.key, std::move(due));
  return fault ? fault : judged;
}

std::optional<fold::mismatch> fold::find_floor_fault(const stored_row& r,
                                                     const lease_image& image) const {
  const bool grants = r.input.kind == event_kind::offer || r.input.kind == event_kind::acquire;
  if (!floors_known_ || !grants) return std::nullopt;
  generation least = image.floor;
  if (!image.state.known()) {
    const auto forgotten = forgotten_.find(r.key);
    if (forgotten != forgotten_.end()) least = forgotten->second;
  }
  if (std::max(image.state.gen, r.floor) >= least) return std::nullopt;
  return differs(r, "floor", r.floor.value, least.value);
}

std::optional<fold::mismatch> fold::find_policy_fault(const stored_row& r,
                                                      const lease_image& image) const {
  const bool sets_policy = !image.state.known() || r.input.kind == event_kind::acquire;
  if (!sets_policy && r.policy != image.policy) {
    return differs(r, "policy", to_text(r.policy), to_text(image.policy));
  }
  if (r.policy.value != 0 && policy_of(r.policy) == nullptr) {
    return mismatch{r.row, "policy", "no row before makes policy " + to_text(r.policy) + " known"};
  }
  return std::nullopt;
}

std::optional<fold::mismatch> fold::judge(const stored_row& r, lease_image& image,
                                          expected_rows& due) {
  if (due.empty()) {
    due = run_rules(r, image);
    return take(r, image, due);
  }
  const auto same = [&r](const expected_row& each) {
    return each.kind == r.input.kind && each.has_input == r.has_input && each.derived == r.derived;
  };
  if (std::any_of(due.begin(), due.end(), same)) return take(r, image, due);
  if (may_be_absent(due.front().kind, due.front().derived)) {
    due = run_rules(r, image);
    return take(r, image, due);
  }
  // The rest of the group is not in the log; the row is judged as if it were.
  mismatch missing{
      r.row, "event",
      "the rules ask for " + described(due.front().kind, due.front().at) + " before this row"};
  image.state = std::move(due.back().after);
  due = run_rules(r, image);
  take(r, image, due);
  return missing;
}

fold::expected_rows fold::run_rules(const stored_row& r, lease_image& image) const {
  static const policy defaults;
  const bool sets_policy = !image.state.known() || r.input.kind == event_kind::acquire;
  const policy* chosen = policy_of(sets_policy ? r.policy : image.policy);
  if (chosen == nullptr) chosen = &defaults;
  collector sink;
  if (r.has_input) {
    if (!r.derived) step(image.state, *chosen, r.input, r.at, sink, r.floor);
  } else if (r.input.kind == event_kind::recover) {
    recover_grace(image.state, *chosen, r.at, sink);
  } else if (r.input.kind == event_kind::expire || r.input.kind == event_kind::reconcile_close) {
    expire_due(image.state, *chosen, r.at, sink);
  }
  return std::move(sink.rows);
}

std::optional<fold::mismatch> fold::take(const stored_row& r, lease_image& image,
                                         expected_rows& due) {
  if (due.empty()) {
    if (image.state.known()) image.last_row = r.row;
    return mismatch{r.row, "event",
                    "nothing before this row leads to " + described(r.input.kind, r.at)};
  }
  const auto fits = [&r](const expected_row& each) {
    return each.kind == r.input.kind && each.has_input == r.has_input;
  };
  auto wanted = std::find_if(due.begin(), due.end(), fits);
  std::optional<mismatch> fault;
  if (wanted == due.end()) {
    wanted = due.begin();
    fault = differs(r, "event", word(r.input.kind), word(wanted->kind));
  } else if (wanted != due.begin()) {
    fault = mismatch{
        r.row, "event",
        "the rules ask for " + described(due.front().kind, due.front().at) + " before this row"};
  } else {
    fault = find_difference(r, *wanted);
  }
  deferred_row_ = wanted->deferred_row;
  const expected_row taken = std::move(*wanted);
  due.erase(due.begin(), wanted + 1);
  keep(r, image, taken);
  if (taken.answer.decision == decision::deferred) {
    for (expected_row& later : due) {
      for (deferred_frame& waits : later.after.deferred) {
        if (waits.row.value == 0) waits.row = r.row;
      }
    }
  }
  return fault;
}

void fold::keep(const stored_row& r, lease_image& image, const expected_row& taken) {
  const bool was_known = image.state.known() && image.last_row.value != 0;
  image.state = taken.after;
  if (!image.state.known()) return;
  image.last_row = r.row;
  image.last_at = r.at;
  if (!was_known) image.base_row = r.row;
  count_reason(image.counts, taken.answer.reason);
  note_floor(r.key, image);
  const bool granted = taken.answer.decision == decision::accepted;
  const bool acquired = r.input.kind == event_kind::acquire && granted;
  if (!was_known || acquired) image.policy = r.policy;
  if (acquired || (r.input.kind == event_kind::submit && granted)) image.body = r.attachment;
  if (taken.answer.decision == decision::deferred) {
    for (deferred_frame& waits : image.state.deferred) {
      if (waits.row.value == 0) waits.row = r.row;
    }
  }
}

std::optional<fold::mismatch> fold::find_difference(const stored_row& r,
                                                    const expected_row& wanted) {
  const verdict& stored = r.answer;
  const verdict& follows = wanted.answer;
  if (r.at != wanted.at) return differs(r, "at", r.at.ms, wanted.at.ms);
  if (r.state_before != wanted.state_before) {
    return differs(r, "state_before", word(r.state_before), word(wanted.state_before));
  }
  if (stored.decision != follows.decision) {
    return differs(r, "decision", word(stored.decision), word(follows.decision));
  }
  if (stored.reason != follows.reason) {
    return differs(r, "reason", word(stored.reason), word(follows.reason));
  }
  if (stored.rule != follows.rule) {
    return differs(r, "rule", word(stored.rule), word(follows.rule));
  }
  const row_flags& a = stored.flags;
  const row_flags& b = follows.flags;
  if (a.stale_generation != b.stale_generation) {
    return differs(r, "stale_generation", a.stale_generation, b.stale_generation);
  }
  if (a.late_progress != b.late_progress) {
    return differs(r, "late_progress", a.late_progress, b.late_progress);
  }
  if (a.lease_expired != b.lease_expired) {
    return differs(r, "lease_expired", a.lease_expired, b.lease_expired);
  }
  if (a.ownership_conflict != b.ownership_conflict) {
    return differs(r, "ownership_conflict", a.ownership_conflict, b.ownership_conflict);
  }
  if (r.derived != wanted.derived) return differs(r, "derived", r.derived, wanted.derived);
  if (r.floor != wanted.floor) return differs(r, "floor", r.floor.value, wanted.floor.value);
  return wanted.derived && wanted.has_input ? find_input_difference(r, wanted.input) : std::nullopt;
}

std::optional<fold::mismatch> fold::find_input_difference(const stored_row& r,
                                                          const event& wanted) {
  const event& in = r.input;
  if (in.gen != wanted.gen) {
    return differs(r, "frame_generation", in.gen.value, wanted.gen.value);
  }
  if (in.from != wanted.from) return differs(r, "frame_holder", in.from.value, wanted.from.value);
  if (in.seq != wanted.seq) return differs(r, "frame_sequence", in.seq.value, wanted.seq.value);
  if (in.sent_at != wanted.sent_at) return differs(r, "sent_at", in.sent_at.ms, wanted.sent_at.ms);
  if (in.value != wanted.value) return differs(r, "frame_value", in.value, wanted.value);
  if (in.ending != wanted.ending || in.unknown_outcome != wanted.unknown_outcome) {
    return differs(r, "frame_outcome", word(in.ending), word(wanted.ending));
  }
  if (in.detail != wanted.detail) return differs(r, "frame_detail", in.detail, wanted.detail);
  if (in.retryable != wanted.retryable) {
    return differs(r, "frame_retryable", in.retryable, wanted.retryable);
  }
  if (in.request != wanted.request) {
    return differs(r, "request_id", in.request.value, wanted.request.value);
  }
  if (in.frame_id != wanted.frame_id) {
    return differs(r, "frame_id", in.frame_id, wanted.frame_id);
  }
  if (in.session_epoch != wanted.session_epoch) {
    return differs(r, "session_epoch", in.session_epoch, wanted.session_epoch);
  }
  if (in.trace_id != wanted.trace_id) {
    return differs(r, "trace_id", in.trace_id, wanted.trace_id);
  }
  return std::nullopt;
}

}  // namespace leasehold::protocol
