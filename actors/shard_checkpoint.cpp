// What a shard actor is given at a start, and what it gives to a checkpoint: all of its leases, and
// those that have changed.
#include <algorithm>
#include <utility>

#include "actors/shard_actor.hpp"
#include "actors/usage.hpp"

namespace leasehold::actors {

namespace {

/// From a start to the first look for what is to be forgotten.
constexpr protocol::duration first_look{1'000};
/// Of one part of a checkpoint.
constexpr std::size_t most_records = 2048;
/// Leases that one part looks at before frames are let through.
constexpr std::size_t looked_at_once = 8192;

}  // namespace

void shard_actor::load(load_leases& message) {
  for (auto& [id, chosen] : message.policies) {
    policies_.emplace(id, std::make_shared<const protocol::policy>(chosen));
    logged_policies_.insert(id);
  }
  for (auto& stored : message.leases) load_one(stored);
  loaded_ = true;
  for (auto& tie : std::exchange(early_ties_, {})) take_tie(tie);
  forgotten_ = std::move(message.forgotten);
  for (std::size_t shard = 0; shard < floors_.size(); ++shard) {
    floors_[shard] = message.state.floors[shard];
  }
  // Soon, so that a coordinator that starts often forgets, too.
  const auto first = options_->forget_after.ms == 0
                         ? options_->retention_check
                         : std::min(options_->retention_check, first_look);
  alarm_at(context_->clock->now() + first, [this] { forget_old(); });
  send_answers();
  arm_timer();
}

void shard_actor::load_one(loaded_lease& stored) {
  auto& entry = leases_.of(stored.key);
  auto& lease = entry.awake();
  const auto nothing = lease.state;
  lease.state = std::make_shared<const protocol::record>(std::move(stored.image.state));
  lease.policy = stored.image.policy;
  lease.last_row = lease.submitted_row = stored.image.last_row;
  lease.counts = std::move(stored.image.counts);
  lease.body = std::move(stored.image.body);
  older_requests_.load(entry.mark, *lease.state, context_->clock->now());
  entry.last_at = stored.image.last_at;
  entry.base_row = stored.image.base_row;
  if (stored.changed) mark_changed(entry);
  if (const auto lock = lock_of(lease)) {
    name_lock(entry, *lock);
  } else if (const auto spec = spec_of(lease)) {
    entry.named = kept_name(spec->queue);
    const auto bytes = static_cast<std::int64_t>(spec->payload.size());
    context_->counters->payload_bytes.add(bytes);
    context_->usage->payload_bytes() += bytes;
    if (const auto by_request = request_of(stored.key, *spec)) {
      tell(*context_, context_->shard_for(*by_request),
           shard_query{[by_request = *by_request, job = stored.key.lease](shard_actor& shard) {
             shard.note_request(by_request, job);
           }});
    }
  }
  ++leases_of(entry.tenant());
  context_->counters->leases[static_cast<std::size_t>(lease.state->state)].add();
  follow_lock(entry, *nothing);
  follow_holder(entry, *nothing);
  tell_queue(entry, *nothing);
  note_deadline(entry);
  rest_or_forget(entry);
}

protocol::fold::lease_image shard_actor::image_of(const lease_entry& entry) {
  auto facts = entry.facts();
  return {*facts.state,  facts.policy,   facts.last_row,          std::move(facts.body),
          entry.last_at, entry.base_row, std::move(facts.counts), {}};
}

void shard_actor::collect(const collect_checkpoint& message) {
  collecting_ = {message.upto, std::exchange(changed_, {}), 0, false, {}};
  // A store writes records that follow one another by their keys several times faster. To go over
  // all leases in that order costs less than it saves unless very few have changed.
  constexpr std::size_t leases_a_record = 64;
  if (collecting_.marks.size() * leases_a_record >= leases_.size()) {
    collecting_.in_order = true;
    collecting_.marks = {};
  }
  // Two, so that the store writes one while the next is made; never more of them in memory.
  collect_part();
  collect_part();
}

void shard_actor::collect_part() {
  if (collecting_.upto.value == 0) return;
  checkpoint_part part;
  part.from = self_;
  part.upto = collecting_.upto;
  part.last = collecting_.in_order ? collect_in_order(part.changed) : collect_marked(part.changed);
  if (part.last) {
    // What was forgotten later than the checkpoint's row is still needed to read the rows up to it.
    std::erase_if(forgotten_, [&](const forgotten_lease& each) {
      if (each.row > part.upto) return false;
      if (find(each.key) == nullptr) part.forgotten.push_back(each.key);
      return true;
    });
    for (std::size_t shard = 0; shard < floors_.size(); ++shard) {
      part.state.floors[shard] = floors_[shard];
    }
    collecting_ = {};
  }
  tell(*context_, context_->journal, std::move(part));
}

bool shard_actor::collect_in_order(std::vector<checkpoint_entry>& out) {
  auto& all = leases_.all();
  auto next = leases_.after(collecting_.after);
  const lease_entry* last = nullptr;
  for (std::size_t looked = 0;
       next != all.end() && looked < looked_at_once && out.size() < most_records;
       ++looked, ++next) {
    last = &*next;
    collect_one(*next, out);
  }
  if (last != nullptr) collecting_.after = last->key();
  return next == all.end();
}

bool shard_actor::collect_marked(std::vector<checkpoint_entry>& out) {
  const auto& marks = collecting_.marks;
  while (collecting_.next < marks.size() && out.size() < most_records) {
    if (auto* const entry = leases_.find(marks[collecting_.next++])) collect_one(*entry, out);
  }
  return collecting_.next == marks.size();
}

/// A lease that changed again is in the next list, too, and one that was seen in its order since
/// then has not changed.
void shard_actor::collect_one(lease_entry& entry, std::vector<checkpoint_entry>& out) {
  if (!entry.changed || !entry.known()) return;
  entry.changed = false;
  out.push_back({entry.key(), image_of(entry)});
}

void shard_actor::mark_changed(lease_entry& entry) {
  if (!std::exchange(entry.changed, true)) changed_.push_back(entry.mark);
}

}  // namespace leasehold::actors
