// How cancellation dispatches and their events are shown. Neither a claim's token nor a process
// handle ever is.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "leasehold/protocol/dispatch.hpp"

namespace leasehold::server {

/// The record without the token of its claim, why it stands there, and what to check.
boost::json::object to_json(const protocol::dispatch_record& record);
boost::json::object to_json(const protocol::dispatch_event& event);

/// An event as a line of evidence, told from a row by its first member, `dispatch_event`.
void append_json_line(std::string& out, const protocol::dispatch_event& event);
/// The same under the columns of the evidence: `at`, `event`, `lease_id`, `job_id` and `generation`
/// say what they say of a row, `reason` has the result; the others are empty.
void append_csv_line(std::string& out, const protocol::dispatch_event& event);

}  // namespace leasehold::server
