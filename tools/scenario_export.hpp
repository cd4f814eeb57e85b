// A live history as a scenario file (protocol.md 7), so that anybody can replay what a coordinator
// decided.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leasehold::tools {

/// Why a history cannot be written as a scenario: one sentence.
struct not_exportable {
  std::string sentence;
};

/// The scenario of one lease. `rows`: all its evidence with the live columns, in any order;
/// `policy`: the keys that its job was submitted with. Rows that follow from others (activation,
/// the final rows of deferred frames, proofs of stopping) are left out: replay makes them again. So
/// are events of dispatch, which are no rows.
/// Deadlines become ticks. `force` of a revoke has no column and is told from what the revoke did.
std::variant<std::string, not_exportable> scenario_of(std::vector<boost::json::object> rows,
                                                      const boost::json::object& policy,
                                                      std::string_view title);

}  // namespace leasehold::tools
