// Evidence rows as JSON lines and back. A line has every column of the evidence and whatever else
// the fold needs, so that records can be rebuilt from lines alone.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::storage {

/// Appends one row as one line: the columns of protocol.md 6 in their order, then `force`,
/// `session_epoch`, `derived`, `floor` and `attachment`. Of a submit row that is the job as it was
/// submitted, with the size and SHA-256 of its payload in the payload's place, and `chosen`, its
/// policy; of a base row the lease as a whole.
void append_evidence_line(std::string& out, const protocol::stored_row& r,
                          const protocol::record& after, protocol::row_number deferred_row,
                          const protocol::policy* chosen);

/// A line that was read. What stands in the columns is believed by nobody until it was folded.
struct evidence_line {
  protocol::stored_row row;
  /// Every column with its value as it stood in the line, in the order of the columns.
  std::vector<std::pair<std::string_view, protocol::cell>> cells;
  boost::json::object attachment;
  std::optional<protocol::policy> chosen;  ///< submit and policy rows
};

/// Whether a line of a job's evidence tells of its cancellation dispatch: it is no row, and
/// decides nothing.
bool is_dispatch_line(std::string_view text) noexcept;

/// A line, or the sentence that says what is wrong with it.
std::variant<evidence_line, std::string> read_evidence_line(std::string_view text);

/// A record as `GET /v1/jobs/ID` shows it: the record's columns and what else it shows of them.
boost::json::object record_json(const protocol::record& r);
boost::json::object policy_json(const protocol::policy& chosen);
/// Nothing when a key or a value is not known.
std::optional<protocol::policy> policy_from_json(const boost::json::object& text);

/// True for the columns that show the record after the row; the others tell of the row itself.
bool is_record_column(std::string_view column) noexcept;

}  // namespace leasehold::storage
