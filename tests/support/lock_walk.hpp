// Everything that can become of a lock: each kind of event, in many variants, on a lock in each
// stage, judged by the rules themselves.
#pragma once

#include <algorithm>
#include <compare>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "leasehold/protocol/rules.hpp"

namespace leasehold::tests {

/// One row of the evidence, as far as tables tell of it.
struct lock_move {
  std::string before;  ///< a stage
  std::string event;
  std::string origin;
  std::string after;
  std::string decision;
  std::string reason;
  friend auto operator<=>(const lock_move&, const lock_move&) = default;
};

/// The state, and whether a conflict is open: "active", "active, frozen"; "unknown" before the
/// first grant.
inline std::string stage_of(const protocol::record& r) {
  if (!r.known()) return "unknown";
  return std::string(protocol::word(r.state)) + (r.frozen ? ", frozen" : "");
}

class lock_walk final : public protocol::row_sink {
 public:
  /// All moves, from every stage that can be reached.
  static std::set<lock_move> all() {
    lock_walk walk;
    for (const protocol::policy& chosen : policies()) walk.walk_with(chosen);
    return std::move(walk.moves_);
  }

 private:
  using record = protocol::record;
  using event = protocol::event;
  using event_kind = protocol::event_kind;
  static constexpr std::int64_t begin = 1000;
  static constexpr std::int64_t ttl = 100;
  static constexpr std::int64_t delay = 40;

  static std::vector<protocol::policy> policies() {
    protocol::policy plain;
    plain.lease_duration = {ttl};
    plain.max_clock_skew = {5};
    auto frozen = plain;
    frozen.on_conflict = protocol::on_conflict::freeze;
    frozen.lock_delay = {delay};
    auto at_cap = plain;
    at_cap.max_lifetime = {ttl};
    return {plain, frozen, at_cap};
  }

  void on_row(const protocol::row& what, const record& after) override {
    lock_move move;
    move.before = stage_of(last_);
    move.event = protocol::word(what.kind);
    const bool own =
        what.input == nullptr || what.answer.rule == protocol::rule_id::resolved_by_record;
    move.origin = protocol::word(own ? protocol::origin::coordinator : what.origin);
    move.after = stage_of(after);
    move.decision = protocol::word(what.answer.decision);
    move.reason = protocol::word(what.answer.reason);
    moves_.insert(std::move(move));
    last_ = after;
  }

  void judge(record& r, const event& what, std::int64_t at) {
    last_ = r;
    step(r, *policy_, what, protocol::instant{at}, *this);
  }

  void walk_with(const protocol::policy& chosen) {
    policy_ = &chosen;
    std::vector<record> reached{record{}};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const record from = reached[i];  // the list grows meanwhile
      go_on(from, reached);
    }
  }

  /// Applies every event to a copy of the record, at each instant that makes a difference.
  void go_on(const record& from, std::vector<record>& reached) {
    const std::int64_t now = std::max(begin, from.acquired_at.ms) + 10;
    std::vector<std::int64_t> instants{now};
    if (const auto due = protocol::next_deadline(from)) instants.push_back(due->ms);
    if (from.next_offer_at.ms > now) instants.push_back(from.next_offer_at.ms);
    for (const std::int64_t at : instants) {
      for (const event& what : events_for(from, at)) {
        record r = from;
        judge(r, what, at);
        keep(std::move(r), reached);
      }
      record r = from;
      last_ = r;
      recover_due(r, *policy_, protocol::instant{at}, *this);
      recover_grace(r, *policy_, protocol::instant{at}, *this);
      keep(std::move(r), reached);
    }
  }

  /// One of each sort is enough to go on from.
  static void keep(record r, std::vector<record>& reached) {
    if (r.gen.value > 2) return;
    const auto is_same_sort = [&](const record& other) {
      return stage_of(other) == stage_of(r) && other.gen == r.gen &&
             other.requests.empty() == r.requests.empty() &&
             (other.next_offer_at > r.expires_at) == (r.next_offer_at > r.expires_at) &&
             (other.renew_sequence.value > 0) == (r.renew_sequence.value > 0);
    };
    if (std::ranges::none_of(reached, is_same_sort)) reached.push_back(std::move(r));
  }

  std::vector<event> events_for(const record& r, std::int64_t now) const {
    std::vector<event> out;
    const auto add = [&](event_kind kind, const std::function<void(event&)>& how = {}) {
      event what;
      what.kind = kind;
      what.lease = protocol::lease_id{"k:1"};
      what.job = protocol::job_id{"t/p/opaque:x//"};
      if (how) how(what);
      out.push_back(std::move(what));
    };
    for (const char* who : {"a/1", "b/1", ""}) {
      for (const char* request : {"", "r1"}) {
        for (const auto kind : {event_kind::acquire, event_kind::resolve}) {
          add(kind, [&](event& e) {
            e.from = protocol::holder{who};
            e.request = protocol::request_id{request};
          });
        }
      }
    }
    for (const bool force : {false, true}) {
      for (const char* request : {"", "r2"}) {
        add(event_kind::revoke, [&](event& e) {
          e.force = force;
          e.request = protocol::request_id{request};
        });
      }
    }
    for (const auto kind : {event_kind::submit, event_kind::offer, event_kind::withdraw,
                            event_kind::cancel, event_kind::reconcile, event_kind::prove}) {
      if (!r.known() && (kind == event_kind::submit || kind == event_kind::offer)) continue;
      add(kind, [&](event& e) {
        e.from = protocol::holder{"a/1"};
        e.gen = r.gen;
        e.ending = protocol::outcome::failed;
      });
    }
    add_frames(r, now, add);
    return out;
  }

  template <class Add>
  static void add_frames(const record& r, std::int64_t now, const Add& add) {
    for (const auto kind :
         {event_kind::ack, event_kind::decline, event_kind::renew, event_kind::progress,
          event_kind::cancel_ack, event_kind::result, event_kind::release}) {
      for (const std::int64_t gen : {r.gen.value - 1, r.gen.value, r.gen.value + 1}) {
        for (const char* who : {"a/1", "b/1"}) {
          for (const std::int64_t sent : {now, now + 6, std::int64_t{1}, std::int64_t{0}}) {
            for (const std::int64_t newer : {2, 0, -1}) {
              // Only a renew is told apart by its sequence; a release, here, by its request.
              if (kind != event_kind::renew && newer != 2 &&
                  (kind != event_kind::release || newer < 0)) {
                continue;
              }
              add(kind, [&](event& e) {
                e.gen = {gen};
                e.from = protocol::holder{who};
                e.seq = {r.renew_sequence.value + newer};
                e.sent_at = {sent};
                e.ending = protocol::outcome::success;
                if (kind == event_kind::release && newer == 0) {
                  e.request = protocol::request_id{"r3"};
                }
              });
            }
          }
        }
      }
    }
  }

  std::set<lock_move> moves_;
  record last_;
  const protocol::policy* policy_ = nullptr;
};

}  // namespace leasehold::tests
