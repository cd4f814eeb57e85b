// A lease that is driven event by event, for the tests of single rules.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "leasehold/protocol/rules.hpp"

namespace leasehold::protocol {

/// What a test looks at of a row.
struct seen_row {
  event_kind kind;
  instant at;
  lease_state before;
  lease_state after;
  verdict answer;
  bool derived;
  bool has_input;
};

/// One lease, its policy, and the rows of the last event. Times are in ms; the policy gives round
/// numbers: 50 to ACK, leases of 100, 30 to cancel, a window of 500, 5 of skew.
class rules_scene : public row_sink {
 public:
  rules_scene() {
    chosen.ack_timeout = duration{50};
    chosen.lease_duration = duration{100};
    chosen.cancel_grace = duration{30};
    chosen.reconcile_window = duration{500};
    chosen.max_clock_skew = duration{5};
    chosen.recovery_grace = duration{20};
  }

  virtual ~rules_scene() = default;

  void on_row(const row& what, const record& after) override {
    rows.push_back({what.kind, what.at, what.state_before, after.state, what.answer, what.derived,
                    what.input != nullptr});
  }

  /// Judges an event; yields the answer to it (not to what followed).
  verdict judge(std::int64_t at, const event& what, generation floor = {}) {
    expire(at);
    const auto own = rows.size();
    step(lease, chosen, what, instant{at}, *this, floor);
    return rows.at(own).answer;
  }
  /// Applies what is due; forgets the rows before.
  void expire(std::int64_t at) {
    rows.clear();
    expire_due(lease, chosen, instant{at}, *this);
  }
  void recover(std::int64_t at) {
    rows.clear();
    recover_due(lease, chosen, instant{at}, *this);
    recover_grace(lease, chosen, instant{at}, *this);
    expire_due(lease, chosen, instant{at}, *this);
  }

  // Events of the usual lease: "L", held by "a", of the current generation.
  [[nodiscard]] event frame(event_kind kind, std::int64_t at) const {
    event what;
    what.kind = kind;
    what.lease = lease_id{"L"};
    what.gen = lease.gen;
    what.from = holder{"a"};
    what.sent_at = instant{at};
    return what;
  }
  [[nodiscard]] event sequenced(event_kind kind, std::int64_t at, std::int64_t seq,
                                std::string value = {}) const {
    auto what = frame(kind, at);
    what.seq = sequence{seq};
    what.value = std::move(value);
    return what;
  }
  [[nodiscard]] event result(std::int64_t at, outcome how, std::string detail = {},
                             bool retryable = false) const {
    auto what = frame(event_kind::result, at);
    what.ending = how;
    what.detail = std::move(detail);
    what.retryable = retryable;
    return what;
  }
  [[nodiscard]] static event operation(event_kind kind, const char* who = "",
                                       const char* request = "") {
    event what;
    what.kind = kind;
    what.lease = lease_id{"L"};
    what.from = holder{who};
    what.request = request_id{request};
    return what;
  }

  // The usual history. Each yields the answer.
  verdict offer(std::int64_t at, const char* who = "a") {
    return judge(at, operation(event_kind::offer, who));
  }
  verdict ack(std::int64_t at) { return judge(at, frame(event_kind::ack, at)); }
  verdict acquire(std::int64_t at, const char* who = "a") {
    return judge(at, operation(event_kind::acquire, who));
  }
  verdict cancel(std::int64_t at) { return judge(at, operation(event_kind::cancel)); }
  verdict renew(std::int64_t at, std::int64_t seq) {
    return judge(at, sequenced(event_kind::renew, at, seq));
  }
  verdict progress(std::int64_t at, std::int64_t seq, std::string value = "v") {
    return judge(at, sequenced(event_kind::progress, at, seq, std::move(value)));
  }
  verdict release(std::int64_t at, const char* request = "") {
    auto what = frame(event_kind::release, at);
    what.request = request_id{request};
    return judge(at, what);
  }
  verdict revoke(std::int64_t at, bool force = false) {
    auto what = operation(event_kind::revoke);
    what.force = force;
    return judge(at, what);
  }
  verdict prove(std::int64_t at, std::int64_t gen) {
    auto what = operation(event_kind::prove);
    what.gen = generation{gen};
    return judge(at, what);
  }
  /// Offered at 1000 and ACKed at 1000: authority until 1100.
  void activate() {
    offer(1000);
    ack(1000);
  }

  record lease;
  policy chosen;
  std::vector<seen_row> rows;
};

/// What a test says of an answer.
struct said {
  protocol::decision decision;
  protocol::reason reason;
  rule_id rule;
  friend bool operator==(const said&, const said&) = default;
};
inline said of(const verdict& answer) { return {answer.decision, answer.reason, answer.rule}; }

inline std::ostream& operator<<(std::ostream& out, const said& it) {
  return out << word(it.decision) << ' ' << word(it.reason) << " by " << word(it.rule);
}

}  // namespace leasehold::protocol
