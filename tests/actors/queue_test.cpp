// One queue alone: in which order it offers, when a job's time has come, and whose slots are taken
// while the news of shards and connections cross on their way.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "actors/queue_actor.hpp"
#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::reason;
using texts = std::vector<std::string>;

/// Hears what the queue tells the shards and its sessions.
struct heard {
  std::vector<actors::shard_operation> operations;
  std::vector<protocol::instant> wakes;
  int forgotten = 0;
};

class listener final : public actors::coordinator_actor {
 public:
  listener(caf::actor_config& config, heard* to) : coordinator_actor(config), heard_(to) {}

 protected:
  actors::actor_behavior make_behavior() override {
    return {
        [this](actors::shard_operation& said) { heard_->operations.push_back(std::move(said)); },
        [this](const actors::wake_queue& said) { heard_->wakes.push_back(said.at); },
        [this](const actors::session_forgotten&) { ++heard_->forgotten; },
    };
  }

 private:
  heard* heard_;
};

class QueueAlone : public testing::Test {
 protected:
  QueueAlone() {
    context_->clock = clock;
    context_->counters = std::make_shared<actors::counters>();
    context_->options = std::make_shared<actors::actor_options>();
    listener_ = system_.spawn<listener>(&heard_);
    context_->shards.push_back({0, listener_});
    queue_ = system_.spawn<actors::queue_actor>(actors::context_ptr(context_), context_->options,
                                                context_->shards[0],
                                                actors::queue_key{protocol::tenant_id{"t"}, "q"});
  }
  ~QueueAlone() override {
    actors::ask_to_exit(queue_);
    actors::ask_to_exit(listener_);
    context_->shards.clear();
    settle();
  }

  void settle() {
    loop_.restart();
    loop_.poll();
  }
  template <class Event>
  void tell(Event what) {
    actors::tell(queue_, actors::queue_event{std::move(what)});
    settle();
  }
  static protocol::lease_key key(const std::string& job) {
    return {protocol::tenant_id{"t"}, protocol::lease_id{job}};
  }
  void ready(const std::string& job, const actors::job_spec& spec = {},
             protocol::instant next = {}) {
    tell(actors::job_ready{
        key(job), std::make_shared<actors::job_spec>(spec), {1}, spec.submitted_at, next});
  }
  actors::session_ptr session(actors::session_id epoch, const std::string& holder) {
    auto made = std::make_shared<actors::session_ref>();
    made->epoch = epoch;
    made->holder = protocol::holder{holder};
    made->where = {0, listener_};
    return made;
  }
  void credit(const actors::session_ptr& from, std::int64_t slots, const texts& held = {},
              protocol::labels has = {}) {
    actors::session_credit said{from, std::move(has), {1}, slots, {}};
    for (const auto& lease : held) said.held.emplace_back(lease);
    tell(std::move(said));
  }
  void grant(const std::string& job, const actors::session_ptr& to) {
    tell(actors::job_held{key(job), to->holder});
  }
  void close(const std::string& job) { tell(actors::job_closed{key(job)}); }
  void refuse(const std::string& job, reason why, protocol::instant again = {}) {
    tell(actors::job_not_offered{key(job), why, again});
  }
  /// The jobs that were asked to be offered since the last call, in order.
  texts offered() {
    texts jobs;
    for (const auto& said : std::exchange(heard_.operations, {})) {
      EXPECT_EQ(said.what.kind, protocol::event_kind::offer);
      jobs.push_back(said.key.lease.value);
    }
    return jobs;
  }
  std::string why(const std::string& job) {
    std::string word;
    tell(actors::queue_query{[&](actors::queue_actor& q) { word = q.why(key(job)).first; }});
    return word;
  }
  /// How many slots each session uses, in order of their epochs.
  std::vector<std::int64_t> used() {
    std::vector<std::int64_t> found;
    tell(actors::queue_query{[&](actors::queue_actor& q) {
      for (const auto& s : q.sessions()) found.push_back(s.held);
    }});
    return found;
  }
  std::int64_t now() const { return clock->now().ms; }

  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  heard heard_;

 private:
  boost::asio::io_context loop_{1};
  server::loop_config config_{loop_};
  caf::actor_system system_{config_};
  std::shared_ptr<actors::thread_context> context_ = std::make_shared<actors::thread_context>();
  actors::actor_handle listener_;
  actors::actor_handle queue_;
};

TEST_F(QueueAlone, JobsOfDifferentLabelsGoInOneOrder) {
  ready("b", {.labels = {{"gpu", "a"}}, .submitted_at = {5}});
  ready("late", {.submitted_at = {9}});
  ready("a", {.labels = {{"os", "x"}}, .submitted_at = {5}});
  ready("low", {.labels = {{"gpu", "a"}}, .priority = -1, .submitted_at = {1}});
  ready("high", {.labels = {{"gpu", "a"}, {"os", "x"}}, .priority = 1, .submitted_at = {9}});
  credit(session(1, "w"), 9, {}, {{"gpu", "a"}, {"os", "x"}});
  EXPECT_EQ(offered(), (texts{"high", "a", "b", "late", "low"}));
}

TEST_F(QueueAlone, ALabelSetThatHadNoJobLeftTakesJobsAgain) {
  const protocol::labels gpu{{"gpu", "a"}};
  const auto w = session(1, "w");
  credit(w, 1, {}, gpu);
  for (int round = 0; round < 3; ++round) {
    ready("j", {.labels = gpu});
    EXPECT_EQ(offered(), texts{"j"});
    grant("j", w);
    close("j");
  }
}

TEST_F(QueueAlone, AJobWhoseLabelsChangedIsOfferedByTheNewOnes) {
  ready("j", {.labels = {{"gpu", "a"}}});
  ready("j", {.labels = {{"os", "x"}}});
  credit(session(1, "a"), 1, {}, {{"gpu", "a"}});
  EXPECT_EQ(offered(), texts{});
  EXPECT_EQ(why("j"), "no_matching_labels");
  credit(session(2, "b"), 1, {}, {{"os", "x"}});
  EXPECT_EQ(offered(), texts{"j"});
}

TEST_F(QueueAlone, AJobWaitsForTheLaterOfNotBeforeAndItsBackoff) {
  const auto at = [&](std::int64_t ms) { return protocol::instant{now() + ms}; };
  ready("first", {.not_before = at(10)}, at(9));
  ready("same", {.not_before = at(10)}, at(10));
  ready("second", {.not_before = at(10)}, at(11));
  EXPECT_EQ(why("first"), "not_before");
  EXPECT_EQ(why("same"), "backoff");
  EXPECT_EQ(why("second"), "backoff");
  ASSERT_FALSE(heard_.wakes.empty());
  EXPECT_EQ(heard_.wakes.back(), at(10)) << "it asks to be woken for the earliest";
  credit(session(1, "w"), 9);
  clock->set(at(10));
  tell(actors::queue_wake{});
  EXPECT_EQ(offered(), (texts{"first", "same"}));
  EXPECT_EQ(heard_.wakes.back(), at(1)) << "and then for the next";
}

TEST_F(QueueAlone, ARefusedOfferIsMadeAgainWhenItMay) {
  const protocol::instant begun{now()};
  ready("j", {.not_before = begun});
  credit(session(1, "w"), 1);
  ASSERT_EQ(offered(), texts{"j"});
  refuse("j", reason::retry_not_due, {begun.ms + 5});
  EXPECT_EQ(used(), std::vector<std::int64_t>{0}) << "it gave its slot back";
  EXPECT_EQ(why("j"), "backoff");
  clock->set({begun.ms + 4});
  tell(actors::queue_wake{});
  EXPECT_EQ(offered(), texts{});
  clock->set({begun.ms + 5});
  tell(actors::queue_wake{});
  EXPECT_EQ(offered(), texts{"j"});
  refuse("j", reason::lease_frozen);
  EXPECT_EQ(why("j"), "behind") << "its shard says when it may be offered again";
}

TEST_F(QueueAlone, ACreditDoesNotForgetOffersThatItCannotHaveSeen) {
  ready("offering");
  ready("held");
  const auto w = session(1, "w");
  credit(w, 2);
  grant("held", w);
  credit(w, 2, {});
  EXPECT_EQ(used(), std::vector<std::int64_t>{2});
  close("held");
  EXPECT_EQ(used(), std::vector<std::int64_t>{1});
}

TEST_F(QueueAlone, ALeaseThatOnlyTheConnectionKnowsTakesASlotUntilItsNextCredit) {
  const auto w = session(1, "w");
  credit(w, 2, {"unknown", "closing"});
  ready("j");
  EXPECT_EQ(offered(), texts{});
  close("closing");
  EXPECT_EQ(offered(), texts{"j"}) << "its end frees the slot, though the queue never had the job";
  EXPECT_EQ(used(), std::vector<std::int64_t>{2});
  credit(w, 2, {});
  EXPECT_EQ(used(), std::vector<std::int64_t>{1}) << "j may still be on its way";
}

TEST_F(QueueAlone, AJobThatIsGoneTakesItsSlotUntilTheNextCredit) {
  const auto w = session(1, "w");
  ready("j");
  credit(w, 1);
  grant("j", w);
  tell(actors::job_gone{key("j")});
  EXPECT_EQ(used(), std::vector<std::int64_t>{1});
  credit(w, 1, {});
  EXPECT_EQ(used(), std::vector<std::int64_t>{0});
}

TEST_F(QueueAlone, ALeaseThatTwoSessionsNameTakesASlotOfBothAndItsEndFreesBoth) {
  const auto a = session(1, "a");
  const auto b = session(2, "b");
  grant("j", b);
  credit(a, 1, {"j"});
  credit(b, 1, {"j"});
  EXPECT_EQ(used(), (std::vector<std::int64_t>{1, 1}));
  credit(a, 1, {"j"});
  credit(b, 1, {"j", "j"});
  EXPECT_EQ(used(), (std::vector<std::int64_t>{1, 1})) << "a repeat takes nothing more";
  close("j");
  EXPECT_EQ(used(), (std::vector<std::int64_t>{0, 0}));
}

TEST_F(QueueAlone, AJobThatAnotherSessionStillNamesIsOfferedAndTakesASlotOfBoth) {
  const auto a = session(1, "a");
  const auto b = session(2, "b");
  ready("j");
  credit(a, 1, {"j"});
  EXPECT_EQ(offered(), texts{}) << "the only slot is taken by the job itself";
  credit(b, 1);
  EXPECT_EQ(offered(), texts{"j"});
  EXPECT_EQ(used(), (std::vector<std::int64_t>{1, 1}));
  refuse("j", reason::lease_frozen);
  EXPECT_EQ(used(), (std::vector<std::int64_t>{1, 0})) << "only the offer's slot is given back";
}

TEST_F(QueueAlone, ASessionThatLeftIsForgottenOnceItsOffersAreAnswered) {
  const auto w = session(1, "w");
  ready("a");
  ready("b");
  credit(w, 2);
  ASSERT_EQ(offered(), (texts{"a", "b"}));
  tell(actors::session_gone{w});
  grant("a", w);
  EXPECT_EQ(heard_.forgotten, 0);
  refuse("b", reason::store_unavailable);
  EXPECT_EQ(heard_.forgotten, 1);
  close("a");
  ready("a");
  credit(session(2, "w"), 2);
  EXPECT_EQ(offered(), (texts{"a", "b"})) << "what it held is nobody's";
}

}  // namespace
}  // namespace leasehold::tests
