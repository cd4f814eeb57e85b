// The jobs of a queue: where each of them stands, and whose slot it takes.
#include <algorithm>
#include <limits>
#include <utility>

#include "actors/queue_actor.hpp"

namespace leasehold::actors {

bool queue_actor::by_rank::operator()(job_ref a, job_ref b) const noexcept {
  const auto& x = a->second;
  const auto& y = b->second;
  if (x.priority != y.priority) return x.priority > y.priority;
  if (x.submitted_at != y.submitted_at) return x.submitted_at < y.submitted_at;
  if (x.since != y.since) return x.since < y.since;
  return a->first < b->first;
}

bool queue_actor::by_due::operator()(job_ref a, job_ref b) const noexcept {
  if (a->second.due != b->second.due) return a->second.due < b->second.due;
  return a->first < b->first;
}

queue_actor::job_ref queue_actor::find(const protocol::lease_id& lease) {
  return jobs_.find(std::string_view(lease.value));
}

std::pair<queue_actor::job_ref, bool> queue_actor::find_or_make(const protocol::lease_id& lease) {
  const std::string_view id = lease.value;
  const auto at = jobs_.lower_bound(id);
  if (at != jobs_.end() && at->first.view() == id) return {at, false};
  return {jobs_.try_emplace(at, lease_name(id)), true};
}

void queue_actor::erase(job_ref j) {
  keep_as_stray(j);
  leave_group(j->second);
  jobs_.erase(j);
}

protocol::instant queue_actor::due(const job& j) const {
  return protocol::later(j.due, context_->grants_from);
}

void queue_actor::place_job(job_ref j) {
  auto& placed = j->second;
  if (due(placed) > context_->clock->now()) {
    placed.place = place_of_job::waiting;
    waiting_.insert(j);
    context_->counters->jobs_waiting.add();
  } else {
    placed.place = place_of_job::ready;
    auto& group = *placed.group;
    group.ready.insert(j);
    if (group.ready.size() == 1) ready_.insert(&group);
    context_->counters->jobs_ready.add();
  }
}

void queue_actor::unplace(job_ref j) {
  auto& placed = j->second;
  switch (placed.place) {
    case place_of_job::ready: {
      auto& group = *placed.group;
      group.ready.erase(j);
      if (group.ready.empty()) ready_.erase(&group);
      context_->counters->jobs_ready.add(-1);
      break;
    }
    case place_of_job::waiting:
      waiting_.erase(j);
      context_->counters->jobs_waiting.add(-1);
      break;
    case place_of_job::held:
      if (--placed.held_by->second == 0) holders_.erase(placed.held_by);
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

void queue_actor::use(session& s, job_ref j) {
  auto& used = j->second;
  if (used.of == &s && used.slot != no_slot) return;
  keep_as_stray(j);
  if (const auto stray = s.strays.find(j->first.view()); stray != s.strays.end()) {
    s.strays.erase(stray);
  }
  used.of = &s;
  used.slot = static_cast<std::uint32_t>(s.uses.size());
  s.uses.push_back(j);
}

void queue_actor::use(session& s, const protocol::lease_id& lease) {
  const auto j = find(lease);
  if (j != jobs_.end() && (j->second.of == nullptr || j->second.of == &s)) {
    use(s, j);
  } else {
    s.strays.insert(lease.value);
  }
}

void queue_actor::free_slot(job_ref j) {
  auto& freed = j->second;
  if (freed.slot == no_slot) return;
  auto& uses = freed.of->uses;
  const auto slot = std::exchange(freed.slot, no_slot);
  uses[slot] = uses.back();
  if (uses[slot] != j) uses[slot]->second.slot = slot;
  uses.pop_back();
  if (freed.place != place_of_job::offering) freed.of = nullptr;
}

void queue_actor::keep_as_stray(job_ref j) {
  if (j->second.slot == no_slot) return;
  auto& s = *j->second.of;
  free_slot(j);
  s.strays.emplace(j->first.view());
}

}  // namespace leasehold::actors
