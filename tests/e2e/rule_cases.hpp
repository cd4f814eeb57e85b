// A frame for each rule of protocol.md 4, and the answer that the page gives.
#pragma once

#include <string_view>
#include <vector>

#include "rule_scene.hpp"

namespace leasehold::e2e {

struct rule_case {
  /// The id of the rule in the evidence; empty: no lease was touched, so there is no row.
  std::string_view rule;
  /// A claim; its words also name the lease.
  std::string_view name;
  protocol::frame_verdict (*play)(rule_scene&);
  protocol::decision decision;
  protocol::reason reason;
  protocol::reason_class outcome;
};

/// Rules 1 to 16: what holds whatever the kind of frame.
std::vector<rule_case> general_cases();
/// What follows by kind, for offered and active leases.
std::vector<rule_case> offered_cases();
std::vector<rule_case> active_cases();

}  // namespace leasehold::e2e
