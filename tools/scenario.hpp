// Scenario files (protocol.md 7): read strictly, and run on virtual time through the one step
// function of the protocol.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/protocol/evidence.hpp"
#include "leasehold/protocol/rules.hpp"

namespace leasehold::tools {

/// Columns and the values they are expected to have.
using expected_cells = std::vector<std::pair<std::string, protocol::cell>>;

/// One step. `what` is empty for a tick: time passes and nothing else happens.
struct scenario_step {
  protocol::instant at;
  std::optional<protocol::event> what;
  expected_cells expect;

  /// The word of the file.
  [[nodiscard]] std::string_view op() const noexcept;
};

struct scenario {
  std::string name;
  protocol::policy policy;
  std::vector<scenario_step> steps;
  std::vector<std::pair<protocol::lease_id, expected_cells>> final;
};

/// What is wrong with a file and where: one sentence without a full stop.
struct malformed_scenario {
  std::string sentence;
};

/// Reads a file's text. Unknown keys, operations, policy keys and columns, wrong types, a time
/// below 1 or before the step's predecessor, and whatever is not plain JSON make it malformed.
std::variant<scenario, malformed_scenario> read_scenario(std::string_view text);

/// Hears of every row; `step` counts from 1. The references live as long as the call.
using step_listener =
    std::function<void(std::size_t step, const protocol::row& what, const protocol::record& after)>;

/// The leases of one scenario while it runs.
class scenario_run final : private protocol::row_sink {
 public:
  scenario_run(const protocol::policy& chosen, step_listener listener);

  /// Takes the next step: all deadlines that are due before it, then the step itself.
  void take(const scenario_step& next);

 private:
  using deadline = std::pair<protocol::instant, protocol::lease_id>;
  using deadline_rule = void (*)(protocol::record&, const protocol::policy&, protocol::instant,
                                 protocol::row_sink&);

  void on_row(const protocol::row& what, const protocol::record& after) override;
  /// Applies the deadlines due at `now` by (deadline, lease), each dated at itself.
  void pass_deadlines(protocol::instant now, deadline_rule rule);
  void judge(const protocol::event& what, protocol::instant now);
  void recover(protocol::instant now);
  /// Runs a change of one lease and keeps the index of deadlines in step with it.
  template <class Change>
  void change(protocol::record& lease, Change&& apply_it);

  protocol::policy policy_;
  step_listener listener_;
  std::map<protocol::lease_id, protocol::record> leases_;
  std::set<deadline> deadlines_;
  std::size_t step_ = 0;
};

}  // namespace leasehold::tools
