// What clients and operators do to a job: cancel, redrive, revoke, resolve, reconcile.
#include "src/config_text.hpp"
#include "src/http_api_job.hpp"
#include "src/page_token.hpp"
#include "src/request_ids.hpp"
#include "src/routes_answer.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::event_kind;
using protocol::reason;

constexpr std::size_t largest_detail = 4 << 10;
constexpr std::size_t largest_holder = 200;

/// Reads the body into the event, beside what every operation has.
using read_fields = void (*)(field_reader& fields, protocol::event& what);

void operate(const call_ptr& c, event_kind kind, read_fields read) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  field_reader fields(std::get<json::object>(body));
  protocol::event what;
  what.kind = kind;
  what.lease = protocol::lease_id(c->id);
  what.request = read_request_id(*c, fields);
  what.trace_id = read_trace_id(*c, fields);
  read(fields, what);
  if (auto fault = fields.fault()) return c->refuse(*fault);
  with_job(c, [c, what](const actors::lease_view&) {
    c->api->gateway->operate(c->key(), what,
                             [c](const actors::answer& given) { answer_decision(c, given); });
  });
}

/// Why somebody did it: kept in the evidence as the detail of the row.
void read_reason(field_reader& fields, protocol::event& what) {
  what.detail = fields.text("reason", largest_detail).value_or("");
}

void redrive(const call_ptr& c, const actors::lease_view& old, actors::submit_request what) {
  if (!protocol::is_settled(old.state->state)) {
    problem p;
    p.reason = reason::not_settled;
    p.lease = brief_of(old);
    return c->refuse(std::move(p));
  }
  auto given = std::move(what.spec);
  what.spec = *old.spec;
  what.spec.not_before = {};
  what.spec.not_after = {};
  what.spec.request = std::move(given.request);
  what.spec.trace_id = std::move(given.trace_id);
  what.spec.redrive_of = old.state->job;
  what.spec.submitted_by = c->who.name;
  submit_and_answer(c, std::move(what));
}

}  // namespace

protocol::request_id read_request_id(call& c, field_reader& fields) {
  auto given = fields.text("request_id", 64);
  if (!given) return {};
  if (!is_request_id(*given)) {
    fields.refuse("request_id must have 1 to 64 printable characters.");
    return {};
  }
  c.request_id = *given;
  return protocol::request_id(std::move(*given));
}

std::string read_trace_id(call& c, field_reader& fields) {
  auto given = fields.text("trace_id", 55);
  if (!given || given->empty()) return c.trace_id;
  if (!is_trace_id(*given)) {
    fields.refuse("trace_id must be a W3C traceparent, or empty.");
  } else {
    c.trace_id = std::move(*given);
  }
  return c.trace_id;
}

void submit_and_answer(const call_ptr& c, actors::submit_request what) {
  if (!c->who.may_use_queue(what.spec.queue)) {
    return c->refuse(reason::forbidden, "This queue is not granted to the credential.");
  }
  if (c->api->shared.unready() == reason::draining) return c->refuse(reason::draining);
  c->api->gateway->submit(std::move(what),
                          [c](const actors::answer& given) { answer_decision(c, given); });
}

std::string read_place(call& c) {
  const auto token = c.query.text("page_token", 512);
  if (!token) return {};
  auto id = read_page_token(c.who.tenant, *token);
  if (!id) c.query.refuse("page_token takes a next_page_token of this list, as it was given.");
  return std::move(id).value_or("");
}

void answer_with(const call_ptr& c, const actors::answer& given, json::object more,
                 const std::string& location) {
  if (given.decision == protocol::decision::rejected) {
    problem p;
    p.reason = given.reason;
    p.retry_after = given.retry_after;
    if (given.lease) p.lease = brief_of(*given.lease);
    return c->refuse(std::move(p));
  }
  json::object body{{"decision", protocol::word(given.decision)},
                    {"reason", protocol::word(given.reason)},
                    {"request_id", c->request_id}};
  for (auto& each : more) body[each.key()] = std::move(each.value());
  http_response out;
  out.status = given.created ? 201 : protocol::http_status_of(given.decision, given.reason);
  out.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  if (given.created && given.lease) out.headers.emplace_back("Location", location);
  out.body = json::serialize(body) + "\n";
  c->reply(std::move(out));
}

void answer_decision(const call_ptr& c, const actors::answer& given) {
  json::object more{{"job", nullptr}};
  std::string location;
  if (given.lease) {
    more["job"] = to_json(*given.lease, false);
    location = "/v1/jobs/" + given.lease->state->job.value;
  }
  answer_with(c, given, std::move(more), location);
}

void serve_cancel(const call_ptr& c) { operate(c, event_kind::cancel, read_reason); }

void serve_revoke(const call_ptr& c) {
  operate(c, event_kind::revoke, [](field_reader& fields, protocol::event& what) {
    what.force = fields.toggle("force").value_or(false);
    read_reason(fields, what);
  });
}

void serve_resolve(const call_ptr& c) {
  operate(c, event_kind::resolve, [](field_reader& fields, protocol::event& what) {
    what.from = protocol::holder(fields.text("holder", largest_holder).value_or(""));
    read_reason(fields, what);
  });
}

void serve_reconcile(const call_ptr& c) {
  operate(c, event_kind::reconcile, [](field_reader& fields, protocol::event& what) {
    const std::string word = fields.text("outcome", 16).value_or("");
    const auto known = protocol::outcome_from_word(word);
    if (known != protocol::outcome::failed && known != protocol::outcome::cancelled) {
      fields.refuse("outcome must be failed or cancelled.");
    }
    what.ending = known.value_or(protocol::outcome::none);
    what.detail = fields.text("detail", largest_detail).value_or("");
  });
}

void serve_redrive(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  field_reader fields(std::get<json::object>(body));
  actors::submit_request what;
  what.tenant = c->who.tenant;
  what.spec.request = read_request_id(*c, fields);
  what.spec.trace_id = read_trace_id(*c, fields);
  if (auto id = fields.text("job_id", 128)) {
    if (!is_id(*id)) fields.refuse("job_id must have 1 to 128 of A-Z a-z 0-9 . _ : -");
    what.job = protocol::job_id(std::move(*id));
  }
  if (auto fault = fields.fault()) return c->refuse(*fault);
  with_job(c, [c, what](const actors::lease_view& old) { redrive(c, old, what); });
}

}  // namespace leasehold::server
