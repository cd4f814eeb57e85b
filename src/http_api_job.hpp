// How jobs, workers and queues are shown as JSON.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "leasehold/actors/gateway.hpp"
#include "leasehold/protocol/dispatch.hpp"
#include "src/problem.hpp"

namespace leasehold::server {

/// Every column of the record under its name in the evidence, what the submitter gave, and where a
/// cancel stands. The payload is for the job's client and its workers alone.
boost::json::object to_json(const actors::lease_view& job, bool with_payload);
boost::json::object to_json(const actors::worker_view& worker);
boost::json::object to_json(const actors::queue_view& queue);
boost::json::object to_json(const protocol::policy& chosen);

/// Where the cancel of a job stands, in one sentence; empty when none was asked for.
std::string cancel_sentence(const protocol::record& job);
/// Whether what a dispatcher did is worth telling beside it: the job has not ended.
bool has_open_cancel(const protocol::record& job);
/// What is dispatched for the cancel of a job that has not ended, and what is waited for.
std::string dispatch_sentence(const protocol::record& job,
                              const protocol::dispatch_record& dispatch);

lease_brief brief_of(const actors::lease_view& job);

}  // namespace leasehold::server
