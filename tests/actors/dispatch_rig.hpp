// A dispatcher whose strand, clock, timer and controllers the test moves.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/dispatch.hpp"
#include "support/coordinator_rig.hpp"
#include "support/memory_dispatch_store.hpp"

namespace leasehold::tests {

/// What is posted waits until the test lets it run, in order.
class manual_strand {
 public:
  [[nodiscard]] actors::dispatch_strand port() {
    return
        [waiting = waiting_](std::function<void()> what) { waiting->push_back(std::move(what)); };
  }
  void run() {
    while (!waiting_->empty()) {
      const auto next = std::move(waiting_->front());
      waiting_->pop_front();
      next();
    }
  }

 private:
  std::shared_ptr<std::deque<std::function<void()>>> waiting_ =
      std::make_shared<std::deque<std::function<void()>>>();
};

/// Keeps what it is asked until the test answers.
class manual_controller final : public actors::execution_controller {
 public:
  using answer = std::function<void(protocol::dispatch_result)>;

  void act(const actors::dispatch_claimed& claim, answer done) override {
    if (throws) throw std::runtime_error("the test ordered it");
    calls.push_back(claim);
    if (at_once) {
      done(*at_once);
    } else {
      waiting.push_back(std::move(done));
    }
  }
  [[nodiscard]] std::vector<std::string> called() const {
    std::vector<std::string> out;
    for (const auto& each : calls) out.push_back(each.record.key.lease.value);
    return out;
  }

  std::optional<protocol::dispatch_result> at_once;
  bool throws = false;
  std::vector<actors::dispatch_claimed> calls;
  std::vector<answer> waiting;
};

/// Passes on to a store in memory, counts, holds answers back, and falsifies them.
class watched_dispatch_store final : public actors::dispatch_store {
 public:
  template <class T>
  using change = std::function<void(T&)>;

  explicit watched_dispatch_store(std::shared_ptr<memory_dispatch_store> kept)
      : kept_(std::move(kept)) {}

  actors::store_result<protocol::instant> now() override { return kept_->now(); }
  void page(actors::dispatch_query what, then<actors::dispatch_page> done) override {
    queries.push_back(what);
    kept_->page(std::move(what), changed(std::move(done), on_page));
  }
  void claim(std::vector<protocol::dispatch_claim> asked, protocol::dispatch_pace pace,
             then<std::vector<actors::dispatch_claimed>> done) override {
    claims.push_back(asked);
    kept_->claim(std::move(asked), pace, changed(std::move(done), on_claims));
  }
  void report(std::vector<protocol::dispatch_report> said, protocol::dispatch_pace pace,
              then<std::vector<actors::dispatch_reported>> done) override {
    reports.push_back(said);
    kept_->report(std::move(said), pace, held(std::move(done)));
  }
  void operate(protocol::lease_key key, protocol::dispatch_operation what,
               then<actors::dispatch_reported> done) override {
    kept_->operate(std::move(key), what, std::move(done));
  }
  void find(protocol::lease_key key, then<std::optional<protocol::dispatch_record>> done) override {
    kept_->find(std::move(key), std::move(done));
  }
  void events(protocol::lease_key key, std::int64_t after, std::size_t limit,
              then<std::vector<protocol::dispatch_event>> done) override {
    kept_->events(std::move(key), after, limit, std::move(done));
  }
  void exited(protocol::instant since, std::size_t limit,
              then<std::vector<protocol::dispatch_record>> done) override {
    kept_->exited(since, limit, std::move(done));
  }
  void count(then<actors::dispatch_counts> done) override { kept_->count(std::move(done)); }

  /// Lets go what was held back.
  void answer() {
    holds = false;
    for (auto& each : std::exchange(held_, {})) each();
  }

  change<actors::dispatch_page> on_page;
  change<std::vector<actors::dispatch_claimed>> on_claims;
  bool holds = false;
  std::vector<actors::dispatch_query> queries;
  std::vector<std::vector<protocol::dispatch_claim>> claims;
  std::vector<std::vector<protocol::dispatch_report>> reports;

 private:
  template <class T>
  then<T> held(then<T> done) {
    return [this, done = std::move(done)](actors::store_result<T> got) {
      if (!holds) return done(std::move(got));
      held_.push_back([done, got = std::move(got)] { done(got); });
    };
  }
  template <class T>
  then<T> changed(then<T> done, change<T> how) {
    return held<T>([done = std::move(done), how = std::move(how)](actors::store_result<T> got) {
      if (auto* said = std::get_if<T>(&got); said != nullptr && how) how(*said);
      done(std::move(got));
    });
  }

  std::shared_ptr<memory_dispatch_store> kept_;
  std::vector<std::function<void()>> held_;
};

class dispatch_rig : public testing::Test {
 protected:
  static constexpr protocol::dispatch_pace pace{protocol::duration{1'000}, protocol::duration{100},
                                                protocol::duration{400}};
  static constexpr auto stream = protocol::dispatch_stage::stream;
  static constexpr auto process = protocol::dispatch_stage::process;
  inline static const std::string host = "10c57e73-a9fd-46f1-aecb-71b60c3b41fc";

  dispatch_rig() {
    kept->set_clock([this] { return clock->now(); });
    how.store = store;
    how.controllers[stream] = controller;
    how.owner = "me";
    how.make_token = [this] {
      const auto digits = std::to_string(++tokens_);
      return std::string(32 - digits.size(), '0') + digits;
    };
    how.strand = strand.port();
    how.pace = pace;
  }

  [[nodiscard]] static protocol::lease_key key(const std::string& name) {
    return {protocol::tenant_id{"t"}, protocol::lease_id{name}};
  }
  void open(const std::string& name) {
    protocol::dispatch_change what;
    what.what = protocol::dispatch_change::kind::open;
    what.key = key(name);
    what.gen = protocol::generation{7};
    what.at = clock->now();
    what.cancel_requested_at = clock->now();
    what.cancel_deadline = clock->now() + protocol::duration{10'000};
    kept->apply({what});
  }
  /// Names in the order of the keys: j00, j01, ...
  void open_many(int count) {
    for (int i = 0; i < count; ++i) open(name_of(i));
  }
  [[nodiscard]] static std::string name_of(int i) {
    return (i < 10 ? "j0" : "j") + std::to_string(i);
  }
  [[nodiscard]] protocol::dispatch_record at(const std::string& name) const {
    const auto found = kept->stored(key(name));
    EXPECT_TRUE(found) << name;
    return found.value_or(protocol::dispatch_record{});
  }
  void pass(std::int64_t ms) { clock->set(clock->now() + protocol::duration{ms}); }

  void make() { supervisor = std::make_shared<actors::dispatch_supervisor>(how); }
  /// Begins a cycle and lets run what can; `did` once it has ended.
  void begin() {
    if (!supervisor) make();
    did.reset();
    supervisor->run_cycle([this](actors::dispatch_cycle cycle) { did = std::move(cycle); });
    strand.run();
  }
  /// A cycle whose controllers answer at once.
  actors::dispatch_cycle cycle(
      protocol::dispatch_result said = protocol::dispatch_result::termination_requested) {
    controller->at_once = said;
    begin();
    EXPECT_TRUE(did);
    return did.value_or(actors::dispatch_cycle{});
  }
  void answer(std::size_t which, protocol::dispatch_result said) {
    controller->waiting.at(which)(said);
    strand.run();
  }

  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  std::shared_ptr<manual_timer> timer = std::make_shared<manual_timer>();
  manual_strand strand;
  std::shared_ptr<memory_dispatch_store> kept = std::make_shared<memory_dispatch_store>();
  std::shared_ptr<watched_dispatch_store> store = std::make_shared<watched_dispatch_store>(kept);
  std::shared_ptr<manual_controller> controller = std::make_shared<manual_controller>();
  actors::dispatch_supervisor_options how;
  std::shared_ptr<actors::dispatch_supervisor> supervisor;
  std::optional<actors::dispatch_cycle> did;

 private:
  int tokens_ = 0;
};

}  // namespace leasehold::tests
