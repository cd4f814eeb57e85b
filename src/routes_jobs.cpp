// Submitting jobs, reading them, waiting for their end.
#include <algorithm>

#include "src/config_text.hpp"
#include "src/http_api_job.hpp"
#include "src/page_token.hpp"
#include "src/routes.hpp"
#include "src/routes_answer.hpp"
#include "src/waiting_call.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::reason;

constexpr std::size_t largest_payload = 64 << 10;
constexpr std::size_t most_labels = 16;
constexpr std::int64_t longest_wait_ms = 60'000;
constexpr std::int64_t largest_page = 1000;

bool is_label_value(std::string_view text) {
  return text.size() <= 128 && config_text::is_utf8(text) &&
         std::ranges::none_of(text, [](char c) { return c >= 0 && (c < ' ' || c == 127); });
}

void read_payload(field_reader& fields, actors::job_spec& spec) {
  auto plain = fields.text("payload", largest_payload);
  const auto encoded = fields.text("payload_base64", (largest_payload + 2) / 3 * 4);
  if (plain && encoded) fields.refuse("Give payload or payload_base64, not both.");
  if (plain) spec.payload = std::move(*plain);
  if (!encoded) return;
  auto decoded = from_base64(*encoded);
  if (!decoded || decoded->size() > largest_payload) {
    fields.refuse("payload_base64 must be padded base64 of at most 65536 bytes.");
  } else {
    spec.payload = std::move(*decoded);
  }
}

void read_labels(field_reader& fields, actors::job_spec& spec) {
  const json::object* labels = fields.object("labels");
  if (labels == nullptr) return;
  if (labels->size() > most_labels) fields.refuse("labels may hold 16 at most.");
  for (const auto& label : *labels) {
    const json::string* value = label.value().if_string();
    if (!is_id(label.key()) || value == nullptr || !is_label_value(*value)) {
      fields.refuse(
          "A label's name has 1 to 128 of A-Z a-z 0-9 . _ : - and its value is a text of at most "
          "128 "
          "bytes without control characters.");
      return;
    }
    spec.labels[std::string(label.key())] = std::string(*value);
  }
}

/// Puts the keys of the body over the policy of the queue.
void read_policy(field_reader& fields, protocol::policy& chosen) {
  const json::object* keys = fields.object("policy");
  if (keys == nullptr) return;
  const auto refuse = [&](std::string sentence) {
    fields.refuse(std::move(sentence), reason::invalid_policy);
  };
  for (const auto& entry : *keys) {
    const protocol::policy_key* key = protocol::find_policy_key(entry.key());
    if (key == nullptr) {
      refuse("The policy has no key \"" + config_text::printable(entry.key(), 64) + "\".");
      return;
    }
    std::variant<std::int64_t, std::string> value;
    if (const auto* number = entry.value().if_int64()) {
      value = *number;
    } else if (const auto* text = entry.value().if_string()) {
      value = std::string(*text);
    } else {
      value = std::string();
    }
    if (!key->set(chosen, value)) {
      refuse(std::string(key->name) + " takes " +
             (key->words.empty() ? "a whole number." : "one of " + std::string(key->words) + "."));
      return;
    }
  }
  if (auto fault = protocol::find_fault(chosen)) refuse(std::move(*fault));
}

std::optional<input_fault> read_submit(call& c, const json::object& body,
                                       actors::submit_request& out) {
  field_reader fields(body);
  actors::job_spec& spec = out.spec;
  out.tenant = c.who.tenant;
  spec.queue = fields.text("queue", 128).value_or("");
  if (!is_id(spec.queue)) fields.refuse("queue must be given: 1 to 128 of A-Z a-z 0-9 . _ : -");
  if (auto id = fields.text("job_id", 128)) {
    if (!is_id(*id)) fields.refuse("job_id must have 1 to 128 of A-Z a-z 0-9 . _ : -");
    if (id->starts_with("k:")) fields.refuse("job_id must not begin with k:, as locks do");
    out.job = protocol::job_id(std::move(*id));
  }
  read_payload(fields, spec);
  read_labels(fields, spec);
  spec.priority = fields.number("priority", -1000, 1000).value_or(0);
  spec.not_before.ms = fields.number("not_before", 0, protocol::max_number).value_or(0);
  spec.not_after.ms = fields.number("not_after", 0, protocol::max_number).value_or(0);
  if (spec.not_after && spec.not_after <= spec.not_before) {
    fields.refuse("not_after must lie behind not_before.");
  }
  spec.policy = c.api->shared.chosen->current()->policy_of(spec.queue);
  read_policy(fields, spec.policy);
  spec.request = read_request_id(c, fields);
  spec.trace_id = read_trace_id(c, fields);
  spec.submitted_by = c.who.name;
  return fields.fault();
}

bool shows_payload(const actors::principal& who) {
  return who.has(actors::role::client) || who.has(actors::role::worker);
}

/// What is dispatched for its cancel stands in tables of its own.
void answer_with_dispatch(const call_ptr& c, const actors::lease_view& job) {
  using found_record = std::optional<protocol::dispatch_record>;
  c->api->shared.store->dispatches().find(
      c->key(), [c, job](const actors::store_result<found_record>& found) {
        c->api->post([c, job, found] {
          auto body = to_json(job, shows_payload(c->who));
          auto sentence = cancel_sentence(*job.state);
          if (const auto* read = std::get_if<found_record>(&found); read == nullptr) {
            sentence += " How its dispatch stands cannot be read just now.";
          } else if (*read) {
            sentence += ' ' + dispatch_sentence(*job.state, **read);
          }
          body["cancel"] = std::move(sentence);
          c->answer(200, body);
        });
      });
}

void answer_job(const call_ptr& c, const std::optional<actors::lease_view>& found) {
  if (!found || found->spec == nullptr) {
    c->refuse(reason::unknown_lease);
  } else if (!c->who.may_use_queue(found->spec->queue)) {
    c->refuse(reason::forbidden, "This queue is not granted to the credential.");
  } else if (has_open_cancel(*found->state)) {
    answer_with_dispatch(c, *found);
  } else {
    c->answer(200, to_json(*found, shows_payload(c->who)));
  }
}

std::optional<input_fault> read_filter(call& c, actors::job_filter& filter) {
  filter.tenant = c.who.tenant;
  filter.queue = c.query.text("queue", 128);
  if (const auto state = c.query.text("state", 32)) {
    filter.state = protocol::lease_state_from_word(*state);
    if (!filter.state)
      c.query.refuse("There is no state \"" + config_text::printable(*state) + "\".");
  }
  for (const std::string& label : c.query.many("label", most_labels)) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos) {
      c.query.refuse("A label is written label=NAME=VALUE.");
    } else {
      filter.labels[label.substr(0, equals)] = label.substr(equals + 1);
    }
  }
  return std::nullopt;
}

}  // namespace

void serve_submit(const call_ptr& c) {
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  actors::submit_request what;
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  if (auto fault = read_submit(*c, std::get<json::object>(body), what)) return c->refuse(*fault);
  submit_and_answer(c, std::move(what));
}

void serve_job(const call_ptr& c) {
  const auto what = c->query.text("wait_for", 32);
  const auto wait_ms = c->query.number("wait_ms", 0, longest_wait_ms);
  if (what && *what != "settled") c->query.refuse("wait_for takes settled.");
  if (wait_ms && !what) c->query.refuse("wait_ms needs wait_for=settled.");
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  if (!is_id(c->id)) return c->refuse(reason::unknown_lease);
  const auto reply = [c](const std::optional<actors::lease_view>& found) { answer_job(c, found); };
  if (!what) return c->api->gateway->find_lease(c->key(), reply);
  const protocol::duration wait{wait_ms.value_or(longest_wait_ms)};
  // The queue's grant is asked for first: waiting must not tell when somebody else's job ends.
  with_job(c, [c, wait](const actors::lease_view&) {
    c->api->gateway->await_settled(
        c->key(), c->api->gateway->now() + wait,
        [c, call = waiting_call::begin(c)](const std::optional<actors::lease_view>& found) {
          if (call->end()) answer_job(c, found);
        });
  });
}

void serve_jobs(const call_ptr& c) {
  actors::job_filter filter;
  read_filter(*c, filter);
  const auto size = c->query.number("page_size", 1, largest_page);
  std::string after = read_place(*c);
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  if (filter.queue && !c->who.may_use_queue(*filter.queue)) {
    return c->refuse(reason::forbidden, "This queue is not granted to the credential.");
  }
  c->api->gateway->list_jobs(
      std::move(filter), std::move(after), static_cast<std::size_t>(size.value_or(100)),
      [c](const actors::job_page& page) {
        json::array jobs;
        for (const actors::lease_view& job : page.jobs) {
          if (!c->who.may_use_queue(job.spec->queue)) continue;
          jobs.push_back(to_json(job, false));
        }
        c->answer(200,
                  json::object{{"jobs", std::move(jobs)},
                               {"next_page_token", make_page_token(c->who.tenant, page.next)}});
      });
}

}  // namespace leasehold::server
