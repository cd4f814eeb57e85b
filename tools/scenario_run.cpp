// Runs a scenario: the parts of the coordinator that are time and order, without clock or threads.
#include "tools/scenario.hpp"

namespace leasehold::tools {

using namespace protocol;

scenario_run::scenario_run(const protocol::policy& chosen, step_listener listener)
    : policy_(chosen), listener_(std::move(listener)) {}

void scenario_run::take(const scenario_step& next) {
  ++step_;
  if (next.what && next.what->kind == event_kind::recover) return recover(next.at);
  pass_deadlines(next.at, &expire_due);
  if (next.what) judge(*next.what, next.at);
}

void scenario_run::on_row(const row& what, const record& after) { listener_(step_, what, after); }

template <class Change>
void scenario_run::change(record& lease, Change&& apply_it) {
  const auto before = next_deadline(lease);
  apply_it(lease);
  const auto after = next_deadline(lease);
  if (before == after) return;
  if (before) deadlines_.erase({*before, lease.lease});
  if (after) deadlines_.insert({*after, lease.lease});
}

void scenario_run::pass_deadlines(instant now, deadline_rule rule) {
  auto next = deadlines_.begin();
  while (next != deadlines_.end() && next->first <= now) {
    const deadline due = *next;
    change(leases_.at(due.second), [&](record& lease) { rule(lease, policy_, due.first, *this); });
    // A rule may spare a lease; its deadline then stays, and is passed over.
    next = deadlines_.upper_bound(due);
  }
}

void scenario_run::judge(const event& what, instant now) {
  auto& lease = leases_[what.lease];
  change(lease, [&](record& it) { step(it, policy_, what, now, *this); });
  if (!lease.known()) leases_.erase(what.lease);
}

void scenario_run::recover(instant now) {
  pass_deadlines(now, &recover_due);
  for (auto& [id, lease] : leases_) {
    change(lease, [&](record& it) { recover_grace(it, policy_, now, *this); });
  }
  pass_deadlines(now, &expire_due);
}

}  // namespace leasehold::tools
