// The jobs of a queue: where each of them stands, and whose slot it takes.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "actors/queue_actor.hpp"

namespace leasehold::actors {

bool queue_actor::by_rank::operator()(const job& x, const job& y) const noexcept {
  if (x.priority != y.priority) return x.priority > y.priority;
  if (x.submitted_at != y.submitted_at) return x.submitted_at < y.submitted_at;
  if (x.since != y.since) return x.since < y.since;
  return x.id < y.id;
}

bool queue_actor::by_due::operator()(const job& x, const job& y) const noexcept {
  if (x.due != y.due) return x.due < y.due;
  return x.id < y.id;
}

queue_actor::job* queue_actor::find(std::string_view id) {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : &*at;
}

const queue_actor::job* queue_actor::find(std::string_view id) const {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : &*at;
}

std::pair<queue_actor::job&, bool> queue_actor::find_or_make(std::string_view id) {
  job_map::insert_commit_data place;
  const auto [at, fresh] = jobs_.insert_check(id, place);
  if (!fresh) return {*at, false};
  auto& made = *std::make_unique<job>(id).release();
  jobs_.insert_commit(made, place);
  return {made, true};
}

void queue_actor::erase(job& j) {
  keep_as_stray(j);
  leave_group(j);
  jobs_.erase_and_dispose(jobs_.iterator_to(j), std::default_delete<job>{});
}

protocol::instant queue_actor::due(const job& j) const {
  return protocol::later(j.due, context_->grants_from);
}

void queue_actor::place_job(job& placed) {
  if (due(placed) > context_->clock->now()) {
    placed.place = place_of_job::waiting;
    waiting_.insert(placed);
    context_->counters->jobs_waiting.add();
  } else {
    placed.place = place_of_job::ready;
    auto& group = *placed.group;
    if (group.ready.empty()) ready_.insert(&group);
    group.ready.insert(placed);
    context_->counters->jobs_ready.add();
  }
}

void queue_actor::unplace(job& placed) {
  switch (placed.place) {
    case place_of_job::ready: {
      auto& group = *placed.group;
      group.ready.erase(group.ready.iterator_to(placed));
      if (group.ready.empty()) ready_.erase(&group);
      context_->counters->jobs_ready.add(-1);
      break;
    }
    case place_of_job::waiting:
      waiting_.erase(waiting_.iterator_to(placed));
      context_->counters->jobs_waiting.add(-1);
      break;
    case place_of_job::held:
      if (--placed.held_by->second == 0) holders_.erase(holders_.find(placed.held_by->first));
      placed.group = nullptr;
      --taken_;
      break;
    case place_of_job::offering:
      --offering_;
      --taken_;
      break;
  }
}

void queue_actor::set_terms(job& j, const job_ready& terms) {
  const auto& spec = *terms.spec;
  const auto [at, fresh] = groups_.try_emplace(spec.labels);
  if (fresh) at->second.wanted = &at->first;
  ++at->second.jobs;
  leave_group(j);
  j.group = &at->second;
  j.submitted_at = terms.submitted_at;
  j.since = terms.since;
  j.due = protocol::later(terms.next_offer_at, spec.not_before);
  j.due_by_not_before = spec.not_before > terms.next_offer_at;
  j.not_after = spec.not_after;
  using limits = std::numeric_limits<std::int16_t>;
  j.priority = static_cast<std::int16_t>(
      std::clamp<std::int64_t>(spec.priority, limits::min(), limits::max()));
}

void queue_actor::leave_group(job& j) {
  auto* group = std::exchange(j.group, nullptr);
  if (group != nullptr && --group->jobs == 0) groups_.erase(groups_.find(*group->wanted));
}

void queue_actor::use(session& s, job& used) {
  if (used.of == &s && used.slot != no_slot) return;
  keep_as_stray(used);
  if (const auto stray = s.strays.find(used.id.view()); stray != s.strays.end()) {
    s.strays.erase(stray);
  }
  used.of = &s;
  used.slot = static_cast<std::uint32_t>(s.uses.size());
  s.uses.push_back(&used);
}

void queue_actor::use(session& s, const protocol::lease_id& lease) {
  auto* const j = find(lease.value);
  if (j != nullptr && (j->of == nullptr || j->of == &s)) {
    use(s, *j);
  } else {
    s.strays.insert(lease.value);
  }
}

void queue_actor::free_slot(job& freed) {
  if (freed.slot == no_slot) return;
  auto& uses = freed.of->uses;
  const auto slot = std::exchange(freed.slot, no_slot);
  uses[slot] = uses.back();
  if (uses[slot] != &freed) uses[slot]->slot = slot;
  uses.pop_back();
  if (freed.place != place_of_job::offering) freed.of = nullptr;
}

void queue_actor::keep_as_stray(job& j) {
  if (j.slot == no_slot) return;
  auto& s = *j.of;
  free_slot(j);
  s.strays.emplace(j.id.view());
}

}  // namespace leasehold::actors
