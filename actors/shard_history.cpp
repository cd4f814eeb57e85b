// The history of leases in the log: base rows, so that the log can be cut behind them, and the rows
// with which settled jobs and idle locks are forgotten (architecture.md 4).
#include <utility>

#include "actors/shard_actor.hpp"
#include "actors/usage.hpp"
#include "leasehold/protocol/record_image.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

namespace {

/// Leases looked at before frames are let through.
constexpr std::size_t looked_at_once = 4096;
/// Rows on their way at once: a sweep waits for the disk, and never fills it by itself.
constexpr std::int64_t most_open = 512;

bool waits(const lease_entry& entry) {
  return !entry.idle() && !entry.if_awake()->groups->waiting.empty();
}

}  // namespace

void shard_actor::base_all(const write_bases& message) {
  base_upto_ = message.upto;
  bases_failed_ = false;
  sweep_.base = true;
  sweep_.after = {};
  sweep_.running = true;
  sweep();
}

void shard_actor::forget_old() {
  alarm_at(context_->clock->now() + options_->retention_check, [this] { forget_old(); });
  if (options_->forget_after.ms == 0) return;
  // A sweep that runs looks at everything behind where it stands; the rest waits for the next one.
  sweep_.forget = true;
  if (std::exchange(sweep_.running, true)) return;
  sweep_.after = {};
  sweep();
}

void shard_actor::ask_to_sweep() {
  if (!sweep_.running || bases_open_ >= most_open || std::exchange(sweep_.asked, true)) return;
  tell(self_.who, sweep_on{});
}

void shard_actor::sweep() {
  sweep_.asked = false;
  if (!sweep_.running || bases_open_ >= most_open) return;
  begin_turn();
  // One commit for all rows of this turn.
  const auto turn = first_turn_ + open_turns_.size() - 1;
  ++open_turns_.back();
  auto& all = leases_.all();
  auto next = leases_.after(sweep_.after);
  std::size_t looked = 0;
  while (next != all.end() && looked < looked_at_once && bases_open_ < most_open) {
    auto& entry = *next;
    sweep_.after.tenant = entry.tenant();
    sweep_.after.lease.value = entry.lease();
    ++next;
    ++looked;
    look_at(entry);
  }
  const bool over = next == all.end();
  if (over) sweep_ = {};
  end_of_turn(turn);
  ask_to_sweep();
  if (over) based(true);
}

bool shard_actor::look_at(lease_entry& entry) {
  for (const auto what : {history_row::forget, history_row::base}) {
    if (!(what == history_row::base ? sweep_.base : sweep_.forget) || !is_wanted(entry, what)) {
      continue;
    }
    ++bases_open_;
    event_group group;
    group.stamp = context_->clock->now();
    group.history = what;
    enqueue_group(entry, std::move(group));
    return true;
  }
  return false;
}

bool shard_actor::is_wanted(const lease_entry& entry, history_row what) const {
  if (!entry.known()) return false;
  if (what == history_row::base) return base_upto_.value != 0 && entry.base_row <= base_upto_;
  const auto now = context_->clock->now();
  const auto after = options_->forget_after;
  // The checkpoint must have the record as it is: rows after the checkpoint end with the row that
  // forgets it.
  return after.ms != 0 && !entry.changed && entry.last_at + after <= now && !waits(entry) &&
         !lines_.contains(entry.mark) && protocol::may_be_forgotten(*entry.state(), now);
}

void shard_actor::write_history(lease_entry& entry, event_group group) {
  if (!is_wanted(entry, group.history)) {
    // It has changed since it was looked at, or an earlier row did what was wanted.
    --bases_open_;
    based(true);
    start_next(entry);
    rest_or_forget(entry);
    return;
  }
  auto& lease = entry.awake();
  decision_group out;
  out.count = 1;
  if (group.history == history_row::base) {
    out.rows = protocol::encode_base_row(entry.key(), {*policy_of(lease.policy), image_of(entry)},
                                         group.stamp);
  } else {
    out.rows = protocol::encode_forget_row(entry.key(), lease.last_row, *lease.state, group.stamp);
    if (!entry.is_lock && context_->keeps_dispatches) {
      protocol::dispatch_change gone;
      gone.what = protocol::dispatch_change::kind::forget;
      gone.key = entry.key();
      gone.at = group.stamp;
      buffer_dispatches_.push_back(std::move(gone));
    }
  }
  begin_turn();
  const auto turn = first_turn_ + open_turns_.size() - 1;
  ++open_turns_.back();
  groups_of(lease).deciding = std::move(group);
  buffer_bytes_ += out.rows.size();
  buffer_.push_back({entry.mark, std::move(out)});
  end_of_turn(turn);
}

void shard_actor::history_durable(lease_entry& entry, protocol::row_number row) {
  auto& lease = entry.awake();
  const auto group = take_deciding(lease);
  --bases_open_;
  if (group.history == history_row::forget) {
    forget(entry, row);
  } else {
    lease.last_row = entry.base_row = row;
    lease.counts.clear();
    mark_changed(entry);
    start_next(entry);
    rest_or_forget(entry);
  }
  based(true);
  if (bases_open_ < most_open / 2) ask_to_sweep();
}

void shard_actor::history_failed(lease_entry& entry) {
  // The store takes nothing: the next round tries again.
  sweep_ = {};
  take_deciding(entry.awake());
  --bases_open_;
  based(false);
  start_next(entry);
  rest_or_forget(entry);
}

void shard_actor::based(bool well) {
  if (!well) bases_failed_ = true;
  if (base_upto_.value == 0 || sweep_.base || bases_open_ > 0) return;
  tell(*context_, context_->journal, bases_written{base_upto_, !bases_failed_});
  base_upto_ = {};
}

void shard_actor::forget(lease_entry& entry, protocol::row_number row) {
  auto& lease = entry.awake();
  const auto key = entry.key();
  auto& floor = floors_[entry.store_shard];
  floor = std::max(floor, lease.state->gen);
  forgotten_.push_back({key, row});
  context_->counters->leases[static_cast<std::size_t>(lease.state->state)].add(-1);
  context_->counters->leases_forgotten.add();
  --leases_of(key.tenant);
  if (const auto spec = decode_job(lease.body)) {
    const auto bytes = static_cast<std::int64_t>(spec->payload.size());
    context_->counters->payload_bytes.add(-bytes);
    context_->usage->payload_bytes() -= bytes;
    if (const auto by_request = request_of(key, *spec)) {
      tell(*context_, context_->shard_for(*by_request),
           shard_query{[by_request = *by_request, job = key.lease](shard_actor& shard) {
             shard.drop_request(by_request, job);
           }});
    }
  }
  if (lease.actor) ask_to_exit(lease.actor);
  // What came meanwhile meets a lease that nobody knows.
  std::vector<event_group> waiting;
  if (lease.groups) waiting = std::move(lease.groups->waiting);
  leases_.erase(entry);
  for (auto& group : waiting) {
    if (group.history != history_row::none) {
      --bases_open_;
    } else if (group.operation) {
      take_operation(*group.operation);
    } else if (!group.is_deadline()) {
      enqueue_group(leases_.of(key), std::move(group));
    }
  }
}

}  // namespace leasehold::actors
