// The HTTP API of one thread with everything behind it faked or in memory, called as a connection
// would call it. The test's thread is the loop.
#pragma once

#include <gtest/gtest.h>
#include <atomic>

#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/dispatch_census.hpp"
#include "src/http_api.hpp"
#include "src/http_api_evidence.hpp"
#include "src/metrics.hpp"
#include "support/fake_gateway.hpp"
#include "support/memory_store.hpp"

namespace leasehold::tests {

/// A socket that remembers what was sent.
class fake_socket final : public server::socket {
 public:
  std::vector<std::string> sent;
  std::vector<std::pair<protocol::close_code, std::string>> closed;
  bool paused = false;
  std::size_t queued = 0;

  void send(std::string message) override { sent.push_back(std::move(message)); }
  void close(protocol::close_code code, std::string_view why) override {
    closed.emplace_back(code, why);
  }
  void pause_reading(bool now) override { paused = now; }
  [[nodiscard]] std::size_t queued_bytes() const override { return queued; }
};

class api_rig {
 public:
  api_rig()
      : store(std::make_shared<memory_store>()), api(std::make_shared<server::api_context>()) {
    server::api_shared& s = api->shared;
    s.chosen = std::make_shared<server::live_options>(server::options{});
    s.principals = std::make_shared<server::principal_registry>(everybody());
    s.store = store;
    s.dispatches = std::shared_ptr<actors::dispatch_store>(store, &store->dispatches());
    s.reads = std::make_shared<storage::read_pool>(1);
    s.census = std::make_shared<server::dispatch_census>(s.dispatches, s.reads);
    s.rates = std::make_shared<server::rate_limits>();
    s.sessions = std::make_shared<server::tenant_quota>();
    s.evidence = std::make_shared<server::evidence_reader>(store);
    s.lines = std::make_shared<server::log>(server::log_level::error, server::log_form::json);
    s.counters = std::make_shared<actors::counters>();
    s.metrics = [counters = s.counters] { return server::metrics_page({counters}, nullptr); };
    s.unready = [this] { return unready; };
    s.full = [this] { return full; };
    api->gateway = &gateway;
    api->post = [this](std::function<void()> what) {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(what));
      changed_.notify_one();
    };
    api->after = [this](protocol::duration, std::function<void()> what) {
      timers.push_back(std::move(what));
    };
    http = std::make_unique<server::http_api>(api);
  }
  ~api_rig() { api->shared.reads->stop(); }

  /// Each role alone and with the token of its name, in tenant "t"; "stranger" is a client, an
  /// operator and an auditor of tenant "u"; "narrow" a client and worker of queue and program "q"
  /// alone.
  static server::principal_set everybody() {
    using actors::role;
    server::principal_set all;
    const auto add = [&](const std::string& name, const std::string& tenant,
                         std::vector<role> roles, std::vector<std::string> names) {
      server::principal_entry e;
      e.who.name = name;
      e.who.tenant = protocol::tenant_id(tenant);
      e.who.roles = std::move(roles);
      e.who.queues = names;
      e.who.programs = std::move(names);
      e.tokens = {server::hash_token(name)};
      all.entries.push_back(std::move(e));
    };
    add("worker", "t", {role::worker}, {"*"});
    add("client", "t", {role::client}, {"*"});
    add("operator", "t", {role::operator_}, {"*"});
    add("auditor", "t", {role::auditor}, {});
    add("stranger", "u", {role::client, role::operator_, role::auditor}, {"*"});
    add("narrow", "t", {role::client, role::worker}, {"q"});
    return all;
  }

  static server::http_request request(const std::string& method, const std::string& target,
                                      const std::string& token, std::string body = {}) {
    server::http_request r;
    r.method = method;
    r.target = target;
    r.body = std::move(body);
    r.peer = "192.0.2.1";
    if (!token.empty()) r.headers.emplace_back("authorization", "Bearer " + token);
    return r;
  }
  server::http_response ask(const std::string& method, const std::string& target,
                            const std::string& token, std::string body = {}) {
    return ask(request(method, target, token, std::move(body)));
  }
  server::http_response ask(server::http_request r) {
    std::optional<server::http_response> got;
    http->handle(std::move(r), std::make_shared<const std::atomic<bool>>(false),
                 [&](server::http_response response) {
                   EXPECT_FALSE(got) << "a request was answered twice";
                   got = std::move(response);
                 });
    run_until([&] { return got.has_value(); });
    return got.value_or(server::http_response{0, {}, "no answer"});
  }
  /// Runs what is posted until `done`; gives up after ten seconds.
  void run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_until(lock, end, [this] { return !posted_.empty(); })) return;
        next = std::move(posted_.front());
        posted_.pop_front();
      }
      next();
    }
  }
  void fire_timers() {
    for (auto& due : std::exchange(timers, {})) due();
  }

  static boost::json::object json(const server::http_response& response) {
    boost::system::error_code failed;
    auto value = boost::json::parse(response.body, failed);
    EXPECT_TRUE(!failed && value.is_object()) << response.body;
    return value.is_object() ? value.get_object() : boost::json::object{};
  }
  static std::string header(const server::http_response& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return {};
  }

  fake_gateway gateway;
  std::shared_ptr<memory_store> store;
  std::shared_ptr<server::api_context> api;
  std::unique_ptr<server::http_api> http;
  protocol::reason unready = protocol::reason::none;
  bool full = false;
  std::vector<std::function<void()>> timers;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace leasehold::tests
