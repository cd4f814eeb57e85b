// What the routes that change something share: their ids, and how an answer of the coordinator is
// shown.
#pragma once

#include "src/http_api_body.hpp"
#include "src/routes.hpp"

namespace leasehold::server {

/// The body's request_id; the call and its problems carry it from then on.
protocol::request_id read_request_id(call& c, field_reader& fields);
/// The body's trace_id, else, also where that is empty, the header traceparent.
std::string read_trace_id(call& c, field_reader& fields);

/// Submits for a caller that may use the queue.
void submit_and_answer(const call_ptr& c, actors::submit_request what);

/// The id after which the page of a list begins; empty: at the first. A token that is not of this
/// list is refused through the query.
std::string read_place(call& c);

/// Answers what the coordinator made of an operation: a rejection as its problem, else 200, or 201
/// and `location` for what is new. `more` is shown beside the decision.
void answer_with(const call_ptr& c, const actors::answer& given, boost::json::object more,
                 const std::string& location);
/// The same with the job that it was about.
void answer_decision(const call_ptr& c, const actors::answer& given);

}  // namespace leasehold::server
