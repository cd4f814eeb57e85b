// What the routes that change something share: their ids, and how an answer of the coordinator is
// shown.
#pragma once

#include "src/http_api_body.hpp"
#include "src/routes.hpp"

namespace leasehold::server {

/// The body's request_id; the call and its problems carry it from then on.
protocol::request_id read_request_id(call& c, field_reader& fields);
/// The body's trace_id, else the header traceparent.
std::string read_trace_id(call& c, field_reader& fields);

/// Submits for a caller that may use the queue.
void submit_and_answer(const call_ptr& c, actors::submit_request what);

void answer_decision(const call_ptr& c, const actors::answer& given);

}  // namespace leasehold::server
