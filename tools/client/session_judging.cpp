// How the coordinator's frames are judged: by what they say and not by when they come [R1].
#include <algorithm>

#include "session_core.hpp"

namespace leasehold::client {
namespace {

using protocol::lease_state;
using protocol::reason;

lost_reason reason_of(lease_state state) {
  if (protocol::is_settled(state)) return lost_reason::settled;
  return state == lease_state::revoked ? lost_reason::revoked : lost_reason::expired;
}

lost_reason reason_of(protocol::loss why) {
  switch (why) {
    case protocol::loss::expired:
      return lost_reason::expired;
    case protocol::loss::revoked:
      return lost_reason::revoked;
    case protocol::loss::conflict:
      return lost_reason::conflict;
    case protocol::loss::settled:
      return lost_reason::settled;
  }
  return lost_reason::expired;
}

/// The state that a loss leaves behind, as far as its reason tells.
lease_state state_of(protocol::loss why) {
  switch (why) {
    case protocol::loss::expired:
      return lease_state::expired;
    case protocol::loss::revoked:
    case protocol::loss::conflict:
      return lease_state::revoked;
    case protocol::loss::settled:
      return lease_state::failed;
  }
  return lease_state::expired;
}

/// A refused renew after which the generation goes on to its known end.
bool ends_renewing(reason why) {
  return why == reason::max_lifetime_reached || why == reason::cancel_pending;
}

bool blames_the_clock(reason why) {
  return why == reason::timestamp_in_future || why == reason::timestamp_before_issue;
}

/// A refused renew that says nothing about authority, only about the frame.
bool blames_the_frame(reason why) {
  return blames_the_clock(why) || why == reason::invalid_frame ||
         why == reason::unsupported_frame || why == reason::malformed;
}

}  // namespace

// ---- what is known of a lease ------------------------------------------------------------------

void worker_session::core::remember(const protocol::lease_id& lease) {
  known_order_.push_back(lease);
  for (std::size_t looked = 0; known_.size() > options_.most_remembered && looked < 8; ++looked) {
    const auto oldest = std::move(known_order_.front());
    known_order_.pop_front();
    const auto at = held_.lower_bound({oldest, {}});
    if (at != held_.end() && at->first.lease == oldest) {
      known_order_.push_back(oldest);
    } else {
      known_.erase(oldest);
    }
  }
}

bool worker_session::core::note(const protocol::lease_id& lease, protocol::generation gen,
                                protocol::row_number row, lease_state state) {
  const auto [at, is_new] = known_.try_emplace(lease);
  auto& known = at->second;
  if (gen < known.gen || (gen == known.gen && row < known.row)) return false;
  if (gen > known.gen) known.over_here = false;
  known.gen = gen;
  known.row = row;
  known.state = state;
  if (is_new) remember(lease);
  return true;
}

void worker_session::core::lose_older(local_time now, const protocol::lease_id& lease,
                                      protocol::generation than) {
  for (auto at = held_.lower_bound({lease, {}}); at != held_.end() && at->first.lease == lease;) {
    const auto each = at++;
    if (each->first.gen < than) lose(now, each, lost_reason::expired);
  }
}

bool worker_session::core::observe(local_time now, const protocol::lease_standing& standing) {
  if (standing.lease.empty()) return false;
  if (!note(standing.lease, standing.gen, standing.row, standing.state)) return false;
  lose_older(now, standing.lease, standing.gen);
  const auto at = held_.find({standing.lease, standing.gen});
  if (at == held_.end()) return true;
  auto& h = at->second;
  h.row = standing.row;
  h.told_until = standing.expires_at;
  const grant what = at->first;
  if (!protocol::is_live(standing.state)) {
    lose(now, at, reason_of(standing.state));
    return true;
  }
  if (standing.cancel_requested) cancel(now, what, h);
  if (standing.state == lease_state::active) activate(now, what, h);
  tell_deadline(what, h);
  return true;
}

// ---- Welcome -----------------------------------------------------------------------------------

void worker_session::core::on(local_time now, const protocol::welcome& what) {
  if (phase_ != phase::greeting) return;
  phase_ = phase::open;
  holder_ = what.holder;
  sending_.epoch = what.session_epoch;
  sending_.server_minus_local_ms = what.server_time.ms - now.ms;
  clock_sampled_at_ = now;
  if (what.heartbeat_interval.ms > 0) heartbeat_interval_ = what.heartbeat_interval;
  notices_.push_back(session_ready{what.holder, what.session_epoch, what.node});
  for (auto& [about, h] : held_) {
    if (h.process) h.process->due = now;
  }
  for (const auto& lost : what.lost) lost_by(now, lost);
  for (const auto& standing : what.resumed) resume(now, standing);
  credit_sequence_ = 0;
  credit_told_.clear();
  next_credit_ = now;
  outbox_.reopen(now, static_cast<std::size_t>(std::max<std::int64_t>(0, what.frames_in_flight)));
  give_credit(now);
}

void worker_session::core::resume(local_time now, const protocol::lease_standing& standing) {
  const grant what{standing.lease, standing.gen};
  const bool mine = held_.contains(what);
  if (!observe(now, standing) || mine) return;
  // An offer that never arrived ends at its ack deadline; there is nothing yet to hand back.
  if (standing.state == lease_state::offered || !protocol::is_live(standing.state)) return;
  known_[what.lease].over_here = true;
  outbox_.add(now, what, frame_about(protocol::event_kind::release, what), usual_patience(), {});
}

void worker_session::core::lost_by(local_time now, const protocol::lost_lease& lost) {
  if (!note(lost.lease, lost.gen, lost.row, state_of(lost.why))) return;
  lose_older(now, lost.lease, lost.gen);
  const auto at = held_.find({lost.lease, lost.gen});
  if (at == held_.end()) {
    known_[lost.lease].over_here = true;
    return;
  }
  at->second.row = lost.row;
  lose(now, at, reason_of(lost.why));
}

// ---- Verdict -----------------------------------------------------------------------------------

void worker_session::core::on(local_time now, const protocol::frame_verdict& what) {
  auto judged = what;
  if (judged.epoch == 0) judged.epoch = sending_.epoch;
  const auto answer = outbox_.judge(now, judged);
  if (!answer) judge_process(now, judged);
  if (answer && !answer->kept) {
    if (answer->content.what.kind == protocol::event_kind::renew)
      answered_renew(now, *answer, what);
    if (answer->content.what.kind == protocol::event_kind::ack) {
      const auto at = held_.find(answer->about);
      if (at != held_.end() && what.decision == protocol::decision::accepted) {
        at->second.authority_from = answer->sent;
      }
    }
  }
  observe(now, what.standing);
  if (answer && !answer->kept) answered_finally(now, *answer, what);
  if (const auto at = answer ? held_.find(answer->about) : held_.end(); at != held_.end()) {
    tell_deadline(at->first, at->second);
  }
}

void worker_session::core::answered_renew(local_time now, const outbox::answered& answer,
                                          const protocol::frame_verdict& what) {
  const auto at = held_.find(answer.about);
  if (at == held_.end() || at->second.stage != stage::active) return;
  auto& h = at->second;
  const auto third = protocol::duration{h.facts.lease_duration.ms / 3};
  if (what.decision == protocol::decision::accepted) {
    h.authority_from = std::max(h.authority_from, answer.sent);
  } else if (what.decision == protocol::decision::ignored) {
    // An earlier sending of it was accepted; which one is not known, so the first one counts.
    h.authority_from = std::max(h.authority_from, answer.first_sent);
  } else if (ends_renewing(what.reason)) {
    h.may_renew = false;
  } else if (blames_the_frame(what.reason)) {
    h.next_renew = now + patience_for(h).first;
    return;
  } else {
    // Refused for good: whatever its reason, this generation is not extended any more.
    const bool goes_on = what.standing.lease == answer.about.lease &&
                         what.standing.gen == answer.about.gen &&
                         protocol::is_live(what.standing.state);
    h.may_renew = false;
    if (!goes_on) lose(now, at, reason_of(what.standing.state));
    return;
  }
  h.next_renew = h.authority_from + jitter_.around(third);
}

void worker_session::core::answered_finally(local_time now, const outbox::answered& answer,
                                            const protocol::frame_verdict& what) {
  const auto at = held_.find(answer.about);
  if (at == held_.end()) return;
  const auto kind = answer.content.what.kind;
  const bool closes = kind == protocol::event_kind::result || kind == protocol::event_kind::release;
  if (closes && at->second.stage == stage::ended) {
    if (blames_the_clock(what.reason) && !std::exchange(at->second.stamped_again, true)) {
      // The reckoning of the coordinator's time was wrong, not the report: it is stamped anew,
      // once.
      outbox_.add(now, answer.about, answer.content, usual_patience(), {});
      return;
    }
    notices_.push_back(job_closed{answer.about, what.decision, what.reason});
    forget(at);
  } else if (kind == protocol::event_kind::ack && at->second.stage == stage::offered &&
             what.decision == protocol::decision::rejected) {
    forget(at);
  }
}

// ---- Offer and what follows --------------------------------------------------------------------

void worker_session::core::refuse_offer(local_time now, const grant& what, std::string why) {
  auto frame = frame_about(protocol::event_kind::decline, what);
  frame.decline_reason = std::move(why);
  known_[what.lease].over_here = true;
  outbox_.add(now, what, std::move(frame), usual_patience(), {});
}

void worker_session::core::on(local_time now, const protocol::offer& what) {
  const grant offered{what.standing.lease, what.standing.gen};
  if (offered.lease.empty() || held_.contains(offered)) return;
  const auto known = known_.find(offered.lease);
  if (known != known_.end() && known->second.gen == offered.gen && known->second.over_here) return;
  if (!note(offered.lease, offered.gen, what.standing.row, what.standing.state)) {
    // Overtaken by other news of the same generation: still good while that news is that it is
    // open.
    if (known->second.gen != offered.gen || known->second.state != lease_state::offered) return;
  }
  lose_older(now, offered.lease, offered.gen);
  const auto queue = std::find_if(options_.queues.begin(), options_.queues.end(),
                                  [&](const queue_slots& q) { return q.queue == what.queue; });
  if (queue == options_.queues.end())
    return refuse_offer(now, offered, "the queue is not taken here");
  if (draining_) return refuse_offer(now, offered, "the worker is draining");
  if (taken(what.queue) >= queue->slots) return refuse_offer(now, offered, "no free slot");
  const auto lower = held_.lower_bound({offered.lease, {}});
  const bool former_stops =
      lower != held_.end() && lower->first.lease == offered.lease && lower->second.work_runs;
  auto& h = held_[offered];
  h.facts = what;
  h.row = what.standing.row;
  h.stage = stage::waiting;
  if (!former_stops) ack(now, offered, h);
}

void worker_session::core::on(local_time now, const protocol::activated& what) {
  observe(now, what.standing);
}

void worker_session::core::on(local_time now, const protocol::cancel_notice& what) {
  const grant about{what.standing.lease, what.standing.gen};
  if (!observe(now, what.standing) || held_.contains(about)) return;
  if (!what.standing.cancel_requested && what.standing.state != lease_state::active) return;
  if (known_[about.lease].over_here) return;
  // Not run here: acknowledged all the same, and nothing else [R3].
  known_[about.lease].over_here = true;
  outbox_.add(now, about, frame_about(protocol::event_kind::cancel_ack, about), usual_patience(),
              {});
}

void worker_session::core::on(local_time now, const protocol::lease_lost& what) {
  lost_by(now, what.lost);
}

void worker_session::core::on(local_time now, const protocol::granted& what) {
  observe(now, what.standing);
}

// ---- the session -------------------------------------------------------------------------------

void worker_session::core::on(local_time now, const protocol::drain& what) {
  if (std::exchange(drained_here_, true)) return;
  leave_by_ = std::max(now, {what.release_by.ms - sending_.server_minus_local_ms});
  notices_.push_back(session_drain{what.where});
  give_credit(now);
}

void worker_session::core::on(local_time now, const protocol::server_heartbeat& what) {
  sample_clock(now, what.server_time);
  say(now, protocol::worker_heartbeat{what.server_time.ms});
}

}  // namespace leasehold::client
