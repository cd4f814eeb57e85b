#include "src/dispatch_json.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "leasehold/protocol/evidence.hpp"
#include "src/dispatch_advice.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::dispatch_event;
using protocol::dispatch_record;

json::value word_or_null(protocol::dispatch_result what) {
  const auto text = protocol::word(what);
  return text.empty() ? json::value() : json::value(json::string(text));
}

}  // namespace

json::object to_json(const dispatch_record& record) {
  const auto advice = advice_on(record.status, record.stage, record.last_result);
  return {{"job_id", record.key.lease.value},
          {"generation", record.gen.value},
          {"status", protocol::word(record.status)},
          {"stage", protocol::word(record.stage)},
          {"last_result", word_or_null(record.last_result)},
          {"dispatch_count", record.dispatch_count},
          {"version", record.version},
          {"host", record.host},
          {"lease_owner", record.lease_owner},
          {"lease_expires_at", record.lease_expires_at.ms},
          {"next_attempt_at", record.next_attempt_at.ms},
          {"last_dispatched_at", record.last_dispatched_at.ms},
          {"cancel_requested_at", record.cancel_requested_at.ms},
          {"cancel_deadline", record.cancel_deadline.ms},
          {"created_at", record.created_at.ms},
          {"updated_at", record.updated_at.ms},
          {"why", advice.why},
          {"check", advice.check}};
}

json::object to_json(const dispatch_event& event) {
  return {{"dispatch_event", protocol::word(event.kind)},
          {"at", event.at.ms},
          {"job_id", event.key.lease.value},
          {"generation", event.gen.value},
          {"dispatch_count", event.dispatch_count},
          {"result", word_or_null(event.result)},
          {"version", event.version}};
}

void append_json_line(std::string& out, const dispatch_event& event) {
  out += json::serialize(to_json(event));
  out += '\n';
}

void append_csv_line(std::string& out, const dispatch_event& event) {
  const std::array<std::pair<std::string_view, std::string>, 6> filled{{
      {"at", std::to_string(event.at.ms)},
      {"event", std::string(protocol::word(event.kind))},
      {"lease_id", event.key.lease.value},
      {"job_id", event.key.lease.value},
      {"generation", std::to_string(event.gen.value)},
      {"reason", std::string(protocol::word(event.result))},
  }};
  bool first = true;
  for (const auto columns : {protocol::replay_columns(), protocol::live_columns()}) {
    for (const std::string_view column : columns) {
      if (!first) out += ',';
      first = false;
      for (const auto& [name, value] : filled) {
        if (name == column) out += value;
      }
    }
  }
  out += "\r\n";
}

}  // namespace leasehold::server
