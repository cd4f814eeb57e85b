// Walks every reachable state of one job under small budgets and watches each transition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leasehold/protocol/rules.hpp"
#include "tests/protocol/explorer_set.hpp"
#include "tests/protocol/property_streams.hpp"
#include "tests/protocol/property_watch.hpp"

namespace leasehold {

/// What may still happen. It is part of a state: with less left, less can be reached.
struct budget {
  int grants = 2;
  int frames = 5;
  int cancels = 1;
  int revokes = 1;
  int others = 0;      ///< resolve, reconcile, prove, withdraw
  int recoveries = 0;  ///< restarts of the coordinator
};

/// Depth first, each state once: since the budgets belong to the state, the order of the walk does
/// not change what is reached, and the path to a broken state is at hand.
class explorer {
 public:
  explicit explorer(const protocol::policy& chosen);

  /// Walks everything that can be reached from an unknown lease, or up to the first complaint.
  void walk(const budget& left);

  [[nodiscard]] std::int64_t states() const noexcept {
    return static_cast<std::int64_t>(seen_.size());
  }
  [[nodiscard]] std::int64_t transitions() const noexcept { return transitions_; }
  /// What was wrong and how it was reached; empty when nothing was.
  [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
  /// States in which the lease was in this state of the protocol.
  [[nodiscard]] std::int64_t states_in(protocol::lease_state s) const;

 private:
  struct state {
    protocol::record lease;
    budget left;
    protocol::instant now;
  };

  void visit(const state& from);
  void let_time_pass(const state& from);
  void operations(const state& from);
  void frames(const state& from);
  void other_operations(const state& from);
  void recover(const state& from);
  void try_event(const state& from, const protocol::event& what, const budget& left);
  void begin(const state& from, const budget& left, protocol::instant now);
  void go_on(const protocol::event& what);
  bool first_time(const state& s);

  protocol::policy chosen_;
  state next_;  ///< where a transition leads; kept, so that its memory is used again
  safety_watch watch_;
  hash_set seen_;
  std::vector<protocol::event> frames_;
  std::vector<moment> path_;
  std::vector<std::int64_t> words_;
  std::vector<std::int64_t> by_state_;
  std::int64_t transitions_ = 0;
  std::string complaint_;
};

}  // namespace leasehold
