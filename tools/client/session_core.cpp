// The life of a session and of its grants; how the coordinator's frames are judged stands in
// session_judging.cpp.
#include "session_core.hpp"

#include <algorithm>

#include "leasehold/protocol/codec.hpp"
#include "text.hpp"

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
  notices_.push_back(session_over{over_reason::superseded});
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
  notices_.push_back(session_over{why});
}

void worker_session::core::sample_clock(local_time now, protocol::instant server_time) {
  const auto sample = server_time.ms - now.ms;
  const bool old = now > clock_sampled_at_ + clock_sample_age;
  if (sample <= sending_.server_minus_local_ms && !old) return;
  sending_.server_minus_local_ms = sample;
  clock_sampled_at_ = now;
}

// ---- the program -------------------------------------------------------------------------------

void worker_session::core::progress(local_time now, const grant& what, const std::string& value) {
  const auto at = held_.find(what);
  if (at == held_.end() || at->second.stage != stage::active || at->second.cancel_known) return;
  at->second.newest_progress = clean_text(value, protocol::field_limits{}.value);
  tick_progress(now, what, at->second);
}

void worker_session::core::finish(local_time now, const grant& what, protocol::outcome how,
                                  const std::string& detail, bool retryable) {
  const auto at = held_.find(what);
  if (at == held_.end() || !at->second.work_runs) return;
  auto& h = at->second;
  h.work_runs = false;
  const bool hands_back =
      how == protocol::outcome::none || (how == protocol::outcome::cancelled && !h.cancel_known);
  if (hands_back && h.stage == stage::active && !h.cancel_known) {
    end(now, what, h, frame_about(protocol::event_kind::release, what));
  } else {
    auto closing = frame_about(protocol::event_kind::result, what);
    // After a loss only a result may be sent [R4]; handing back what was cancelled is a cancelled
    // end.
    closing.what.ending = !hands_back      ? how
                          : h.cancel_known ? protocol::outcome::cancelled
                                           : protocol::outcome::failed;
    closing.what.detail = clean_text(detail, protocol::field_limits{}.detail);
    closing.what.retryable =
        closing.what.ending == protocol::outcome::failed && (retryable || hands_back);
    end(now, what, h, std::move(closing));
  }
  ack_waiting(now, what.lease);
}

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

// ---- the life of a grant -----------------------------------------------------------------------

protocol::lease_frame worker_session::core::frame_about(protocol::event_kind kind,
                                                        const grant& what) const {
  protocol::lease_frame frame;
  frame.what.kind = kind;
  frame.what.lease = what.lease;
  frame.what.gen = what.gen;
  frame.what.from = holder_;
  const auto at = held_.find(what);
  if (at != held_.end()) frame.what.trace_id = at->second.facts.trace_id;
  return frame;
}

/// Much less than the term, so that several tries fit into it.
patience worker_session::core::patience_for(const held& h) const {
  const auto term = h.facts.lease_duration.ms;
  return {{std::max<std::int64_t>(20, std::min(term / 10, options_.resend_first.ms))},
          {std::max<std::int64_t>(20, std::min(term / 6, options_.resend_most.ms))}};
}

void worker_session::core::ack(local_time now, const grant& what, held& h) {
  h.stage = stage::offered;
  outbox_.add(now, what, frame_about(protocol::event_kind::ack, what), patience_for(h),
              h.last_sent);
}

void worker_session::core::ack_waiting(local_time now, const protocol::lease_id& lease) {
  for (auto& [what, h] : held_) {
    if (what.lease == lease && h.stage == stage::waiting) ack(now, what, h);
  }
}

local_time worker_session::core::deadline_of(const held& h) const {
  auto until = h.authority_from + h.facts.lease_duration;
  if (h.told_until) until = std::min(until, {h.told_until.ms - sending_.server_minus_local_ms});
  return until - safety_margin(h.facts.lease_duration);
}

void worker_session::core::tell_deadline(const grant& what, held& h) {
  const auto deadline = deadline_of(h);
  if (h.stage != stage::active || !h.work_runs || deadline == h.told_deadline) return;
  h.told_deadline = deadline;
  notices_.push_back(job_deadline{what, deadline});
}

void worker_session::core::activate(local_time now, const grant& what, held& h) {
  if (h.stage != stage::offered) return;
  h.stage = stage::active;
  outbox_.drop(what, protocol::event_kind::ack);
  h.next_renew = h.authority_from + jitter_.around({h.facts.lease_duration.ms / 3});
  if (h.cancel_known) {
    // Nothing was started, so nothing has to be stopped.
    auto closing = frame_about(protocol::event_kind::result, what);
    closing.what.ending = protocol::outcome::cancelled;
    end(now, what, h, std::move(closing));
  } else if (deadline_of(h) <= now) {
    end(now, what, h, frame_about(protocol::event_kind::release, what));
  } else {
    begin_work(now, what, h);
  }
}

void worker_session::core::begin_work(local_time now, const grant& what, held& h) {
  h.work_runs = true;
  h.next_progress = now;
  h.told_deadline = deadline_of(h);
  notices_.push_back(job_start{.what = what,
                               .job = h.facts.job,
                               .queue = h.facts.queue,
                               .payload = std::exchange(h.facts.payload, {}),
                               .attempt = h.facts.attempt,
                               .lease_duration = h.facts.lease_duration,
                               .cancel_grace = h.facts.cancel_grace,
                               .last_progress = std::exchange(h.facts.last_progress, {}),
                               .trace_id = h.facts.trace_id,
                               .deadline = h.told_deadline});
}

void worker_session::core::cancel(local_time now, const grant& what, held& h) {
  if (std::exchange(h.cancel_known, true)) return;
  h.newest_progress.reset();
  outbox_.drop(what, protocol::event_kind::progress);
  if (h.stage == stage::ended) return;
  outbox_.add(now, what, frame_about(protocol::event_kind::cancel_ack, what), patience_for(h),
              h.last_sent);
  if (h.work_runs && h.stage == stage::active) notices_.push_back(job_cancel{what, deadline_of(h)});
}

void worker_session::core::lose(local_time now, held_map::iterator at, lost_reason why) {
  const grant what = at->first;
  auto& h = at->second;
  if (h.stage == stage::lost || h.stage == stage::ended) return;
  outbox_.drop(what, protocol::event_kind::ack);
  outbox_.drop(what, protocol::event_kind::renew);
  outbox_.drop(what, protocol::event_kind::progress);
  h.newest_progress.reset();
  if (h.work_runs) {
    h.stage = stage::lost;
    notices_.push_back(job_lost{what, why});
  } else {
    forget(at);
  }
  if (phase_ == phase::open) give_credit(now);
}

void worker_session::core::end(local_time now, const grant& what, held& h,
                               protocol::lease_frame closing) {
  const bool was_lost = h.stage == stage::lost;
  h.stage = stage::ended;
  const auto* unanswered = outbox_.find(what, protocol::event_kind::progress);
  if (closing.what.kind == protocol::event_kind::result && !was_lost) {
    if (h.newest_progress) {
      closing.last_progress_sequence = {++h.progress_sequence};
      closing.last_progress_value = *std::exchange(h.newest_progress, {});
    } else if (unanswered != nullptr) {
      closing.last_progress_sequence = unanswered->what.seq;
      closing.last_progress_value = unanswered->what.value;
    }
  }
  h.newest_progress.reset();
  outbox_.drop(what, protocol::event_kind::renew);
  outbox_.drop(what, protocol::event_kind::progress);
  outbox_.add(now, what, std::move(closing), usual_patience(), h.last_sent);
  known_[what.lease].over_here |= known_[what.lease].gen == what.gen;
  if (was_lost && phase_ == phase::open) give_credit(now);
}

void worker_session::core::forget(held_map::iterator at) {
  auto& known = known_[at->first.lease];
  if (known.gen == at->first.gen) known.over_here = true;
  outbox_.drop(at->first, protocol::event_kind::cancel_ack);
  held_.erase(at);
}

std::size_t worker_session::core::running() const {
  return static_cast<std::size_t>(
      std::count_if(held_.begin(), held_.end(), [](const auto& h) { return h.second.work_runs; }));
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

void worker_session::core::tick_grants(local_time now) {
  for (auto at = held_.begin(); at != held_.end();) {
    const auto each = at++;
    if (each->second.stage != stage::active) continue;
    if (deadline_of(each->second) <= now) {
      lose(now, each, lost_reason::local_deadline);
    } else {
      tick_renew(now, each->first, each->second);
      tick_progress(now, each->first, each->second);
    }
  }
}

void worker_session::core::tick_renew(local_time now, const grant& what, held& h) {
  if (!h.may_renew || now < h.next_renew || outbox_.has(what, protocol::event_kind::renew)) return;
  auto frame = frame_about(protocol::event_kind::renew, what);
  frame.what.seq = {++h.renew_sequence};
  outbox_.add(now, what, std::move(frame), patience_for(h), h.last_sent);
}

void worker_session::core::tick_progress(local_time now, const grant& what, held& h) {
  if (!h.newest_progress || now < h.next_progress) return;
  if (outbox_.has(what, protocol::event_kind::progress)) return;
  auto frame = frame_about(protocol::event_kind::progress, what);
  frame.what.seq = {++h.progress_sequence};
  frame.what.value = *std::exchange(h.newest_progress, {});
  h.next_progress = now + options_.progress_interval;
  outbox_.add(now, what, std::move(frame), usual_patience(), h.last_sent);
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
  }
  return next;
}

}  // namespace leasehold::client
