// What the answers of the ladder make of a lease: a second, plain implementation of everything that
// happens to one lease, from the protocol page alone.
#pragma once

#include <iosfwd>
#include <utility>
#include <vector>

#include "tests/protocol/ladder.hpp"

namespace leasehold::ladder {

/// A row of evidence as far as the two implementations are compared.
struct model_row {
  protocol::instant at;
  protocol::event_kind kind;
  answer given;
  protocol::lease_state after;
  friend bool operator==(const model_row&, const model_row&) = default;
};

std::ostream& operator<<(std::ostream& out, const model_row& r);

class model {
 public:
  explicit model(const protocol::policy& chosen) : chosen_(chosen) {}

  void step(const protocol::event& what, protocol::instant now);
  void recover(protocol::instant now);
  void expire_due(protocol::instant now);

  [[nodiscard]] const protocol::record& lease() const noexcept { return lease_; }
  std::vector<model_row> take_rows() { return std::exchange(rows_, {}); }

 private:
  void write(protocol::event_kind kind, const answer& given, protocol::instant at);
  bool one_deadline(protocol::instant now, bool but_not_live);
  void expire_offer(protocol::instant at);
  void expire_authority(protocol::instant at);
  void close_window(protocol::instant at);

  void frame(const protocol::event& what, protocol::instant now);
  void take_accepted(const protocol::event& what, const answer& given, protocol::instant now);
  void take_renew(const protocol::event& what, protocol::instant now);
  void take_release(const protocol::event& what, const answer& given, protocol::instant now);
  void take_result(const protocol::event& what, const answer& given, protocol::instant now);
  void end_as_cancelled(const answer& given, protocol::instant now);
  void take_report(const protocol::event& what, const answer& given);
  void prove_stop(const protocol::event& what, protocol::instant now);
  void activate(protocol::instant now);
  void judge_waiting(protocol::instant now);

  void operation(const protocol::event& what, protocol::instant now);
  void take_operation(const protocol::event& what, const answer& given, protocol::instant now);
  void grant(const protocol::event& what, protocol::instant now);
  void cancel(const answer& given, protocol::instant now);
  void revoke(bool force, protocol::instant now);
  void reconcile(const protocol::event& what);
  void prove(const protocol::event& what, protocol::instant now);

  void settle(protocol::lease_state how);
  void leave_unresolved(protocol::instant since);
  void make_unproven();
  void forget_unproven(protocol::generation gen, protocol::instant now);
  void remember(const protocol::event& what);
  [[nodiscard]] protocol::instant end_of_authority(protocol::instant start) const;
  [[nodiscard]] std::int64_t backoff_ms(std::int64_t n) const;

  protocol::policy chosen_;
  protocol::record lease_;
  std::vector<model_row> rows_;
};

}  // namespace leasehold::ladder
