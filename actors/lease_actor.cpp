#include "actors/lease_actor.hpp"

#include <algorithm>
#include <utility>

#include "leasehold/protocol/rules.hpp"

namespace leasehold::actors {

namespace {

using protocol::event_kind;

closing closing_of(const protocol::row& what, const protocol::record& after) {
  switch (what.kind) {
    case event_kind::expire:
      return closing::expired;
    case event_kind::revoke:
      return closing::revoked;
    case event_kind::resolve:
      return closing::conflict;
    case event_kind::cancel:
      return closing::settled;
    case event_kind::withdraw:
      return closing::by_holder;
    default:
      return is_frame(what.kind)                 ? closing::by_holder
             : protocol::is_settled(after.state) ? closing::settled
                                                 : closing::revoked;
  }
}

/// Hears each row while step() runs: encodes it, and keeps what the answers need.
class group_recorder final : public protocol::row_sink {
 public:
  /// `resolves`: a conflict is resolved at once, because the stored record confirms the holder.
  /// `kept`: the lease's policy, which a refused acquire leaves as it is.
  group_recorder(protocol::row_group& rows, decision_group& out, const refusals_seen* refused,
                 std::size_t events, bool resolves, protocol::policy_id kept)
      : rows_(rows),
        out_(out),
        kept_(kept),
        events_(static_cast<std::int64_t>(events)),
        resolves_(resolves) {
    if (refused != nullptr) refused_ = *refused;
  }

  /// The event that is stepped now; its primary row is its answer.
  void stepping(const protocol::event* what, const protocol::record& before) {
    current_ = what;
    was_frozen_ = before.frozen;
    resolved_unseen_ = false;
  }

  void on_row(const protocol::row& what, const protocol::record& after) override {
    const bool own = what.input != nullptr && !what.derived && what.input == current_;
    const bool counted = own && over_budget(what, after);
    const bool unseen = resolved_unseen_ && what.kind == event_kind::resolve && what.derived;
    if (!counted && !unseen) {
      // A refused acquire changes nothing: neither its policy nor its body becomes the lease's.
      if (own && what.kind == event_kind::acquire &&
          what.answer.decision != protocol::decision::accepted) {
        rows_.attach({});
        rows_.judge_by(kept_);
        out_.policy = kept_;
      }
      rows_.on_row(what, after);
      out_.last_at = what.at;
      if (after.known()) protocol::count_reason(out_.counts, what.answer.reason);
    }
    if (what.input != nullptr) {
      auto& list = own ? out_.answers : out_.finals;
      list.push_back({what.input->frame_id, what.input->session_epoch, what.kind,
                      what.answer.decision, what.answer.reason, what.input->gen, what.input->seq,
                      counted, counted ? content_of(*what.input) : 0});
    }
    if (protocol::is_live(what.state_before) && !protocol::is_live(after.state)) {
      out_.closed = closing_of(what, after);
    }
  }

 private:
  /// Whether a refusal's like had its rows of this minute. A report of stopped work never is: a row
  /// of its own may follow from it. Nor is a frame that changes the record.
  bool over_budget(const protocol::row& what, const protocol::record& after) {
    const auto& frame = *what.input;
    const bool refusal = what.answer.decision == protocol::decision::rejected ||
                         what.answer.decision == protocol::decision::ignored;
    if (!refusal || !protocol::is_frame(what.kind)) return false;
    const refusal_key key{frame.gen, what.kind, what.answer.reason};
    auto it = refused_.find(key);
    if (it == refused_.end() && events_ <= refusal_rows_a_minute) return false;
    if (it == refused_.end()) it = refused_.emplace(key, 0).first;
    if (it->second < refusal_rows_a_minute) {
      ++it->second;
      return false;
    }
    if (std::ranges::any_of(after.unproven, [&](const auto& u) { return u.gen == frame.gen; })) {
      return false;
    }
    return what.answer.rule != protocol::rule_id::other_holder_live || leaves_as_it_was();
  }

  /// A conflict freezes the lease, and the resolve that follows it does not: the two are passed
  /// over together, and only where the lease is then as it was.
  bool leaves_as_it_was() {
    resolved_unseen_ = resolves_ && !was_frozen_;
    return was_frozen_ != resolves_;
  }

  static std::uint64_t content_of(const protocol::event& frame) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    const auto mix = [&hash](std::uint64_t part) { hash = (hash ^ part) * 0x100000001b3ULL; };
    mix(static_cast<std::uint64_t>(frame.seq.value));
    mix(static_cast<std::uint64_t>(frame.sent_at.ms));
    for (const auto* text : {&frame.from.value, &frame.value, &frame.detail}) {
      for (const char c : *text) mix(static_cast<unsigned char>(c));
    }
    return hash;
  }

  protocol::row_group& rows_;
  decision_group& out_;
  protocol::policy_id kept_;
  refusals_seen refused_;
  std::int64_t events_;  ///< of the group: a small one cannot spend a budget by itself
  bool resolves_;
  const protocol::event* current_ = nullptr;
  bool was_frozen_ = false;       ///< before the event
  bool resolved_unseen_ = false;  ///< the resolve that follows the event has no row either
};

/// A frame deferred by this group gets its place in the group as a provisional row number.
void number_deferred(protocol::record& r, std::size_t before, std::int64_t rows_so_far) {
  for (auto i = before; i < r.deferred.size(); ++i) r.deferred[i].row = {-rows_so_far};
}

}  // namespace

std::shared_ptr<const protocol::record> settle_rows(std::shared_ptr<const protocol::record> after,
                                                    protocol::row_number first) {
  bool provisional = false;
  for (const auto& d : after->deferred) provisional = provisional || d.row.value < 0;
  if (!provisional) return after;
  auto settled = std::make_shared<protocol::record>(*after);
  for (auto& d : settled->deferred) {
    if (d.row.value < 0) d.row.value = first.value - d.row.value - 1;
  }
  return settled;
}

lease_actor::lease_actor(caf::actor_config& config, std::shared_ptr<const protocol::record> state)
    : lean_actor(config), state_(std::move(state)) {
  // With its control block it fills 256 bytes on x86-64, a size that allocators serve without loss;
  // one member more takes 64 bytes more of each of hundreds of thousands of leases.
  static_assert(sizeof(lean_actor) == sizeof(caf::local_actor) + 2 * sizeof(void*));
  static_assert(sizeof(lease_actor) == sizeof(lean_actor) + sizeof(state_));
}

void lease_actor::receive(message_content& what) {
  if (auto* const work = sole<lease_work>(what)) {
    decide(*work);
  } else if (auto* const undone = sole<lease_undo>(what)) {
    state_ = std::move(undone->before);
  }
}

void lease_actor::decide(lease_work& work) {
  // The next group is the proof that the one before is durable.
  state_ = settle_rows(std::move(state_), work.group_began);
  const auto& policy = *work.policy;

  auto next = std::make_shared<protocol::record>(*state_);
  protocol::row_group rows({work.tenant, next->lease}, work.policy_id, work.last_row,
                           work.events.empty() ? protocol::instant{} : work.stamp, work.fired_at);
  decision_group out;
  const bool resolves = protocol::resolves_conflict(policy, work.stored);
  out.policy = work.asked ? work.asked_id : work.policy_id;
  group_recorder recorder(rows, out, work.refused.get(), work.events.size(), resolves,
                          work.policy_id);
  // A deadline that is due belongs to the grant before and to its policy.
  if (work.events.empty() || work.asked) {
    protocol::expire_due(*next, policy, work.stamp, recorder);
  }
  if (work.asked) rows.judge_by(work.asked_id);
  for (const auto& counted : work.counted) {
    rows.count(counted, work.stamp, *next);
    out.last_at = work.stamp;
    if (next->known()) protocol::count_reason(out.counts, counted.reason, counted.number);
  }
  if (!work.attachment.empty()) rows.attach(std::move(work.attachment));
  for (const auto& what : work.events) {
    const auto deferred_before = next->deferred.size();
    recorder.stepping(&what, *next);
    protocol::step(*next, work.asked ? *work.asked : policy, what, work.stamp, recorder, work.floor,
                   work.stored);
    if (next->deferred.size() > deferred_before) {
      number_deferred(*next, deferred_before, rows.count());
    }
  }
  out.count = rows.count();
  out.rows = rows.take_bytes();
  if (out.count > 0) {
    state_ = next;
    out.after = std::move(next);
  }
  answer(lease_decided{work.entry, std::move(work.events), std::move(out)});
}

}  // namespace leasehold::actors
