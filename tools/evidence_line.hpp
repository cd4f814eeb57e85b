// An exported line of evidence back as the row that it was written from.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <variant>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::tools {

/// What is wrong with a line, in one sentence without a full stop.
struct unreadable_line {
  std::string sentence;
};

/// Reads the live and the frame columns; the record's columns follow from the fold and are not
/// read. `force`: of a revoke, which has no column. Not read: the attachment, and the session's
/// epoch, which no line shows.
std::variant<protocol::stored_row, unreadable_line> read_line(const boost::json::object& line,
                                                              bool force);

/// The policy of 16 hex digits; nothing when it is none.
std::optional<protocol::policy_id> read_policy_id(const std::string& digits);

/// The policy that a "policy" line attaches; nothing when a key or value is wrong.
std::optional<protocol::policy> read_attached_policy(const boost::json::object& line);

}  // namespace leasehold::tools
