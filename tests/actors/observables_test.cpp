// What an operator relies on without seeing it: the order of stamps, one timer for all deadlines,
// credit that is absolute, and commits that leave nothing behind when they fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::event_kind;
using protocol::lease_state;
using protocol::reason;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t many_leases = 5'000;
#else
constexpr std::int64_t many_leases = 200'000;
#endif

protocol::event cancel_event() {
  protocol::event cancel;
  cancel.kind = event_kind::cancel;
  return cancel;
}

TEST(Order, ARenewReadBeforeItsDeadlineBeatsALaterCancelThoughTheShardWasStalled) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  const auto deadline = job(rig, "j")->state->expires_at;

  rig.clock->set(deadline - protocol::duration{1});
  const auto renew = w.say(w.frame(event_kind::renew, "j", 1, 1));
  // Nothing runs for a second: the frame waits in a mailbox, its lease's deadline passes.
  rig.clock->set(deadline + protocol::duration{999});
  actors::answer cancelled;
  rig.gateway().operate({protocol::tenant_id{"t"}, protocol::lease_id{"j"}}, cancel_event(),
                        [&](actors::answer a) { cancelled = std::move(a); });
  rig.settle();

  EXPECT_EQ(w.session->verdict_of(renew)->reason, reason::renewed);
  EXPECT_EQ(cancelled.reason, reason::cancel_requested);
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::active);
  EXPECT_TRUE(w.session->all<protocol::lease_lost>().empty());
}

TEST(Order, ARenewReadAtItsDeadlineIsLate) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  rig.clock->set(job(rig, "j")->state->expires_at);
  w.credit(0);
  EXPECT_EQ(w.renew("j", 1, 1).reason, reason::lease_expired);
}

TEST(Order, ADeadlineWaitsForItsFencesAtMostMaxExpiryLag) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  w.credit(0);
  rig.clock->set(job(rig, "j")->state->expires_at);
  rig.link->lost = true;  // the fences of this deadline never come back
  rig.settle();
  rig.link->lost = false;
  rig.advance(4'999);
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::active);
  rig.advance(1);
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::expired);
}

TEST(Index, ManyLeasesNeedOneTimerAndRenewsDoNotTouchIt) {
  coordinator_rig rig;
  rig_worker w(rig, "w", "a");
  w.credit(many_leases);
  for (std::int64_t i = 0; i < many_leases; ++i) {
    actors::job_spec spec;
    spec.queue = "q";
    rig.gateway().submit({protocol::tenant_id{"t"}, protocol::job_id{std::to_string(i)}, spec},
                         [](const actors::answer&) {});
    if (i % 1024 == 0) rig.settle();
  }
  rig.settle();
  ASSERT_EQ(w.session->all<protocol::offer>().size(), static_cast<std::size_t>(many_leases));
  for (std::int64_t i = 0; i < many_leases; ++i) {
    w.say(w.frame(event_kind::ack, std::to_string(i), 1));
    if (i % 1024 == 0) rig.settle();
  }
  rig.settle();
  ASSERT_EQ(rig.counters->leases[static_cast<std::size_t>(lease_state::active)].value(),
            many_leases);

  const auto arms = rig.timer->arms;
  const auto entries = rig.counters->deadlines_armed.value();
  rig.clock->set(rig.clock->now() + protocol::duration{500});
  for (std::int64_t i = 0; i < many_leases; ++i) {
    w.say(w.frame(event_kind::renew, std::to_string(i), 1, 1));
    if (i % 1024 == 0) rig.settle();
  }
  rig.settle();
  EXPECT_EQ(rig.timer->arms, arms) << "a renew touches neither the timer nor the index";
  EXPECT_EQ(rig.counters->deadlines_armed.value(), entries);
  EXPECT_LE(entries, 2 * many_leases) << "one entry for the offer, one for the authority";
}

TEST(Credit, ARepeatedCreditFrameOffersNothingMore) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  for (int i = 0; i < 5; ++i) submit(rig, "j" + std::to_string(i));
  const protocol::credit two{w.epoch, {7}, "q", 2};
  for (int repeat = 0; repeat < 3; ++repeat) {
    w.say(two);
    rig.settle();
    EXPECT_EQ(w.session->all<protocol::offer>().size(), 2U);
  }
}

TEST(Credit, ALowerSequenceIsIgnored) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  for (int i = 0; i < 5; ++i) submit(rig, "j" + std::to_string(i));
  w.say(protocol::credit{w.epoch, {9}, "q", 1});
  w.say(protocol::credit{w.epoch, {8}, "q", 5});
  rig.settle();
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 1U);
}

TEST(Credit, AClosedLeaseFreesItsSlot) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  for (int i = 0; i < 3; ++i) {
    const auto id = "j" + std::to_string(i);
    submit(rig, id);
    w.ack(id, 1);
    EXPECT_EQ(w.result(id, 1).reason, reason::completed);
  }
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 3U);
}

TEST(Offer, ASessionThatIsGoneBeforeTheOfferReachedItGivesItBackWithoutALoss) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  rig.store->hold();
  rig.gateway().submit({protocol::tenant_id{"t"}, protocol::job_id{"j"}, {.queue = "q"}},
                       [](const actors::answer&) {});
  rig.settle();
  ASSERT_TRUE(rig.store->complete_next());  // the submit; the offer is on its way to the store
  rig.settle();
  rig.gateway().close_session(w.epoch);
  rig.settle();
  rig.store->resume();
  rig.settle();
  const auto found = job(rig, "j");
  EXPECT_EQ(found->state->state, lease_state::vacant);
  EXPECT_EQ(found->state->acked, protocol::ack_state::withdrawn);
  EXPECT_EQ(found->state->losses, 0);
  EXPECT_EQ(rig.counters->offers_withdrawn.value(), 1);
}

/// Everything that a failed commit must not have moved.
struct snapshot {
  std::vector<protocol::record> records;
  std::int64_t ready = 0, waiting = 0, offered = 0, held = 0, free_slots = 0;
  std::vector<std::int64_t> by_state;
  friend bool operator==(const snapshot&, const snapshot&) = default;
};

snapshot snapshot_of(coordinator_rig& rig) {
  snapshot s;
  rig.gateway().list_jobs({protocol::tenant_id{"t"}, {}, {}, {}}, "", 100,
                          [&](const actors::job_page& p) {
                            for (const auto& j : p.jobs) s.records.push_back(*j.state);
                          });
  rig.gateway().queues(protocol::tenant_id{"t"},
                       [&](const std::vector<actors::queue_view>& queues) {
                         for (const auto& q : queues) {
                           s.ready += q.ready;
                           s.waiting += q.waiting;
                           s.offered += q.offered;
                           s.held += q.held;
                           s.free_slots += q.free_slots;
                         }
                       });
  rig.settle();
  for (const auto& count : rig.counters->leases) s.by_state.push_back(count.value());
  return s;
}

/// One message of a life, and how its refusal shows.
using message = std::function<reason(coordinator_rig&, rig_worker&)>;

std::vector<message> messages_of_a_life() {
  return {
      [](auto& rig, auto&) { return submit(rig, "j").reason; },
      [](auto&, auto& w) { return w.progress("j", 1, 1, "early").reason; },
      [](auto&, auto& w) { return w.ack("j", 1).reason; },
      [](auto&, auto& w) { return w.renew("j", 1, 1).reason; },
      [](auto&, auto& w) { return w.progress("j", 1, 2, "half").reason; },
      [](auto& rig, auto&) { return operate(rig, "j", cancel_event()).reason; },
      [](auto&, auto& w) { return w.tell(w.frame(event_kind::cancel_ack, "j", 1)).reason; },
      [](auto&, auto& w) { return w.result("j", 1, protocol::outcome::cancelled).reason; },
      [](auto&, auto& w) { return w.renew("j", 1, 9).reason; },
  };
}

TEST(Commit, AFailedCommitLooksAsIfItsMessageNeverCame) {
  const auto life = messages_of_a_life();
  for (std::size_t failing = 0; failing < life.size(); ++failing) {
    SCOPED_TRACE("message " + std::to_string(failing));
    coordinator_rig rig;
    rig_worker w(rig, "w");
    w.credit(1);
    for (std::size_t i = 0; i < failing; ++i) life[i](rig, w);
    const auto before = snapshot_of(rig);
    rig.store->fail_commit(1);
    EXPECT_EQ(life[failing](rig, w), reason::store_unavailable);
    EXPECT_EQ(snapshot_of(rig), before);
    // The repeat finds nothing in its way, and the life ends as it would have.
    EXPECT_NE(life[failing](rig, w), reason::store_unavailable);
    for (auto i = failing + 1; i < life.size(); ++i) life[i](rig, w);
    EXPECT_EQ(job(rig, "j")->state->state, lease_state::cancelled);
  }
}

TEST(Commit, AFailedOfferIsMadeAgainAndKeepsNoSlot) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  submit(rig, "j");
  rig.store->fail_commit(1);
  w.credit(1);
  EXPECT_TRUE(w.session->all<protocol::offer>().empty());
  auto s = snapshot_of(rig);
  EXPECT_EQ(s.free_slots, 1);
  EXPECT_EQ(s.offered + s.held, 0);
  rig.advance(1000);
  ASSERT_EQ(w.session->all<protocol::offer>().size(), 1U);
  EXPECT_EQ(w.session->all<protocol::offer>()[0].standing.gen, protocol::generation{1});
}

TEST(Commit, AFailedExpiryFiresAgainAndIsDatedAtItsDeadline) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  w.credit(0);
  const auto deadline = job(rig, "j")->state->expires_at;
  rig.store->fail_commit(1);
  rig.advance(30'000);
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::active);
  EXPECT_TRUE(w.session->all<protocol::lease_lost>().empty());
  rig.advance(1'000);
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::expired);
  EXPECT_EQ(job(rig, "j")->state->next_offer_at, deadline);
  EXPECT_EQ(w.session->all<protocol::lease_lost>().size(), 1U);
}

TEST(Commit, TheStoreIsAskedAgainSoThatReadinessComesBackByItself) {
  actors::actor_options options;
  options.checkpoint_interval = {1};
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  rig.store->fail_commit(1);
  EXPECT_EQ(submit(rig, "j").reason, reason::store_unavailable);
  EXPECT_EQ(rig.counters->commit_failures.value(), 1);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (rig.counters->store_failing.value() != 0 && std::chrono::steady_clock::now() < give_up) {
    rig.settle();
  }
  EXPECT_EQ(rig.counters->store_failing.value(), 0);
}

TEST(Session, ASecondSessionOfOneHolderSupersedesTheFirst) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  const auto first = w.session;
  w.connect();
  EXPECT_EQ(first->closed, protocol::close_code::superseded);
  EXPECT_FALSE(w.session->closed);
  EXPECT_EQ(w.session->all<protocol::welcome>().size(), 1U);
}

TEST(Session, AFrameThatNamesAnotherHolderTouchesNoLease) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  rig_worker thief(rig, "thief", "b");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  const auto rows = rig.counters->last_row.value();
  auto forged = thief.frame(event_kind::renew, "j", 1, 1);
  forged.what.from = w.holder();
  EXPECT_EQ(thief.tell(std::move(forged)).reason, reason::holder_not_yours);
  EXPECT_EQ(rig.counters->last_row.value(), rows);
}

TEST(Session, ADisconnectChangesNoAuthority) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  w.disconnect();
  rig.advance(29'999);
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::active);
}

TEST(Session, ACancelIsToldAgainAtEveryReconnect) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  w.disconnect();
  EXPECT_EQ(operate(rig, "j", cancel_event()).reason, reason::cancel_requested);
  for (int reconnect = 0; reconnect < 2; ++reconnect) {
    w.connect({{protocol::lease_id{"j"}, {1}, {}}});
    EXPECT_EQ(w.session->all<protocol::cancel_notice>().size(), 1U);
  }
}

TEST(Session, GoodbyeHandsLeasesBackAndClosesOnceTheyAreReleased) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  w.say(protocol::goodbye{{{protocol::lease_id{"j"}, {1}, {}}}});
  rig.settle();
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::released);
  EXPECT_EQ(w.session->closed, protocol::close_code::goodbye);
}

TEST(Session, TooManyFramesInFlightStopTheReadingUntilHalfAreAnswered) {
  actors::actor_options options;
  options.frames_in_flight = 8;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  rig.store->hold();
  for (int i = 1; i <= 8; ++i) w.say(w.frame(event_kind::renew, "j", 1, i));
  rig.settle();
  EXPECT_TRUE(w.session->paused);
  rig.store->resume();
  rig.settle();
  EXPECT_FALSE(w.session->paused);
}

TEST(Queue, TheBestJobGoesFirstByPriorityThenByAge) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  submit(rig, "old");
  rig.advance(1);
  submit(rig, "young");
  rig.advance(1);
  submit(rig, "urgent", {.queue = "q", .priority = 5});
  w.credit(3);
  std::vector<std::string> order;
  for (const auto& o : w.session->all<protocol::offer>()) order.push_back(o.job.value);
  EXPECT_EQ(order, (std::vector<std::string>{"urgent", "old", "young"}));
}

TEST(Queue, AJobIsNotOfferedBeforeItsNotBefore) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j", {.queue = "q", .not_before = rig.clock->now() + protocol::duration{500}});
  rig.advance(499);
  EXPECT_TRUE(w.session->all<protocol::offer>().empty());
  rig.advance(1);
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 1U);
}

TEST(Queue, AJobThatNoWorkerMatchesHidesNoOther) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  submit(rig, "gpu", {.queue = "q", .labels = {{"gpu", "yes"}}, .priority = 9});
  submit(rig, "plain");
  w.credit(2);
  const auto offers = w.session->all<protocol::offer>();
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].job.value, "plain");
}

TEST(Queue, ALimitBoundsTheLiveLeasesOfTheQueue) {
  actors::actor_options options;
  options.queue_limits["q"] = 2;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  rig_worker w(rig, "w");
  w.credit(10);
  for (int i = 0; i < 4; ++i) submit(rig, "j" + std::to_string(i));
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 2U);
  w.ack("j0", 1);
  w.result("j0", 1);
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 3U);
}

TEST(Queue, AJobPastItsNotAfterIsCancelledAndNotOffered) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  submit(rig, "j", {.queue = "q", .not_after = rig.clock->now() + protocol::duration{100}});
  rig.advance(100);
  w.credit(1);
  EXPECT_TRUE(w.session->all<protocol::offer>().empty());
  EXPECT_EQ(job(rig, "j")->state->state, lease_state::cancelled);
}

TEST(Submit, TheSameJobAgainIsADuplicateAndAnotherBodyIsRefused) {
  coordinator_rig rig;
  submit(rig, "j", {.queue = "q", .payload = "a"});
  const auto again = submit(rig, "j", {.queue = "q", .payload = "a"});
  EXPECT_EQ(again.reason, reason::duplicate_request);
  EXPECT_FALSE(again.created);
  EXPECT_EQ(submit(rig, "j", {.queue = "q", .payload = "b"}).reason, reason::request_reused);
}

std::vector<protocol::stored_row> all_rows(coordinator_rig& rig) {
  return std::get<std::vector<protocol::stored_row>>(rig.store->rows_from({1}, 100'000));
}

std::int64_t rows_of_kind(coordinator_rig& rig, event_kind kind) {
  return std::ranges::count_if(all_rows(rig), [&](const auto& r) { return r.input.kind == kind; });
}

TEST(Refusals, TheirLikeBeyondAHundredAMinuteAreOneCountedRow) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  w.result("j", 1);
  for (int i = 1; i <= 250; ++i) EXPECT_EQ(w.renew("j", 1, i).reason, reason::lease_settled);
  EXPECT_EQ(rows_of_kind(rig, event_kind::renew), 100);
  EXPECT_EQ(rows_of_kind(rig, event_kind::counted), 0);
  rig.advance(60'000);
  ASSERT_EQ(rows_of_kind(rig, event_kind::counted), 1);
  const auto row = all_rows(rig).back();
  EXPECT_EQ(row.answer.reason, reason::lease_settled);
  EXPECT_NE(row.attachment.find("number=150\n"), std::string::npos) << row.attachment;
  EXPECT_NE(row.attachment.find("first_sequence=101\nlast_sequence=250\n"), std::string::npos);
  protocol::fold folded;
  for (const auto& r : all_rows(rig)) {
    const auto wrong = folded.feed(r);
    EXPECT_FALSE(wrong) << wrong->sentence;
  }
  // The next minute has a budget of its own.
  w.renew("j", 1, 1);
  EXPECT_EQ(rows_of_kind(rig, event_kind::renew), 101);
}

TEST(Refusals, OneMessageCannotSpendMoreThanTheBudget) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  std::vector<decltype(protocol::worker_frame::body)> many;
  for (int i = 1; i <= 300; ++i) many.emplace_back(w.frame(event_kind::renew, "nobody", 1, i));
  const auto first = w.say_all(std::move(many));
  rig.settle();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(w.session->verdict_of(first + i)) << i;
    EXPECT_EQ(w.session->verdict_of(first + i)->reason, reason::unknown_lease);
  }
  EXPECT_EQ(rows_of_kind(rig, event_kind::renew), 100);
  rig.advance(60'000);
  EXPECT_EQ(rows_of_kind(rig, event_kind::counted), 1);
}

TEST(Session, AFrameAboutAQueueThatIsNotGrantedTouchesNoLease) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  rig_worker other(rig, "other", "b", {"own"}, {"own"});
  w.credit(1);
  submit(rig, "j");
  w.ack("j", 1);
  const auto rows = rig.counters->last_row.value();
  const auto said = other.renew("j", 1, 1);
  EXPECT_EQ(said.reason, reason::forbidden);
  EXPECT_EQ(said.standing.state, lease_state::none) << "nothing is told about the lease";
  EXPECT_EQ(rig.counters->last_row.value(), rows);
  EXPECT_FALSE(job(rig, "j")->state->frozen);
}

TEST(Evidence, RowsOfALeaseThatNobodyKnowsFoldWhereverTheyCame) {
  coordinator_rig rig;
  rig_worker w(rig, "w");
  for (int i = 1; i <= 3; ++i) {
    w.say(w.frame(event_kind::renew, "nobody", 1, i));  // one message each, back to back
  }
  rig.settle();
  w.renew("nobody", 1, 4);
  submit(rig, "nobody");
  protocol::fold folded;
  for (const auto& r : all_rows(rig)) {
    const auto wrong = folded.feed(r);
    EXPECT_FALSE(wrong) << wrong->row.value << " " << wrong->column << " " << wrong->sentence;
  }
  EXPECT_EQ(rows_of_kind(rig, event_kind::renew), 4);
}

}  // namespace
}  // namespace leasehold::tests
