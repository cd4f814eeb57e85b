// A gateway that holds jobs in a map and answers at once: what stands in front of the coordinator
// is tested without it. One thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/gateway.hpp"

namespace leasehold::tests {

class fake_gateway final : public actors::gateway {
 public:
  // ---- what a test arranges
  protocol::instant time{1'000'000};
  std::map<protocol::lease_key, actors::lease_view> jobs;
  std::vector<actors::worker_view> all_workers;
  std::vector<actors::queue_view> all_queues;
  /// The answer to the next operations; none: what the operation deserves of itself.
  std::optional<actors::answer> answer_with;
  /// Happens while an operation, or a look at the queues, is under way.
  std::function<void()> meanwhile = [] {};

  // ---- what a test looks at
  std::vector<std::string> calls;  ///< of the coordinator, by name, in their order
  std::vector<actors::submit_request> submitted;
  std::vector<actors::acquire_request> acquired;
  std::vector<std::pair<protocol::lease_key, protocol::event>> operated;
  std::vector<protocol::decoded_message<protocol::worker_frame>> delivered;
  std::vector<protocol::instant> stamps;
  std::vector<actors::principal> opened;
  std::vector<actors::session_id> closed;
  std::shared_ptr<actors::outbound> sink;
  protocol::instant awaited_until;
  std::map<std::int64_t, std::function<void(protocol::row_number)>> watches;

  actors::lease_view& add_job(const std::string& tenant, const std::string& id,
                              const std::string& queue = "q",
                              protocol::lease_state state = protocol::lease_state::vacant) {
    protocol::record r;
    r.lease = protocol::lease_id(id);
    r.job = protocol::job_id(id);
    r.kind = protocol::lease_kind::job;
    r.state = state;
    actors::job_spec spec;
    spec.queue = queue;
    spec.payload = "secret payload of " + id;
    spec.submitted_by = "somebody";
    const protocol::lease_key key{protocol::tenant_id(tenant), protocol::lease_id(id)};
    actors::lease_view view;
    view.tenant = key.tenant;
    view.state = std::make_shared<const protocol::record>(std::move(r));
    view.spec = std::make_shared<const actors::job_spec>(std::move(spec));
    view.row = {1};
    return jobs[key] = std::move(view);
  }
  actors::lease_view& add_lock(const actors::acquire_request& what) {
    protocol::record r;
    r.lease = what.key.lease;
    r.job = protocol::job_id(what.canonical);
    r.kind = protocol::lease_kind::lock;
    r.state = protocol::lease_state::active;
    r.gen = {1};
    r.held_by = what.holder;
    r.acquired_at = r.issued_at = time;
    r.expires_at = time + what.spec.policy.lease_duration;
    actors::lease_view view;
    view.tenant = what.key.tenant;
    view.state = std::make_shared<const protocol::record>(std::move(r));
    view.lock = std::make_shared<const actors::lock_spec>(what.spec);
    view.row = {1};
    return jobs[what.key] = std::move(view);
  }
  void change(actors::lease_view& job, const std::function<void(protocol::record&)>& how) {
    protocol::record r = *job.state;
    how(r);
    job.state = std::make_shared<const protocol::record>(std::move(r));
  }

  // ---- the gateway
  actors::session_id open_session(const actors::principal& who,
                                  std::shared_ptr<actors::outbound> to) override {
    opened.push_back(who);
    sink = std::move(to);
    return static_cast<actors::session_id>(opened.size());
  }
  void deliver(actors::session_id, protocol::decoded_message<protocol::worker_frame> message,
               protocol::instant ingress) override {
    delivered.push_back(std::move(message));
    stamps.push_back(ingress);
  }
  void close_session(actors::session_id session) override {
    closed.push_back(session);
    sink.reset();
  }

  void submit(actors::submit_request what, std::function<void(actors::answer)> reply) override {
    calls.emplace_back("submit");
    submitted.push_back(what);
    if (answer_with) return reply(*answer_with);
    const std::string id = what.job ? what.job->value : "made-" + std::to_string(submitted.size());
    actors::lease_view& view = add_job(what.tenant.value, id, what.spec.queue);
    view.spec = std::make_shared<const actors::job_spec>(what.spec);
    reply({protocol::decision::accepted, protocol::reason::submitted, view, {}, true});
  }
  void operate(protocol::lease_key key, protocol::event what,
               std::function<void(actors::answer)> reply) override {
    calls.emplace_back("operate");
    operated.emplace_back(key, what);
    meanwhile();
    if (answer_with) return reply(*answer_with);
    const auto found = jobs.find(key);
    if (found == jobs.end()) {
      return reply({protocol::decision::rejected, protocol::reason::unknown_lease, {}, {}, false});
    }
    reply({protocol::decision::accepted,
           protocol::reason::cancel_requested,
           found->second,
           {},
           false});
  }
  void find_lease(protocol::lease_key key,
                  std::function<void(std::optional<actors::lease_view>)> reply) override {
    calls.emplace_back("find_lease");
    reply(look(key));
  }
  void await_settled(protocol::lease_key key, protocol::instant until,
                     std::function<void(std::optional<actors::lease_view>)> reply) override {
    calls.emplace_back("await_settled");
    awaited_until = until;
    reply(look(key));
  }
  void acquire(actors::acquire_request what, std::function<void(actors::answer)> reply) override {
    calls.emplace_back("acquire");
    acquired.push_back(what);
    if (answer_with) return reply(*answer_with);
    const bool known = jobs.contains(what.key);
    auto& view = known ? jobs[what.key] : add_lock(what);
    actors::answer said;
    said.decision = known ? protocol::decision::rejected : protocol::decision::accepted;
    said.reason = known ? protocol::reason::already_held : protocol::reason::acquired;
    said.lease = view;
    said.created = !known;
    said.granted = view.state->gen;
    reply(std::move(said));
  }
  void await_change(protocol::lease_key key, std::optional<protocol::generation>,
                    protocol::instant until,
                    std::function<void(std::optional<actors::lease_view>)> reply) override {
    calls.emplace_back("await_change");
    awaited_until = until;
    reply(look(key));
  }
  void list_locks(actors::lock_filter filter, std::string page_token, std::size_t page_size,
                  std::function<void(actors::lock_page)> reply) override {
    calls.emplace_back("list_locks");
    actors::lock_page page;
    for (const auto& [key, view] : jobs) {
      if (key.tenant != filter.tenant || !view.lock || key.lease.value <= page_token) continue;
      if (page.locks.size() == page_size) {
        page.next = page.locks.back().state->lease.value;
        break;
      }
      page.locks.push_back(view);
    }
    reply(std::move(page));
  }
  void find_fence(protocol::lease_key key, std::function<void(actors::fence_view)> reply) override {
    calls.emplace_back("find_fence");
    const auto found = jobs.find(key);
    if (found == jobs.end()) return reply({{}, {7}, {}});
    reply({found->second.state->gen, found->second.state->gen,
           found->second.lock ? found->second.lock->name.program : ""});
  }
  void list_jobs(actors::job_filter filter, std::string page_token, std::size_t page_size,
                 std::function<void(actors::job_page)> reply) override {
    calls.emplace_back("list_jobs");
    actors::job_page page;
    for (const auto& [key, view] : jobs) {
      if (key.tenant != filter.tenant || !view.spec || key.lease.value <= page_token) continue;
      if (filter.queue && view.spec->queue != *filter.queue) continue;
      if (filter.state && view.state->state != *filter.state) continue;
      if (page.jobs.size() == page_size) {
        page.next = page.jobs.back().state->lease.value;
        break;
      }
      page.jobs.push_back(view);
    }
    reply(std::move(page));
  }
  void why(protocol::lease_key key,
           std::function<void(std::optional<actors::why_view>)> reply) override {
    calls.emplace_back("why");
    const auto found = jobs.find(key);
    if (found == jobs.end()) return reply(std::nullopt);
    reply(actors::why_view{found->second, "no_worker", "No worker takes this queue."});
  }
  void workers(protocol::tenant_id tenant,
               std::function<void(std::vector<actors::worker_view>)> reply) override {
    calls.emplace_back("workers");
    auto out = all_workers;
    std::erase_if(out, [&](const auto& w) { return w.tenant != tenant; });
    reply(std::move(out));
  }
  void queues(protocol::tenant_id tenant,
              std::function<void(std::vector<actors::queue_view>)> reply) override {
    calls.emplace_back("queues");
    meanwhile();
    auto out = all_queues;
    std::erase_if(out, [&](const auto& q) { return q.tenant != tenant; });
    reply(std::move(out));
  }

  std::int64_t watch(std::function<void(protocol::row_number)> on_rows) override {
    const auto id = static_cast<std::int64_t>(watches.size()) + 1;
    watches[id] = std::move(on_rows);
    return id;
  }
  void unwatch(std::int64_t watch) override { watches.erase(watch); }

  protocol::instant now() const override { return time; }

 private:
  std::optional<actors::lease_view> look(const protocol::lease_key& key) const {
    const auto found = jobs.find(key);
    return found == jobs.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace leasehold::tests
