// What a worker says: each frame is checked for who speaks, then grouped with the others of its
// lease, so that a message costs one hand-over to each thread it concerns.
#include <algorithm>
#include <utility>

#include "actors/acquire.hpp"
#include "actors/connection_actor.hpp"
#include "leasehold/actors/lock_limits.hpp"

namespace leasehold::actors {

namespace {

bool is_incarnation(const std::string& text) {
  return text.size() == 32 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

void connection_actor::take(inbound_message& message) {
  silent_beats_ = 0;
  context_->counters->frames_in.add(static_cast<std::int64_t>(message.message.frames.size()));
  switch (phase_) {
    case phase::before_hello: {
      auto& frames = message.message.frames;
      if (frames.empty() && !message.message.unreadable.empty()) {
        const auto& bad = message.message.unreadable.front();
        refuse(bad.frame_id, bad.reason);
        close(protocol::close_code::protocol_error, "Hello cannot be read: " + bad.sentence);
        return;
      }
      auto* first = frames.empty() ? nullptr : std::get_if<protocol::hello>(&frames.front().body);
      if (first == nullptr) {
        close(protocol::close_code::protocol_error, "The first frame of a session is Hello.");
        return;
      }
      const auto frame_id = frames.front().frame_id;
      greet(*first, frame_id);
      frames.erase(frames.begin());
      const bool more = !frames.empty() || !message.message.unreadable.empty();
      if (phase_ == phase::resuming && more) early_.push_back(std::move(message));
      return;
    }
    case phase::resuming:
      if (early_.size() < static_cast<std::size_t>(options_->frames_in_flight)) {
        early_.push_back(std::move(message));
      } else {
        close(protocol::close_code::policy, "Too many frames before Welcome.");
      }
      return;
    case phase::open:
      take_open(message);
      return;
    case phase::leaving:
      for (const auto& frame : message.message.frames) {
        if (superseded_) refuse(frame.frame_id, protocol::reason::session_superseded);
      }
      hand_over(message.ingress);
      return;
    case phase::closed:
      return;
  }
}

void connection_actor::take_open(inbound_message& message) {
  for (const auto& bad : message.message.unreadable) {
    context_->counters->bad_frames.add();
    refuse(bad.frame_id, bad.reason);
  }
  for (auto& frame : message.message.frames) {
    const auto id = frame.frame_id;
    if (auto* lease = std::get_if<protocol::lease_frame>(&frame.body)) {
      route(*lease, id);
    } else if (auto* wanted = std::get_if<protocol::acquire>(&frame.body)) {
      take_acquire(*wanted, id, message.ingress);
    } else if (const auto* stop = std::get_if<protocol::stop_waiting>(&frame.body)) {
      take_stop(*stop, id);
    } else if (auto* named = std::get_if<protocol::process_registration>(&frame.body)) {
      take_process(*named, id, message.ingress);
    } else if (const auto* credit = std::get_if<protocol::credit>(&frame.body)) {
      take_credit(*credit, id);
    } else if (const auto* goodbye = std::get_if<protocol::goodbye>(&frame.body)) {
      take_goodbye(*goodbye, id, message);
      return;
    } else if (const auto* again = std::get_if<protocol::hello>(&frame.body)) {
      // The channel may repeat it; another incarnation is another process.
      if (session_->holder.value == who_.name + "/" + again->incarnation) continue;
      close(protocol::close_code::protocol_error, "A session has one Hello and one incarnation.");
      return;
    }
  }
  hand_over(message.ingress);
}

void connection_actor::greet(protocol::hello& hello, std::int64_t frame_id) {
  if (!is_incarnation(hello.incarnation)) {
    refuse(frame_id, protocol::reason::invalid_frame);
    close(protocol::close_code::protocol_error, "Hello's incarnation is 32 lower-case hex digits.");
    return;
  }
  for (auto& queue : hello.queues) {
    if (!who_.may_use_queue(queue.queue)) {
      close(protocol::close_code::policy, "Hello names a queue that this principal may not use.");
      return;
    }
    queues_[queue.queue].has = std::move(queue.has);
  }
  auto session = std::make_shared<session_ref>();
  session->epoch = epoch_;
  session->tenant = who_.tenant;
  session->holder = protocol::holder{who_.name + "/" + hello.incarnation};
  session->where = self_;
  session->who = std::make_shared<const principal>(who_);
  session->gone = std::make_shared<std::atomic<bool>>(false);
  session_ = std::move(session);
  view_.tenant = who_.tenant;
  view_.holder = session_->holder;
  view_.epoch = epoch_;
  view_.client = hello.client_name + " " + hello.client_version;
  view_.connected_at = context_->clock->now();
  running_ = std::move(hello.running);
  phase_ = phase::resuming;
  tell(*context_, context_->registry, claim_holder{session_, view_});
}

void connection_actor::take_credit(const protocol::credit& credit, std::int64_t frame_id) {
  const auto it = queues_.find(credit.queue);
  if (it == queues_.end()) {
    refuse(frame_id, protocol::reason::forbidden);
    return;
  }
  auto& use = it->second;
  if (credit.epoch != epoch_) {
    refuse(frame_id, protocol::reason::session_superseded);
    return;
  }
  // Overtaken by a newer one: it says nothing any more.
  if (credit.seq <= use.sequence) return;
  use.sequence = credit.seq;
  use.slots = std::clamp<std::int64_t>(credit.slots, 0, who_.max_leases);
  tell_queue(credit.queue, use);
}

void connection_actor::take_goodbye(const protocol::goodbye& goodbye, std::int64_t frame_id,
                                    inbound_message& message) {
  leave_queues();
  for (const auto& release : goodbye.releases) {
    protocol::event what;
    what.kind = protocol::event_kind::release;
    what.lease = release.lease;
    what.gen = release.gen;
    what.from = session_->holder;
    what.sent_at = message.ingress;
    what.frame_id = frame_id;
    what.session_epoch = epoch_;
    in_flight(1);
    route_event(std::move(what));
  }
  hand_over(message.ingress);
  phase_ = phase::leaving;
  answered(0);
}

void connection_actor::route(protocol::lease_frame& frame, std::int64_t frame_id) {
  auto& what = frame.what;
  if (!protocol::is_frame(what.kind)) {
    refuse(frame_id, protocol::reason::unsupported_frame, what.lease);
    return;
  }
  if (what.from != session_->holder) {
    context_->counters->refuse(protocol::reason::holder_not_yours);
    refuse(frame_id, protocol::reason::holder_not_yours, what.lease);
    return;
  }
  what.session_epoch = epoch_;
  if (what.kind == protocol::event_kind::result && frame.last_progress_sequence.value > 0) {
    // The last progress travels inside the result and is judged just before it; the result answers.
    protocol::event progress;
    progress.kind = protocol::event_kind::progress;
    progress.lease = what.lease;
    progress.gen = what.gen;
    progress.from = what.from;
    progress.sent_at = what.sent_at;
    progress.seq = frame.last_progress_sequence;
    progress.value = std::move(frame.last_progress_value);
    progress.session_epoch = epoch_;
    progress.trace_id = what.trace_id;
    route_event(std::move(progress));
  }
  what.frame_id = frame_id;
  in_flight(1);
  route_event(std::move(what));
}

std::optional<named_lock> connection_actor::name_of(const protocol::lock_name& typed,
                                                    std::int64_t frame_id) {
  if (!context_->name_lock) {
    refuse(frame_id, protocol::reason::unsupported_frame);
    return std::nullopt;
  }
  auto named = context_->name_lock(who_.tenant, typed);
  auto* lock = std::get_if<named_lock>(&named);
  if (lock == nullptr) {
    refuse(frame_id, protocol::reason::invalid_target);
    return std::nullopt;
  }
  if (!who_.may_use_program(lock->name.program)) {
    refuse(frame_id, protocol::reason::forbidden, lock->lease);
    return std::nullopt;
  }
  return std::move(*lock);
}

void connection_actor::take_acquire(protocol::acquire& wanted, std::int64_t frame_id,
                                    protocol::instant ingress) {
  if (wanted.what.from != session_->holder) {
    refuse(frame_id, protocol::reason::holder_not_yours);
    return;
  }
  if (draining_) {
    refuse(frame_id, protocol::reason::draining);
    return;
  }
  auto lock = name_of(wanted.name, frame_id);
  if (!lock) return;
  acquire_request asked;
  asked.key = {who_.tenant, std::move(lock->lease)};
  asked.canonical = std::move(lock->canonical);
  asked.holder = session_->holder;
  asked.sent_at = wanted.what.sent_at;
  asked.request = std::move(wanted.what.request);
  // Its StopWaiting may have come first.
  if (std::ranges::find(stopped_, frame_id) == stopped_.end()) asked.wait = wanted.wait;
  asked.most_locks = who_.max_leases;
  asked.gone = [gone = session_->gone] { return gone->load(std::memory_order_relaxed); };
  auto& spec = asked.spec;
  spec.name = std::move(lock->name);
  spec.typed = std::move(wanted.name.target);
  spec.policy = options_->lock_policy;
  if (wanted.ttl.ms > 0) spec.policy.lease_duration = wanted.ttl;
  if (wanted.max_lifetime.ms > 0) spec.policy.max_lifetime = wanted.max_lifetime;
  if (wanted.lock_delay.ms > 0) spec.policy.lock_delay = wanted.lock_delay;
  spec.execution_id = std::move(wanted.execution_id);
  spec.trace_id = std::move(wanted.what.trace_id);
  spec.metadata = std::move(wanted.metadata);
  spec.tie = {std::move(wanted.tie_job), wanted.tie_generation};
  if (protocol::find_fault(spec.policy) || wanted.lock_delay > longest_lock_delay) {
    refuse(frame_id, protocol::reason::invalid_policy, asked.key.lease);
    return;
  }
  auto operation = acquire_operation(std::move(asked), *options_, ingress);
  operation.what.frame_id = frame_id;
  operation.what.session_epoch = epoch_;
  operation.session = session_;
  in_flight(1);
  send_acquire(*context_, std::move(operation));
}

/// StopWaiting frames of a session that are remembered, for one that overtakes its Acquire.
constexpr std::size_t most_stopped = 64;

void connection_actor::take_stop(const protocol::stop_waiting& stop, std::int64_t frame_id) {
  auto lock = name_of(stop.name, frame_id);
  if (!lock) return;
  if (stopped_.size() == most_stopped) stopped_.pop_front();
  stopped_.push_back(stop.acquire);
  stop_waiting message{{who_.tenant, std::move(lock->lease)}, session_, stop.acquire};
  const auto& to = context_->shard_for(message.key);
  tell(*context_, to, std::move(message));
}

void connection_actor::take_process(protocol::process_registration& what, std::int64_t frame_id,
                                    protocol::instant ingress) {
  if (what.from != session_->holder) {
    refuse(frame_id, protocol::reason::holder_not_yours, what.lease);
    return;
  }
  if (what.gen.value < 1 || !protocol::is_well_formed(what.process)) {
    refuse(frame_id, protocol::reason::invalid_frame, what.lease);
    return;
  }
  const auto& to = context_->shard_for({who_.tenant, what.lease});
  in_flight(1);
  tell(*context_, to, process_named{session_, std::move(what), frame_id, ingress});
}

void connection_actor::route_event(protocol::event what) {
  const protocol::lease_key key{session_->tenant, what.lease};
  auto& leases = outgoing_[context_->thread_of(key)].leases;
  auto it = std::ranges::find_if(leases, [&](const auto& l) { return l.key == key; });
  if (it == leases.end()) {
    leases.push_back({key, {}});
    it = leases.end() - 1;
  }
  it->frames.push_back(std::move(what));
}

void connection_actor::hand_over(protocol::instant ingress) {
  for (std::size_t thread = 0; thread < outgoing_.size(); ++thread) {
    auto& out = outgoing_[thread];
    if (out.leases.empty()) continue;
    out.session = session_;
    out.ingress = ingress;
    tell(*context_, context_->shards[thread], std::exchange(out, {}));
  }
  if (!refusals_.empty()) {
    outbound_frames said{std::exchange(refusals_, {}), 0};
    send_out(said);
  }
  if (!paused_ && in_flight_ >= options_->frames_in_flight) {
    paused_ = true;
    sink_->pause_reading(true);
  }
}

void connection_actor::refuse(std::int64_t frame_id, protocol::reason why,
                              const protocol::lease_id& lease) {
  context_->counters->refuse(why);
  protocol::frame_verdict verdict;
  verdict.answers = frame_id;
  verdict.epoch = epoch_;
  verdict.reason = why;
  verdict.outcome = protocol::class_of(verdict.decision, why);
  verdict.standing.lease = lease;
  refusals_.push_back({0, std::move(verdict)});
}

}  // namespace leasehold::actors
