#include "support/fake_coordinator.hpp"

#include <utility>

namespace leasehold::tests {

using namespace protocol;

class fake_coordinator::collector final : public row_sink {
 public:
  explicit collector(row_number& newest, std::int64_t& rows) : newest_(newest), rows_(rows) {}
  void on_row(const row& what, const protocol::record& after) override {
    newest_ = {++rows_};
    all.push_back({what.kind, what.answer, what.input != nullptr,
                   what.input != nullptr ? *what.input : event{}, what.state_before, after.state,
                   after.gen, after.held_by, what.derived});
  }
  std::vector<collected_row> all;

 private:
  row_number& newest_;
  std::int64_t& rows_;
};

lease_standing fake_coordinator::standing(const entry& e) const {
  const auto& r = e.state;
  return {.lease = r.lease,
          .gen = r.gen,
          .row = e.row,
          .state = r.state,
          .expires_at = r.expires_at,
          .renew_sequence = r.renew_sequence,
          .progress_sequence = r.progress_sequence,
          .cancel_requested = bool(r.cancel_requested_at),
          .cancel_deadline = r.cancel_deadline};
}

void fake_coordinator::send(decltype(coordinator_frame::body) body) {
  if (open_) out_.push_back({.frame_id = ++frame_id_, .body = std::move(body)});
}

void fake_coordinator::answer(const entry* e, const event& input, const verdict& given) {
  send(frame_verdict{.answers = input.frame_id,
                     .epoch = input.session_epoch,
                     .decision = given.decision,
                     .reason = given.reason,
                     .outcome = class_of(given.decision, given.reason),
                     .retry_after = {},
                     .standing = e != nullptr ? standing(*e) : lease_standing{}});
}

void fake_coordinator::run(instant now, entry& e, const event& what) {
  collector rows(e.row, rows_);
  step(e.state, policy, what, now, rows);
  tell(now, e, rows.all);
}

void fake_coordinator::tell(instant now, entry& e, const std::vector<collected_row>& rows) {
  for (const auto& row : rows) {
    if (row.has_input && is_frame(row.kind) && row.input.frame_id != 0)
      answer(&e, row.input, row.answer);
    const bool ours = row.held_by == holder_;
    if (row.kind == event_kind::activate && ours) send(activated{standing(e), now});
    if (row.kind == event_kind::cancel && row.state == lease_state::active && ours) {
      send(cancel_notice{standing(e)});
    }
    const bool closed = is_live(row.state_before) && !is_live(row.state) && !is_frame(row.kind);
    if (closed && ours) {
      const auto why = row.kind == event_kind::revoke ? loss::revoked
                       : is_settled(row.state)        ? loss::settled
                                                      : loss::expired;
      send(lease_lost{{e.state.lease, row.gen, e.row, why}});
    }
  }
}

bool fake_coordinator::offer(instant now, const std::string& lease) {
  auto& e = leases_[lease];
  event what;
  what.kind = event_kind::offer;
  what.lease = lease_id(lease);
  what.job = job_id(lease);
  what.from = holder_;
  run(now, e, what);
  if (e.state.state != lease_state::offered || e.state.issued_at != now) return false;
  ++holder_changes;
  send(protocol::offer{.standing = standing(e),
                       .job = e.state.job,
                       .queue = queue,
                       .payload = "work",
                       .attempt = e.state.attempt + 1,
                       .ack_deadline = e.state.ack_deadline,
                       .lease_duration = policy.lease_duration,
                       .cancel_grace = policy.cancel_grace,
                       .max_lifetime = policy.max_lifetime,
                       .last_progress = {},
                       .trace_id = {}});
  return true;
}

void fake_coordinator::cancel(instant now, const std::string& lease) {
  event what;
  what.kind = event_kind::cancel;
  what.lease = lease_id(lease);
  run(now, leases_[lease], what);
}

void fake_coordinator::revoke(instant now, const std::string& lease) {
  event what;
  what.kind = event_kind::revoke;
  what.lease = lease_id(lease);
  what.force = true;
  run(now, leases_[lease], what);
}

void fake_coordinator::tick(instant now) {
  for (auto& [name, e] : leases_) {
    collector rows(e.row, rows_);
    expire_due(e.state, policy, now, rows);
    tell(now, e, rows.all);
  }
}

void fake_coordinator::disconnect() {
  open_ = false;
  out_.clear();
}

std::vector<coordinator_frame> fake_coordinator::take() { return std::exchange(out_, {}); }

const record& fake_coordinator::record(const std::string& lease) const {
  return leases_.at(lease).state;
}

void fake_coordinator::welcome(instant now, const hello& hello) {
  holder_ = holder("worker/" + hello.incarnation);
  if (mute) return;
  protocol::welcome greeting{.holder = holder_,
                             .session_epoch = ++epoch_,
                             .resumed = {},
                             .lost = {},
                             .server_time = now,
                             .frames_in_flight = 1024,
                             .message_bytes = 65536,
                             .heartbeat_interval = {10000},
                             .node = "fake"};
  for (const auto& [name, e] : leases_) {
    if (is_live(e.state.state) && e.state.held_by == holder_)
      greeting.resumed.push_back(standing(e));
  }
  for (const auto& lease : hello.running) {
    const auto at = leases_.find(lease.lease.value);
    const bool lives =
        at != leases_.end() && at->second.state.gen == lease.gen && is_live(at->second.state.state);
    if (!lives) {
      greeting.lost.push_back({lease.lease, lease.gen,
                               at != leases_.end() ? at->second.row : row_number{}, loss::expired});
    }
  }
  credit_sequence_.clear();
  credit_.clear();
  open_ = true;
  send(std::move(greeting));
}

void fake_coordinator::judge(instant now, const lease_frame& frame, std::int64_t frame_id) {
  auto what = frame.what;
  what.frame_id = frame_id;
  what.session_epoch = epoch_;
  judged.push_back(what);
  const auto at = leases_.find(what.lease.value);
  if (at == leases_.end()) {
    return answer(nullptr, what, {decision::rejected, reason::unknown_lease, {}, {}});
  }
  if (what.kind == event_kind::result && frame.last_progress_sequence.value != 0) {
    auto last = what;
    last.kind = event_kind::progress;
    last.seq = frame.last_progress_sequence;
    last.value = frame.last_progress_value;
    last.frame_id = 0;
    run(now, at->second, last);
  }
  run(now, at->second, what);
}

void fake_coordinator::receive(instant now, const worker_frame& frame) {
  tick(now);
  if (const auto* greeting = std::get_if<hello>(&frame.body)) return welcome(now, *greeting);
  if (!open_) return;
  if (const auto* about = std::get_if<lease_frame>(&frame.body)) judge(now, *about, frame.frame_id);
  if (const auto* given = std::get_if<protocol::credit>(&frame.body)) {
    if (given->epoch == epoch_ && given->seq.value > credit_sequence_[given->queue]) {
      credit_sequence_[given->queue] = given->seq.value;
      credit_[given->queue] = given->slots;
    }
  }
  if (const auto* last = std::get_if<goodbye>(&frame.body)) {
    for (const auto& lease : last->releases) {
      lease_frame released;
      released.what.kind = event_kind::release;
      released.what.lease = lease.lease;
      released.what.gen = lease.gen;
      released.what.from = holder_;
      released.what.sent_at = now;
      judge(now, released, 0);
    }
  }
}

}  // namespace leasehold::tests
