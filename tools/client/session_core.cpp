// The life of a session: its socket, its credit and its clock. The life of a grant stands in
// session_grants.cpp; how the coordinator's frames are judged in session_judging.cpp.
#include "session_core.hpp"

#include <algorithm>
#include <utility>

namespace leasehold::client {
namespace {

/// A better estimate of the coordinator's clock replaces an older, lower one; after this it is
/// taken anyway, so that two clocks that run apart do not add up.
constexpr protocol::duration clock_sample_age{60000};
constexpr std::int64_t silent_intervals = 3;
/// The highest member of CoordinatorFrame.body that this client knows.
constexpr std::int64_t highest_frame_kind = 10;

void earliest(std::optional<local_time>& next, local_time candidate) {
  if (!next || candidate < *next) next = candidate;
}

}  // namespace

worker_session::core::core(session_options options)
    : options_(std::move(options)),
      jitter_(options_.jitter_seed),
      outbox_(options_.most_in_flight, jitter_) {}

// ---- the socket --------------------------------------------------------------------------------

void worker_session::core::open(local_time now) {
  if (phase_ == phase::stopped) return;
  phase_ = phase::greeting;
  sending_.last_frame_id = 0;
  opened_at_ = last_heard_ = now;
  early_.clear();
  out_.clear();
  drained_here_ = false;
  protocol::hello hello{.incarnation = options_.incarnation,
                        .client_name = options_.client_name,
                        .client_version = options_.client_version,
                        .queues = {},
                        .running = {},
                        .highest_frame_kind = highest_frame_kind};
  for (const auto& queue : options_.queues) hello.queues.push_back({queue.queue, queue.labels});
  for (const auto& [what, h] : held_) {
    const bool runs =
        h.stage == stage::active || h.stage == stage::offered || h.stage == stage::waiting;
    if (runs) hello.running.push_back({what.lease, what.gen, h.row});
  }
  say(now, std::move(hello));
}

void worker_session::core::close(local_time now, std::uint16_t code) {
  if (phase_ == phase::stopped) return;
  phase_ = phase::closed;
  out_.clear();
  early_.clear();
  if (code != static_cast<std::uint16_t>(protocol::close_code::superseded)) return;
  // Somebody else speaks as this process: nothing that it does may count any more.
  for (auto at = held_.begin(); at != held_.end();) lose(now, at++, lost_reason::superseded);
  outbox_.clear();
  held_.clear();
  phase_ = phase::stopped;
  notices_.emplace_back(session_over{over_reason::superseded});
}

void worker_session::core::receive(local_time now, const protocol::coordinator_frame& frame) {
  if (phase_ == phase::closed || phase_ == phase::stopped) return;
  last_heard_ = now;
  const bool greets = std::holds_alternative<protocol::welcome>(frame.body);
  if (phase_ == phase::greeting && !greets) {
    if (early_.size() < options_.most_early) early_.push_back(frame);
    return;
  }
  std::visit([&](const auto& body) { on(now, body); }, frame.body);
  if (greets && phase_ == phase::open) {
    for (const auto& kept : std::exchange(early_, {})) receive(now, kept);
  }
}

void worker_session::core::say(local_time now, decltype(protocol::worker_frame::body) body) {
  (void)now;
  out_.push_back({.frame_id = ++sending_.last_frame_id, .body = std::move(body)});
}

void worker_session::core::over(over_reason why) {
  phase_ = phase::leaving;
  notices_.emplace_back(session_over{why});
}

void worker_session::core::sample_clock(local_time now, protocol::instant server_time) {
  const auto sample = server_time.ms - now.ms;
  const bool old = now > clock_sampled_at_ + clock_sample_age;
  if (sample <= sending_.server_minus_local_ms && !old) return;
  sending_.server_minus_local_ms = sample;
  clock_sampled_at_ = now;
}

// ---- the program -------------------------------------------------------------------------------

void worker_session::core::drain(local_time now) {
  draining_ = true;
  if (phase_ == phase::open) give_credit(now);
}

void worker_session::core::goodbye(local_time now) {
  draining_ = true;
  protocol::goodbye last;
  for (const auto& [what, h] : held_) {
    const bool open =
        h.stage == stage::active || h.stage == stage::offered || h.stage == stage::waiting;
    if (open && !h.work_runs) last.releases.push_back({what.lease, what.gen, h.row});
  }
  if (phase_ == phase::open) {
    flush(now);
    say(now, std::move(last));
  }
  over(over_reason::goodbye);
}

// ---- credit ------------------------------------------------------------------------------------

std::int64_t worker_session::core::taken(std::string_view queue) const {
  return std::count_if(held_.begin(), held_.end(), [&](const auto& each) {
    return each.second.facts.queue == queue && each.second.stage != stage::ended;
  });
}

/// What work of lost grants still occupies is not on offer: the coordinator does not count it.
std::int64_t worker_session::core::slots_of(const queue_slots& queue) const {
  if (draining_ || drained_here_) return 0;
  const auto stopping = std::count_if(held_.begin(), held_.end(), [&](const auto& each) {
    return each.second.facts.queue == queue.queue && each.second.stage == stage::lost;
  });
  return std::max<std::int64_t>(0, queue.slots - stopping);
}

void worker_session::core::give_credit(local_time now) {
  for (const auto& queue : options_.queues) {
    const auto slots = slots_of(queue);
    const auto told = credit_told_.find(queue.queue);
    if (now < next_credit_ && told != credit_told_.end() && told->second == slots) continue;
    credit_told_[queue.queue] = slots;
    say(now, protocol::credit{.epoch = sending_.epoch,
                              .seq = {++credit_sequence_},
                              .queue = queue.queue,
                              .slots = slots});
  }
  if (now >= next_credit_) next_credit_ = now + options_.credit_interval;
}

// ---- time --------------------------------------------------------------------------------------

void worker_session::core::tick(local_time now) {
  if (phase_ == phase::stopped) return;
  tick_grants(now);
  tick_session(now);
  if (phase_ == phase::open) flush(now);
}

void worker_session::core::tick_session(local_time now) {
  if (phase_ == phase::greeting && now >= opened_at_ + options_.welcome_timeout) {
    over(over_reason::no_welcome);
  }
  if (phase_ != phase::open) return;
  if (now >= last_heard_ + protocol::duration{heartbeat_interval_.ms * silent_intervals}) {
    over(over_reason::silent);
  } else if (drained_here_ && (held_.empty() || now >= leave_by_)) {
    over(over_reason::moved);
  } else if (now >= next_credit_) {
    give_credit(now);
  }
}

void worker_session::core::flush(local_time now) {
  outbox_.flush(now, sending_, out_, [&](const grant& what, protocol::instant sent_at) {
    const auto at = held_.find(what);
    if (at == held_.end()) return;
    at->second.last_sent = protocol::later(at->second.last_sent, sent_at);
    if (at->second.stage == stage::offered && at->second.authority_from == local_time{}) {
      at->second.authority_from = now;
    }
  });
}

std::optional<local_time> worker_session::core::next_tick() const {
  std::optional<local_time> next;
  if (phase_ == phase::stopped) return next;
  if (phase_ == phase::greeting) next = opened_at_ + options_.welcome_timeout;
  if (phase_ == phase::open) {
    next = std::min(next_credit_,
                    last_heard_ + protocol::duration{heartbeat_interval_.ms * silent_intervals});
    if (const auto due = outbox_.next_due()) earliest(next, *due);
    if (drained_here_) earliest(next, leave_by_);
  }
  for (const auto& [what, h] : held_) {
    if (h.stage != stage::active) continue;
    earliest(next, deadline_of(h));
    if (h.may_renew && !outbox_.has(what, protocol::event_kind::renew))
      earliest(next, h.next_renew);
    if (h.newest_progress && !outbox_.has(what, protocol::event_kind::progress)) {
      earliest(next, h.next_progress);
    }
    if (h.process && phase_ == phase::open) earliest(next, h.process->due);
  }
  return next;
}

}  // namespace leasehold::client
