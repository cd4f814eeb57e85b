// Target locks: taken, kept, given back, looked at, and fenced [T].
#include <algorithm>

#include "leasehold/actors/lock_limits.hpp"
#include "src/config_text.hpp"
#include "src/http_api_job.hpp"
#include "src/http_api_lock.hpp"
#include "src/keys/normalise.hpp"
#include "src/lock_fields.hpp"
#include "src/page_token.hpp"
#include "src/routes.hpp"
#include "src/routes_answer.hpp"
#include "src/waiting_call.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::event_kind;
using protocol::reason;

constexpr std::size_t largest_execution_id = 128;
constexpr std::size_t largest_metadata = 4 << 10;
constexpr std::size_t largest_holder = 200;
constexpr std::size_t largest_detail = 4 << 10;
constexpr std::int64_t longest_wait_for_change_ms = 60'000;
constexpr std::int64_t largest_page = 1000;
constexpr std::string_view instance_of_no_name = "default";

// ---- which lock

/// The lock of a canonical key or lease id. Nothing: the call was refused. A key of another tenant
/// names a lock that nobody of this one can have, so it reads as unknown.
std::optional<protocol::lease_key> lock_of_text(const call_ptr& c, const std::string& text) {
  if (text.starts_with("k:") && is_id(text)) {
    return protocol::lease_key{c->who.tenant, protocol::lease_id(text)};
  }
  const auto key = protocol::parse_canonical_key(text);
  if (!key) {
    c->refuse(reason::invalid_target,
              "This is no canonical key; POST /v1/keys:normalize shows the key of a target, and a "
              "path takes it percent-encoded as one segment, or the lock's lease_id.");
    return std::nullopt;
  }
  return protocol::lease_key{c->who.tenant, keys::lock_lease_id(text)};
}

/// Finds the lock for a caller that may use its program, else refuses.
void with_lock(const call_ptr& c, const std::string& text, bool any_program,
               std::function<void(const protocol::lease_key&, const actors::lease_view&)> then) {
  const auto key = lock_of_text(c, text);
  if (!key) return;
  c->api->gateway->find_lease(*key, [c, key = *key, any_program, then = std::move(then)](
                                        const std::optional<actors::lease_view>& found) {
    if (!found || found->lock == nullptr) {
      c->refuse(reason::unknown_lease);
    } else if (!any_program && !c->who.may_use_program(found->lock->name.program)) {
      c->refuse(reason::forbidden, "This program is not granted to the credential.");
    } else {
      then(key, *found);
    }
  });
}

std::string read_lock_text(field_reader& fields) {
  auto lease = fields.text("lease_id", 128);
  auto key = fields.text("key", protocol::largest_canonical_key);
  if (static_cast<bool>(lease) == static_cast<bool>(key)) {
    fields.refuse("Give lease_id or key, one of them.");
  }
  if (lease && !(lease->starts_with("k:") && is_id(*lease))) {
    fields.refuse("lease_id is no lock's: it has the form k: and 64 hex digits.",
                  reason::not_a_lock);
  }
  return lease ? std::move(*lease) : std::move(key).value_or("");
}

// ---- how the coordinator's answer is shown

void answer_lock(const call_ptr& c, const actors::answer& given) {
  json::object more;
  std::string location;
  if (given.granted.value > 0 && given.lease) {
    const auto& now = *given.lease->state;
    more["grant"] = {{"generation", given.granted.value},
                     {"holds", protocol::holds(now, given.granted)}};
  }
  more["lock"] = nullptr;
  if (given.lease && given.lease->lock) {
    more["lock"] = lock_json(*given.lease);
    location = "/v1/locks/" + given.lease->state->lease.value;
  }
  answer_with(c, given, std::move(more), location);
}

// ---- acquire

void read_metadata(field_reader& fields, actors::lock_spec& spec) {
  const json::object* metadata = fields.object("metadata");
  if (metadata == nullptr) return;
  std::size_t size = 0;
  for (const auto& each : *metadata) {
    const json::string* value = each.value().if_string();
    if (each.key().empty() || value == nullptr) {
      fields.refuse("metadata is an object of texts, none of them under an empty name.");
      return;
    }
    size += each.key().size() + value->size();
    spec.metadata[std::string(each.key())] = std::string(*value);
  }
  if (size > largest_metadata) fields.refuse("metadata may have 4096 bytes at most, in all.");
}

void read_tie(field_reader& fields, actors::lock_spec& spec) {
  const json::object* tie = fields.object("tie");
  if (tie == nullptr) return;
  field_reader of(*tie);
  spec.tie.job.value = of.text("job", 128).value_or("");
  spec.tie.gen.value = of.number("generation", 1, protocol::max_number).value_or(0);
  if (!is_id(spec.tie.job.value) || spec.tie.gen.value == 0) {
    of.refuse("tie needs the id of a job and its generation.");
  }
  if (auto fault = of.fault()) fields.refuse(std::move(fault->sentence), fault->reason);
}

void read_times(field_reader& fields, protocol::policy& chosen) {
  const auto read = [&](std::string_view name, std::int64_t lowest, std::int64_t highest,
                        protocol::duration& out) {
    const auto ms = fields.number(name, lowest, highest, reason::invalid_policy);
    if (ms) out = {*ms};
  };
  const auto& term = *protocol::find_policy_key("lease_duration_ms");
  read("ttl_ms", term.lowest, term.highest, chosen.lease_duration);
  read("max_lifetime_ms", 0, protocol::max_number, chosen.max_lifetime);
  read("lock_delay_ms", 0, actors::longest_lock_delay.ms, chosen.lock_delay);
  if (auto fault = protocol::find_fault(chosen)) {
    fields.refuse(std::move(*fault), reason::invalid_policy);
  }
}

std::string read_instance(field_reader& fields) {
  auto instance = fields.text("instance", 128).value_or(std::string(instance_of_no_name));
  if (!is_id(instance)) fields.refuse("instance must have 1 to 128 of A-Z a-z 0-9 . _ : -");
  return instance;
}

// ---- list

/// KIND:VALUE, made canonical; refused through the query.
std::optional<std::pair<protocol::target_kind, std::string>> read_target(query_reader& query) {
  const auto text = query.text("target", protocol::largest_lock_target);
  if (!text) return std::nullopt;
  const auto colon = text->find(':');
  const auto kind = protocol::target_kind_from_word(std::string_view(*text).substr(0, colon));
  if (colon == std::string::npos || !kind) {
    query.refuse("target is written KIND:VALUE, the kind one of host, ip, cidr, url, opaque.");
    return std::nullopt;
  }
  protocol::lock_name name;
  name.program = "any";
  name.kind = *kind;
  name.target = text->substr(colon + 1);
  auto normalised = keys::normalise(name);
  if (auto* refusal = std::get_if<keys::refusal>(&normalised)) {
    query.refuse(refusal->sentence);
    return std::nullopt;
  }
  return std::pair{*kind, std::get<protocol::lock_name>(normalised).target};
}

actors::lock_filter read_filter(call& c) {
  actors::lock_filter filter;
  filter.tenant = c.who.tenant;
  filter.owner = c.query.text("owner", largest_holder);
  filter.program = c.query.text("program", protocol::largest_lock_part);
  filter.target = read_target(c.query);
  if (const auto state = c.query.text("state", 32)) {
    filter.state = protocol::lease_state_from_word(*state);
    if (!filter.state) {
      c.query.refuse("There is no state \"" + config_text::printable(*state) + "\".");
    }
  }
  return filter;
}

// ---- renew, release, revoke, resolve

using read_fields = void (*)(call& c, field_reader& fields, protocol::event& what);

void operate_on_lock(const call_ptr& c, event_kind kind, read_fields read) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  field_reader fields(std::get<json::object>(body));
  const std::string lock = read_lock_text(fields);
  protocol::event what;
  what.kind = kind;
  what.request = read_request_id(*c, fields);
  what.trace_id = read_trace_id(*c, fields);
  read(*c, fields, what);
  if (auto fault = fields.fault()) return c->refuse(*fault);
  if (is_frame(kind) && !what.from.value.starts_with(c->who.name + "/")) {
    return c->refuse(reason::holder_not_yours, "The holder is not the credential's principal.");
  }
  with_lock(c, lock, false,
            [c, what](const protocol::lease_key& key, const actors::lease_view&) mutable {
              what.lease = key.lease;
              c->api->gateway->operate(key, what,
                                       [c](const actors::answer& given) { answer_lock(c, given); });
            });
}

/// What the holder says of itself in a renew or a release.
void read_holder(call& c, field_reader& fields, protocol::event& what) {
  what.from.value = fields.text("holder", largest_holder).value_or("");
  what.gen.value = fields.number("generation", 1, protocol::max_number).value_or(0);
  if (what.from.empty() || what.gen.value == 0)
    fields.refuse("holder and generation must be given.");
  what.sent_at = c.api->gateway->now();
  if (const auto ms = fields.number("sent_at", 1, protocol::max_number)) what.sent_at = {*ms};
}

void read_renew(call& c, field_reader& fields, protocol::event& what) {
  read_holder(c, fields, what);
  what.seq.value = fields.number("sequence", 1, protocol::max_number).value_or(0);
  if (what.seq.value == 0) fields.refuse("sequence must be given: 1, 2, 3 and so on.");
}

void read_resolve(call&, field_reader& fields, protocol::event& what) {
  what.from.value = fields.text("holder", largest_holder).value_or("");
  what.detail = fields.text("detail", largest_detail).value_or("");
}

void read_revoke(call&, field_reader& fields, protocol::event& what) {
  what.force = fields.toggle("force").value_or(false);
  what.detail = fields.text("detail", largest_detail).value_or("");
}

}  // namespace

void serve_acquire(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  field_reader fields(std::get<json::object>(body));
  const auto& chosen = *c->api->shared.chosen->current();
  const protocol::lock_name typed = read_lock_name(fields);
  actors::acquire_request what;
  what.most_locks = c->who.max_leases;
  what.spec.policy = chosen.policy;
  read_times(fields, what.spec.policy);
  read_metadata(fields, what.spec);
  read_tie(fields, what.spec);
  what.spec.execution_id = fields.text("execution_id", largest_execution_id).value_or("");
  what.spec.trace_id = read_trace_id(*c, fields);
  what.request = read_request_id(*c, fields);
  what.wait = {fields.number("wait_ms", 0, chosen.longest_lock_wait.ms).value_or(0)};
  what.holder = protocol::holder(c->who.name + "/" + read_instance(fields));
  if (auto fault = fields.fault()) return c->refuse(*fault);
  auto name = normalise_for(c, typed);
  if (!name) return;
  if (c->api->shared.unready() == reason::draining) return c->refuse(reason::draining);
  what.canonical = protocol::canonical_key(c->who.tenant, *name);
  what.key = {c->who.tenant, keys::lock_lease_id(what.canonical)};
  what.spec.name = std::move(*name);
  what.spec.typed = typed.target;
  what.sent_at = c->api->gateway->now();
  if (what.wait.ms == 0) {
    c->api->gateway->acquire(std::move(what),
                             [c](const actors::answer& given) { answer_lock(c, given); });
    return;
  }
  auto waits = waiting_call::begin(c);
  what.gone = [waits] { return waits->is_gone(); };
  c->api->gateway->acquire(std::move(what), [c, waits](const actors::answer& given) {
    if (waits->end()) answer_lock(c, given);
  });
}

void serve_renew_lock(const call_ptr& c) { operate_on_lock(c, event_kind::renew, read_renew); }
void serve_release_lock(const call_ptr& c) { operate_on_lock(c, event_kind::release, read_holder); }
void serve_revoke_lock(const call_ptr& c) { operate_on_lock(c, event_kind::revoke, read_revoke); }
void serve_resolve_lock(const call_ptr& c) {
  operate_on_lock(c, event_kind::resolve, read_resolve);
}

void serve_lock(const call_ptr& c) {
  const auto what = c->query.text("wait_for", 32);
  const auto wait_ms = c->query.number("wait_ms", 0, longest_wait_for_change_ms);
  const auto generation = c->query.number("generation", 0, protocol::max_number);
  if (what && *what != "change") c->query.refuse("wait_for takes change.");
  if ((wait_ms || generation) && !what) {
    c->query.refuse("wait_ms and generation need wait_for=change.");
  }
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  // The program's grant is asked for first: waiting must not tell when somebody else's lock
  // changes.
  with_lock(c, c->id, false,
            [c, waits = what.has_value(), wait_ms, generation](const protocol::lease_key& key,
                                                               const actors::lease_view& found) {
              if (!waits) return c->answer(200, lock_json(found));
              std::optional<protocol::generation> known;
              if (generation) known = protocol::generation{*generation};
              const protocol::duration wait{wait_ms.value_or(longest_wait_for_change_ms)};
              c->api->gateway->await_change(key, known, c->api->gateway->now() + wait,
                                            [c, call = waiting_call::begin(c)](
                                                const std::optional<actors::lease_view>& changed) {
                                              if (!call->end()) return;
                                              if (!changed || !changed->lock)
                                                return c->refuse(reason::unknown_lease);
                                              c->answer(200, lock_json(*changed));
                                            });
            });
}

void serve_locks(const call_ptr& c) {
  actors::lock_filter filter = read_filter(*c);
  const auto size = c->query.number("page_size", 1, largest_page);
  std::string after = read_place(*c);
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  if (filter.program && !c->who.may_use_program(*filter.program)) {
    return c->refuse(reason::forbidden, "This program is not granted to the credential.");
  }
  c->api->gateway->list_locks(
      std::move(filter), std::move(after), static_cast<std::size_t>(size.value_or(100)),
      [c](const actors::lock_page& page) {
        json::array locks;
        for (const actors::lease_view& lock : page.locks) {
          if (lock.lock && c->who.may_use_program(lock.lock->name.program)) {
            locks.push_back(lock_json(lock));
          }
        }
        c->answer(200,
                  json::object{{"locks", std::move(locks)},
                               {"next_page_token", make_page_token(c->who.tenant, page.next)}});
      });
}

void serve_fence(const call_ptr& c) {
  const auto token = c->query.number("token", 1, protocol::max_number);
  const bool observed = c->query.flag("observed");
  if (!token && !observed) c->query.refuse("Give token=N, observed, or both.");
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  const auto key = lock_of_text(c, c->id);
  if (!key) return;
  c->api->gateway->find_fence(
      *key, [c, key = *key, token, observed](const actors::fence_view& fence) {
        if (!fence.program.empty() && !c->who.may_use_program(fence.program)) {
          return c->refuse(reason::forbidden, "This program is not granted to the credential.");
        }
        json::object body{{"lease_id", key.lease.value}};
        if (token) {
          body["token"] = *token;
          body["live"] = fence.live.value == *token;
        }
        if (observed) body["observed"] = fence.observed.value;
        c->answer(200, body);
      });
}

void with_audited_lock(
    const call_ptr& c,
    std::function<void(const protocol::lease_key&, const actors::lease_view&)> then) {
  with_lock(c, c->id, c->who.has(actors::role::auditor), std::move(then));
}

}  // namespace leasehold::server
