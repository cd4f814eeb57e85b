// Cancellation dispatches over HTTP: the list, one with its events, and what operators do to one.
#include <array>
#include <utility>

#include "src/config_text.hpp"
#include "src/dispatch_json.hpp"
#include "src/page_token.hpp"
#include "src/request_ids.hpp"
#include "src/routes.hpp"
#include "src/routes_answer.hpp"
#include "src/routes_dispatches.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using actors::dispatch_store;
using actors::store_error;
using protocol::dispatch_event;
using protocol::dispatch_record;
using protocol::reason;

constexpr std::size_t largest_reason = std::size_t{4} << 10;
constexpr std::int64_t default_page = 32;
constexpr std::size_t longest_token = 1024;

void refuse(const call_ptr& c, const store_error& fault) {
  if (fault.what == store_error::kind::busy) {
    return c->refuse(reason::rate_limited, "Too many calls wait for the dispatches; ask again.");
  }
  c->api->shared.lines->write(log_level::error, "reading dispatches failed",
                              {{"what", fault.sentence}});
  c->refuse(
      fault.what == store_error::kind::corrupt ? reason::internal_error : reason::store_unavailable,
      "The dispatches cannot be read now.");
}

/// Page tokens of this list are of no other one.
protocol::tenant_id pages_of(const call& c) {
  return protocol::tenant_id("dispatches of " + c.who.tenant.value);
}

actors::dispatch_cursor read_cursor(call& c) {
  const auto token = c.query.text("page_token", longest_token);
  if (!token) return {};
  const auto text = read_page_token(pages_of(c), *token);
  auto after = text ? from_base64(*text) : std::nullopt;
  if (!after) c.query.refuse("page_token takes a next_page_token of this list, as it was given.");
  return {std::move(after).value_or("")};
}

actors::dispatch_query read_query(call& c) {
  actors::dispatch_query what;
  what.tenant = c.who.tenant;
  for (const std::string& word : c.query.many("status", protocol::all_dispatch_statuses.size())) {
    const auto status = protocol::dispatch_status_from(word);
    if (status) {
      what.statuses.push_back(*status);
    } else {
      c.query.refuse("There is no status \"" + config_text::printable(word, 64) + "\".");
    }
  }
  if (const auto word = c.query.text("stage", 32)) {
    what.stage = protocol::dispatch_stage_from(*word);
    if (!what.stage) c.query.refuse("stage takes stream or process.");
  }
  const auto most = static_cast<std::int64_t>(actors::most_dispatches);
  what.limit =
      static_cast<std::size_t>(c.query.number("page_size", 1, most).value_or(default_page));
  what.from = read_cursor(c);
  return what;
}

void answer_page(const call_ptr& c, const std::vector<dispatch_record>& records,
                 const std::optional<actors::dispatch_cursor>& next) {
  json::array shown;
  for (const auto& record : records) shown.push_back(to_json(record));
  const std::string token = next ? make_page_token(pages_of(*c), to_base64(next->after)) : "";
  c->answer(200, json::object{{"dispatches", std::move(shown)}, {"next_page_token", token}});
}

/// Which of the records are of jobs whose queue the caller may use; an auditor sees all.
void with_permitted(const call_ptr& c, std::vector<dispatch_record> found,
                    std::function<void(const std::vector<dispatch_record>&)> then) {
  if (found.empty() || c->who.has(actors::role::auditor)) return then(found);
  struct sieve {
    std::vector<dispatch_record> all;
    std::vector<bool> passes;
    std::size_t waiting;
    std::function<void(const std::vector<dispatch_record>&)> then;
  };
  auto one = std::make_shared<sieve>();
  one->all = std::move(found);
  one->passes.resize(one->all.size());
  one->waiting = one->all.size();
  one->then = std::move(then);
  for (std::size_t i = 0; i < one->all.size(); ++i) {
    c->api->gateway->find_lease(
        one->all[i].key, [c, one, i](const std::optional<actors::lease_view>& job) {
          one->passes[i] = job && job->spec != nullptr && c->who.may_use_queue(job->spec->queue);
          if (--one->waiting > 0) return;
          std::vector<dispatch_record> kept;
          for (std::size_t k = 0; k < one->all.size(); ++k) {
            if (one->passes[k]) kept.push_back(std::move(one->all[k]));
          }
          one->then(kept);
        });
  }
}

/// Finds the record of the path, which is none of another tenant's.
void with_dispatch(const call_ptr& c, std::function<void(const dispatch_record&)> then) {
  if (!is_id(c->id)) return c->refuse(reason::unknown_dispatch);
  using found = std::optional<dispatch_record>;
  with_dispatches<found>(
      c, [key = c->key()](dispatch_store& from, auto done) { from.find(key, std::move(done)); },
      [c, then = std::move(then)](const found& record) {
        if (!record) return c->refuse(reason::unknown_dispatch);
        with_permitted(c, {*record}, [c, then](const std::vector<dispatch_record>& kept) {
          if (kept.empty()) {
            return c->refuse(reason::forbidden, "This queue is not granted to the credential.");
          }
          then(kept.front());
        });
      });
}

/// A caller that may act on the job: an operator of its queue.
void with_operated_job(const call_ptr& c, std::function<void()> then) {
  if (!is_id(c->id)) return c->refuse(reason::unknown_dispatch);
  c->api->gateway->find_lease(
      c->key(), [c, then = std::move(then)](const std::optional<actors::lease_view>& job) {
        if (!job || job->spec == nullptr) return c->refuse(reason::unknown_dispatch);
        if (!c->who.may_use_queue(job->spec->queue)) {
          return c->refuse(reason::forbidden, "This queue is not granted to the credential.");
        }
        then();
      });
}

std::string_view name_of(protocol::dispatch_operation what) {
  return what == protocol::dispatch_operation::retry ? "dispatch retried by an operator"
                                                     : "dispatch resolved by an operator";
}

void operate(const call_ptr& c, protocol::dispatch_operation what) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  auto body = parse_body(c->request.body);
  if (const auto* fault = std::get_if<input_fault>(&body)) return c->refuse(*fault);
  field_reader fields(std::get<json::object>(body));
  read_request_id(*c, fields);
  const std::string why = fields.text("reason", largest_reason).value_or("");
  if (what == protocol::dispatch_operation::resolve && why.empty()) {
    fields.refuse("reason must be given: how it is known that nothing is left to stop.");
  }
  if (auto fault = fields.fault()) return c->refuse(*fault);
  using reported = actors::dispatch_reported;
  with_operated_job(c, [c, what, why] {
    with_dispatches<reported>(
        c,
        [key = c->key(), what](dispatch_store& to, auto done) {
          to.operate(key, what, std::move(done));
        },
        [c, what, why](const reported& done) {
          if (done.why != reason::none) return c->refuse(done.why);
          c->api->shared.lines->write(log_level::info, name_of(what),
                                      {{"job", done.record.key.lease.value},
                                       {"by", c->who.name},
                                       {"why", config_text::printable(why, largest_reason)}});
          c->answer(
              200, json::object{{"dispatch", to_json(done.record)}, {"request_id", c->request_id}});
        });
  });
}

}  // namespace

void refuse_unread_dispatches(const call_ptr& c, const store_error& fault) { refuse(c, fault); }

void serve_dispatches(const call_ptr& c) {
  auto what = read_query(*c);
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  with_dispatches<actors::dispatch_page>(
      c,
      [what = std::move(what)](dispatch_store& from, auto done) {
        from.page(what, std::move(done));
      },
      [c](const actors::dispatch_page& page) {
        with_permitted(c, page.records,
                       [c, next = page.next](const std::vector<dispatch_record>& kept) {
                         answer_page(c, kept, next);
                       });
      });
}

void serve_dispatch(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  with_dispatch(c, [c](const dispatch_record& record) {
    with_dispatch_events(c, c->key(), [c, record](const dispatch_events& events) {
      json::array shown;
      for (const auto& event : events.all) shown.push_back(to_json(event));
      c->answer(200, json::object{{"dispatch", to_json(record)},
                                  {"events", std::move(shown)},
                                  {"events_complete", events.complete}});
    });
  });
}

void serve_dispatch_retry(const call_ptr& c) { operate(c, protocol::dispatch_operation::retry); }
void serve_dispatch_resolve(const call_ptr& c) {
  operate(c, protocol::dispatch_operation::resolve);
}

namespace {

void read_events(const call_ptr& c, const protocol::lease_key& key,
                 const std::shared_ptr<dispatch_events>& so_far,
                 const std::function<void(const dispatch_events&)>& then) {
  const std::int64_t after = so_far->all.empty() ? 0 : so_far->all.back().version;
  using found = std::vector<dispatch_event>;
  with_dispatches<found>(
      c,
      [key, after](dispatch_store& from, auto done) {
        from.events(key, after, actors::most_dispatches, std::move(done));
      },
      [c, key, so_far, then](const found& more) {
        so_far->all.insert(so_far->all.end(), more.begin(), more.end());
        if (more.size() < actors::most_dispatches) return then(*so_far);
        if (so_far->all.size() >= most_dispatch_events) {
          so_far->complete = false;
          return then(*so_far);
        }
        read_events(c, key, so_far, then);
      });
}

}  // namespace

void with_dispatch_events(const call_ptr& c, const protocol::lease_key& key,
                          std::function<void(const dispatch_events&)> then) {
  auto none = std::make_shared<dispatch_events>();
  if (c->api->shared.dispatches == nullptr) return then(*none);
  read_events(c, key, none, then);
}

}  // namespace leasehold::server
