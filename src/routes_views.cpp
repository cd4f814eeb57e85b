// What is seen of the coordinator beside jobs: why one waits, workers, queues, health, metrics.
#include "src/dispatch_census.hpp"
#include "src/http_api_job.hpp"
#include "src/routes.hpp"

namespace leasehold::server {
namespace {

namespace json = boost::json;
using protocol::reason;

void answer_text(const call_ptr& c, int status, std::string body, std::string_view type) {
  http_response out;
  out.status = status;
  out.headers = {{"Content-Type", std::string(type)}, {"Cache-Control", "no-store"}};
  out.body = std::move(body);
  c->reply(std::move(out));
}

template <class View>
void answer_list(const call_ptr& c, std::string_view name, const std::vector<View>& views) {
  json::array all;
  for (const View& view : views) all.push_back(to_json(view));
  json::object body;
  body[name] = std::move(all);
  c->answer(200, body);
}

/// Which kind of database the store is in, as a label; where it is stays out of the metrics.
std::string store_metric(const call_ptr& c) {
  const auto place = c->api->shared.chosen->current()->place_of_store();
  const bool is_postgres = std::holds_alternative<storage::postgres_place>(place);
  return "# HELP leasehold_store_info 1, with the kind of database that the store is in\n"
         "# TYPE leasehold_store_info gauge\n"
         "leasehold_store_info{kind=\"" +
         std::string(is_postgres ? "postgres" : "sqlite") + "\"} 1\n";
}

}  // namespace

void serve_why(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  with_job(c, [c](const actors::lease_view&) {
    c->api->gateway->why(c->key(), [c](std::optional<actors::why_view> found) {
      if (!found) return c->refuse(reason::unknown_lease);
      c->answer(200, json::object{{"word", found->word},
                                  {"sentence", found->sentence},
                                  {"job", to_json(found->job, false)}});
    });
  });
}

void serve_workers(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  c->api->gateway->workers(c->who.tenant, [c](const std::vector<actors::worker_view>& found) {
    answer_list(c, "workers", found);
  });
}

void serve_queues(const call_ptr& c) {
  if (auto fault = c->query.fault()) return c->refuse(*fault);
  c->api->gateway->queues(c->who.tenant, [c](std::vector<actors::queue_view> found) {
    std::erase_if(found, [&](const auto& queue) { return !c->who.may_use_queue(queue.queue); });
    answer_list(c, "queues", found);
  });
}

void serve_health(const call_ptr& c) { answer_text(c, 200, "ok\n", "text/plain; charset=utf-8"); }

void serve_ready(const call_ptr& c) {
  const auto& role = c->api->shared.role;
  if (role != nullptr && !role->may_answer()) return c->refuse(silence_of(*role));
  const reason why = c->api->shared.unready();
  if (why != reason::none) return c->refuse(why);
  if (c->api->shared.full()) {
    return c->refuse(reason::not_ready,
                     "As many connections are open as may be; new ones are turned away.");
  }
  answer_text(c, 200, "ready\n", "text/plain; charset=utf-8");
}

void serve_metrics(const call_ptr& c) {
  const auto answer = [c](const std::string& dispatches) {
    answer_text(c, 200, c->api->shared.metrics() + store_metric(c) + dispatches,
                "text/plain; version=0.0.4; charset=utf-8");
  };
  if (c->api->shared.census == nullptr || c->api->gateway == nullptr) return answer("");
  c->api->shared.census->ask([c, answer](const std::optional<actors::dispatch_counts>& counts) {
    c->api->post([c, answer, counts] {
      answer(counts ? dispatch_metrics(*counts, c->api->gateway->now()) : "");
    });
  });
}

}  // namespace leasehold::server
