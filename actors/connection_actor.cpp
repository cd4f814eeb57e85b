#include "actors/connection_actor.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace leasehold::actors {

connection_actor::connection_actor(caf::actor_config& config, context_ptr context,
                                   options_ptr options, session_id epoch, principal who,
                                   std::shared_ptr<outbound> sink)
    : coordinator_actor(config),
      context_(std::move(context)),
      options_(std::move(options)),
      epoch_(epoch),
      who_(std::move(who)),
      sink_(std::move(sink)),
      outgoing_(context_->threads) {}

actor_behavior connection_actor::make_behavior() {
  self_ = {context_->thread, caf::actor_cast<actor_handle>(this)};
  last_sent_ = context_->clock->now();
  delayed_send(this, std::chrono::milliseconds(options_->hello_timeout.ms), hello_due{});
  delayed_send(this, std::chrono::milliseconds(options_->heartbeat_interval.ms), heartbeat_due{});
  return {
      [this](inbound_message& message) { take(message); },
      [this](outbound_frames& message) { send_out(message); },
      [this](const session_claimed&) { claimed(); },
      [this](leases_resumed& message) { resumed(message); },
      [this](const fence_passing& fence) {
        if (phase_ == phase::resuming) {
          early_fences_.push_back(fence);
        } else {
          tell(*context_, fence.back_to, fence_returned{fence.fence});
        }
      },
      [this](const session_superseded&) {
        if (phase_ == phase::closed) return;
        superseded_ = true;
        wait_no_more();
        close(protocol::close_code::superseded, "A newer session speaks for this holder.");
      },
      [this](const hello_due&) {
        if (phase_ == phase::before_hello) {
          close(protocol::close_code::policy, "No Hello came in time.");
        }
      },
      [this](const heartbeat_due&) { beat(); },
      [this](const drain_session& drain) {
        if (phase_ != phase::open) return;
        draining_ = true;
        leave_queues();
        outbound_frames said{{{0, protocol::drain{drain.release_by, {}}}}, 0};
        send_out(said);
      },
      [this](const session_forgotten&) {
        if (forgotten_left_ > 0) --forgotten_left_;
        done_if_forgotten();
      },
      [this](const socket_closed&) { socket_gone(); },
      [this](const options_changed& changed) { options_ = changed.options; },
  };
}

void connection_actor::on_exit() {
  self_.who = nullptr;
  session_ = nullptr;
  sink_ = nullptr;
}

void connection_actor::broken(const std::exception_ptr&) {
  if (sink_) sink_->close(protocol::close_code::internal_error, "The coordinator failed.");
}

void connection_actor::claimed() {
  if (phase_ != phase::resuming) return;
  std::vector<std::vector<protocol::running_lease>> by_thread(context_->threads);
  for (auto& lease : std::exchange(running_, {})) {
    by_thread[context_->thread_of({who_.tenant, lease.lease})].push_back(std::move(lease));
  }
  shards_left_ = context_->threads;
  for (std::size_t thread = 0; thread < context_->threads; ++thread) {
    tell(*context_, context_->shards[thread],
         resume_leases{session_, std::move(by_thread[thread])});
  }
}

void connection_actor::resumed(leases_resumed& message) {
  if (phase_ != phase::resuming) return;
  for (std::size_t i = 0; i < message.standings.size(); ++i) {
    auto& standing = message.standings[i];
    note_held(standing, message.queues[i]);
    welcome_.resumed.push_back(std::move(standing));
  }
  std::ranges::move(message.lost, std::back_inserter(welcome_.lost));
  if (--shards_left_ == 0) welcome();
}

void connection_actor::welcome() {
  phase_ = phase::open;
  welcome_.holder = session_->holder;
  welcome_.session_epoch = epoch_;
  welcome_.server_time = context_->clock->now();
  welcome_.frames_in_flight = options_->frames_in_flight;
  welcome_.message_bytes = options_->message_bytes;
  welcome_.heartbeat_interval = options_->heartbeat_interval;
  welcome_.node = options_->node;
  outbound_frames said;
  said.frames.push_back({0, welcome_});
  // A cancel is told again at every reconnect, until it is acknowledged or its lease has ended.
  for (const auto& standing : std::exchange(welcome_, {}).resumed) {
    if (standing.cancel_requested && standing.state == protocol::lease_state::active) {
      said.frames.push_back({0, protocol::cancel_notice{standing}});
    }
  }
  send_out(said);
  for (auto& message : std::exchange(early_, {})) {
    if (phase_ == phase::open) take_open(message);
  }
  for (const auto& fence : std::exchange(early_fences_, {})) {
    tell(*context_, fence.back_to, fence_returned{fence.fence});
  }
}

void connection_actor::send_out(outbound_frames& message) {
  if (phase_ == phase::closed || superseded_) {
    for (const auto& frame : message.frames) {
      if (const auto* offer = std::get_if<protocol::offer>(&frame.body)) withdraw(*offer);
    }
    if (phase_ == phase::closed) return;
  }
  for (auto& frame : message.frames) {
    frame.frame_id = next_frame_id_++;
    follow(frame);
  }
  context_->counters->frames_out.add(static_cast<std::int64_t>(message.frames.size()));
  last_sent_ = context_->clock->now();
  sink_->send(message.frames);
  answered(message.answered);
}

void connection_actor::note_held(const protocol::lease_standing& standing,
                                 const std::string& queue) {
  const auto use = queues_.find(queue);
  const held_lease held{standing.gen, use == queues_.end() ? nullptr : &use->second};
  const std::string_view id = standing.lease.value;
  const auto at = held_.lower_bound(id);
  if (at != held_.end() && at->first.view() == id) {
    at->second = held;
  } else {
    held_.try_emplace(at, lease_name(id), held);
  }
}

void connection_actor::follow(const protocol::coordinator_frame& frame) {
  const auto drop_below = [this](const protocol::lease_standing& s) {
    const auto it = held_.find(std::string_view(s.lease.value));
    if (it == held_.end()) return;
    if (s.gen > it->second.gen || (s.gen == it->second.gen && !protocol::is_live(s.state))) {
      held_.erase(it);
    }
  };
  if (const auto* offer = std::get_if<protocol::offer>(&frame.body)) {
    note_held(offer->standing, offer->queue);
  } else if (const auto* lost = std::get_if<protocol::lease_lost>(&frame.body)) {
    const auto it = held_.find(std::string_view(lost->lost.lease.value));
    if (it != held_.end() && it->second.gen <= lost->lost.gen) held_.erase(it);
  } else if (const auto* verdict = std::get_if<protocol::frame_verdict>(&frame.body)) {
    drop_below(verdict->standing);
  }
}

void connection_actor::withdraw(const protocol::offer& offer) {
  context_->counters->offers_withdrawn.add();
  shard_operation operation;
  operation.key = {who_.tenant, offer.standing.lease};
  operation.ingress = context_->clock->now();
  operation.what.kind = protocol::event_kind::withdraw;
  operation.what.lease = offer.standing.lease;
  const auto& to = context_->shard_for(operation.key);
  tell(*context_, to, std::move(operation));
}

void connection_actor::in_flight(std::int64_t by) {
  in_flight_ += by;
  context_->counters->frames_in_flight.add(by);
}

void connection_actor::answered(std::int64_t frames) {
  in_flight(-frames);
  if (paused_ && in_flight_ <= options_->frames_in_flight / 2) {
    paused_ = false;
    silent_beats_ = 0;
    sink_->pause_reading(false);
  }
  if (phase_ == phase::leaving && !superseded_ && in_flight_ <= 0) {
    close(protocol::close_code::goodbye, "Goodbye.");
  }
}

void connection_actor::beat() {
  if (phase_ == phase::closed) return;
  const auto interval = options_->heartbeat_interval;
  delayed_send(this, std::chrono::milliseconds(interval.ms), heartbeat_due{});
  if (phase_ != phase::open) return;
  const auto now = context_->clock->now();
  // While the socket is not read, silence says nothing about the worker; nor does the time of a
  // suspend or a stop of this process: so beats are counted, of which such a time has one.
  if (!paused_ && ++silent_beats_ > 3) {
    close(protocol::close_code::no_heartbeat, "Nothing was heard for three heartbeat intervals.");
    return;
  }
  if (last_sent_ + interval <= now) {
    outbound_frames said{{{0, protocol::server_heartbeat{now}}}, 0};
    send_out(said);
  }
  tell_queues();
}

void connection_actor::tell_queues() {
  if (draining_) return;
  for (auto& [name, use] : queues_) {
    if (use.told) tell_queue(name, use);
  }
}

void connection_actor::tell_queue(const std::string& queue, queue_use& use) {
  if (draining_ || phase_ != phase::open) return;
  session_credit credit;
  credit.session = session_;
  credit.has = use.has;
  credit.sequence = use.sequence;
  credit.slots = use.slots;
  for (const auto& [lease, held] : held_) {
    if (held.queue == &use) credit.held.emplace_back(lease.view());
  }
  use.told = true;
  tell(*context_, context_->shards[context_->thread_of_queue(who_.tenant, queue)],
       for_queue{{who_.tenant, queue}, std::move(credit)});
}

void connection_actor::leave_queues() {
  for (auto& [name, use] : queues_) {
    if (!std::exchange(use.told, false)) continue;
    ++forgotten_left_;
    tell(*context_, context_->shards[context_->thread_of_queue(who_.tenant, name)],
         for_queue{{who_.tenant, name}, session_gone{session_}});
  }
}

void connection_actor::close(protocol::close_code code, std::string_view why) {
  if (phase_ == phase::closed) return;
  if (!refusals_.empty()) {
    outbound_frames said{std::exchange(refusals_, {}), 0};
    send_out(said);
  }
  phase_ = phase::leaving;
  if (session_) {
    wait_no_more();
    leave_queues();
  }
  sink_->close(code, why);
}

void connection_actor::wait_no_more() const {
  if (session_) session_->gone->store(true, std::memory_order_relaxed);
}

void connection_actor::socket_gone() {
  if (phase_ == phase::closed) return;
  phase_ = phase::closed;
  in_flight(-in_flight_);
  for (const auto& fence : std::exchange(early_fences_, {})) {
    tell(*context_, fence.back_to, fence_returned{fence.fence});
  }
  if (session_) {
    wait_no_more();
    leave_queues();
    tell(*context_, context_->registry, leave_holder{session_});
  }
  done_if_forgotten();
}

void connection_actor::done_if_forgotten() {
  if (phase_ != phase::closed || forgotten_left_ > 0) return;
  context_->link->post(context_->thread,
                       [done = context_->connection_done, epoch = epoch_] { done(epoch); });
}

}  // namespace leasehold::actors
