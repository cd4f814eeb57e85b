#include "scene.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <utility>

#include "support/waiting_store.hpp"

namespace leasehold::tests {

namespace {

/// Checkpoints come when the test asks for them.
constexpr protocol::duration never{3'600'000};

void describe(std::ostream& out, const actors::lease_view& view, bool with_instants) {
  const auto& r = *view.state;
  out << r.lease.value << ' ' << word(r.state) << " gen " << r.gen.value << " of "
      << r.held_by.value << " renew " << r.renew_sequence.value << " progress "
      << r.progress_sequence.value << ' ' << r.progress_value << " result "
      << protocol::terminal_word(r.terminal_result) << " cancel " << (r.cancel_requested_at.ms != 0)
      << " attempt " << r.attempt << " losses " << r.losses << " unproven " << r.unproven_count()
      << " frozen " << r.frozen;
  if (with_instants) {
    out << " row " << view.row.value << " issued " << r.issued_at.ms << " acquired "
        << r.acquired_at.ms << " expires " << r.expires_at.ms << " sent " << r.last_sent.ms
        << " next " << r.next_offer_at.ms;
  }
  out << '\n';
}

}  // namespace

scene::scene(std::filesystem::path directory, std::shared_ptr<manual_clock> clock,
             const scene_options& how) {
  directory_place where(std::move(directory));
  start(where, std::move(clock), how);
}

scene::scene(log_place& where, std::shared_ptr<manual_clock> clock, const scene_options& how) {
  start(where, std::move(clock), how);
}

void scene::start(log_place& where, std::shared_ptr<manual_clock> clock, const scene_options& how) {
  directory_ = where.directory();
  auto opened = where.open({.restored_backup = how.restored_backup,
                            .wal_bytes = how.wal_bytes,
                            .now = [clock] { return clock->now(); }});
  if (auto* fault = std::get_if<actors::store_error>(&opened)) {
    error_ = std::move(*fault);
    return;
  }
  store_ =
      std::make_shared<waiting_store>(std::move(std::get<std::unique_ptr<actors::store>>(opened)));
  auto options = how.actors;
  options.checkpoint_interval = never;
  rig = std::make_unique<coordinator_rig>(std::make_shared<memory_store>(), std::move(options),
                                          std::move(clock), how.restored_backup, store_);
  error_ = rig->start_error;
}

rig_worker& scene::worker(const std::string& incarnation_digit) {
  auto& found = workers_[incarnation_digit];
  if (!found) found = std::make_unique<rig_worker>(*rig, "w", incarnation_digit);
  return *found;
}

void scene::hold(const std::string& name, const protocol::policy& chosen) {
  worker().credit(1);
  actors::job_spec spec;
  spec.policy = chosen;
  submit(*rig, name, spec);
  worker().ack(name, 1);
  const auto found = job(*rig, name);
  EXPECT_TRUE(found && found->state->state == protocol::lease_state::active) << name;
}

std::string scene::state() { return picture(true); }
std::string scene::outcome() { return picture(false); }

std::string scene::picture(bool with_instants) {
  std::ostringstream out;
  const protocol::tenant_id tenant{"t"};
  rig->gateway().list_jobs({tenant, {}, {}, {}}, {}, 1000, [&](const actors::job_page& page) {
    for (const auto& view : page.jobs) describe(out, view, with_instants);
  });
  rig->gateway().queues(tenant, [&](const std::vector<actors::queue_view>& queues) {
    for (const auto& q : queues) {
      out << q.queue << " queued " << q.ready + q.waiting << " offered " << q.offered << " held "
          << q.held << " workers " << q.workers << " free " << q.free_slots << '\n';
    }
  });
  rig->gateway().workers(tenant, [&](const std::vector<actors::worker_view>& workers) {
    for (const auto& w : workers) {
      out << w.holder.value;
      for (const auto& [queue, slots] : w.slots) out << ' ' << queue << " slots " << slots;
      for (const auto& [queue, held] : w.held) out << ' ' << queue << " held " << held;
      out << '\n';
    }
  });
  rig->settle();
  for (const auto& count : rig->counters->leases) out << count.value() << ' ';
  out << "payload " << rig->counters->payload_bytes.value() << " conflicts "
      << rig->counters->ownership_conflicts.value() << '\n';
  return out.str();
}

}  // namespace leasehold::tests
