// The life of a grant: from its offer through the work to its final answer.
#include <algorithm>
#include <utility>

#include "leasehold/protocol/codec.hpp"
#include "session_core.hpp"
#include "text.hpp"

namespace leasehold::client {

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

// ---- what the program says of it ---------------------------------------------------------------

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

// ---- time --------------------------------------------------------------------------------------

void worker_session::core::tick_grants(local_time now) {
  for (auto at = held_.begin(); at != held_.end();) {
    const auto each = at++;
    if (each->second.stage != stage::active) continue;
    if (deadline_of(each->second) <= now) {
      lose(now, each, lost_reason::local_deadline);
    } else {
      tick_renew(now, each->first, each->second);
      tick_progress(now, each->first, each->second);
      tick_process(now, each->first, each->second);
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

}  // namespace leasehold::client
