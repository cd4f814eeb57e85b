// The epoch of a store: who may hold it, how long, and what is answered meanwhile. Two coordinators
// share a row in memory; their clocks are the test's.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>

#include "src/epoch_keeper.hpp"
#include "support/eventually.hpp"
#include "support/fake_epoch.hpp"

namespace leasehold::server {
namespace {

using tests::epoch_table;
using tests::eventually;
using tests::fake_epoch_store;

constexpr std::int64_t term = 3000;
constexpr std::int64_t margin = 300;

epoch_claim claim_of(const std::string& holder) { return {holder, holder + ":1", {term}}; }
epoch_row row_of(const std::string& holder, std::int64_t renewal = 1) {
  return {.epoch = 7, .renewal = renewal, .by = claim_of(holder)};
}
epoch_row won(const std::string& holder, std::int64_t epoch) {
  return {.epoch = epoch, .renewal = 100, .by = claim_of(holder)};
}
using plan = epoch_lease::plan;

// ---- the standby

TEST(epoch_lease, AStoreThatNobodyHadIsTakenAtOnce) {
  epoch_lease lease(claim_of("b"), 1000);
  EXPECT_EQ(lease.next(), (plan{epoch_step::look, 1000}));
  lease.looked(1005, std::nullopt);
  EXPECT_EQ(lease.next(), (plan{epoch_step::take, 1005}));
}

TEST(epoch_lease, AReleasedEpochIsTakenAtOnce) {
  epoch_lease lease(claim_of("b"), 1000);
  auto row = row_of("a");
  row.released = true;
  lease.looked(1005, row);
  EXPECT_EQ(lease.next().what, epoch_step::take);
}

TEST(epoch_lease, ARowIsTakenAWholeTermAfterItWasFirstSeenAsItIs) {
  epoch_lease lease(claim_of("b"), 0);
  lease.looked(10, row_of("a"));
  for (std::int64_t now = 160; now + 150 < 10 + term; now += 150) {
    EXPECT_EQ(lease.next().what, epoch_step::look) << now;
    lease.looked(now, row_of("a"));
  }
  lease.looked(10 + term - 1, row_of("a"));
  EXPECT_EQ(lease.next(), (plan{epoch_step::take, 10 + term}));
}

TEST(epoch_lease, ARenewalBeginsTheWaitAgain) {
  epoch_lease lease(claim_of("b"), 0);
  lease.looked(10, row_of("a", 1));
  lease.looked(2000, row_of("a", 2));
  lease.looked(2000 + term - 1, row_of("a", 2));
  EXPECT_EQ(lease.next(), (plan{epoch_step::take, 2000 + term}));
}

TEST(epoch_lease, TheTermThatCountsIsThatOfTheHolder) {
  epoch_lease lease(claim_of("b"), 0);
  auto row = row_of("a");
  row.by.term = {5 * term};
  lease.looked(10, row);
  lease.looked(10 + term, row);
  EXPECT_EQ(lease.next().what, epoch_step::look);
  lease.looked(10 + 5 * term - 1, row);
  EXPECT_EQ(lease.next(), (plan{epoch_step::take, 10 + 5 * term}));
}

TEST(epoch_lease, ATakeThatSomebodyElseWonBeginsTheWaitAgain) {
  epoch_lease lease(claim_of("b"), 0);
  lease.looked(10, row_of("a"));
  lease.took(10 + term, 12 + term, std::nullopt);
  EXPECT_FALSE(lease.holds());
  EXPECT_EQ(lease.next(), (plan{epoch_step::look, 12 + term}));
  lease.looked(20 + term, row_of("a"));
  EXPECT_EQ(lease.next().what, epoch_step::look);
}

TEST(epoch_lease, WhatALostTakeHasDoneIsReadFromTheRow) {
  epoch_lease lease(claim_of("b"), 0);
  lease.looked(10, std::nullopt);
  lease.failed(500);
  EXPECT_EQ(lease.next().what, epoch_step::look);
  lease.looked(1000, row_of("b"));
  EXPECT_FALSE(lease.holds());
  EXPECT_EQ(lease.next().what, epoch_step::take) << "it was never served under that epoch";
}

TEST(epoch_lease, ALookThatFailedSaysNothingAboutTheRow) {
  epoch_lease lease(claim_of("b"), 0);
  lease.looked(10, row_of("a"));
  lease.failed(2000);
  lease.looked(2500, row_of("a"));
  lease.looked(10 + term - 1, row_of("a"));
  EXPECT_EQ(lease.next(), (plan{epoch_step::take, 10 + term}));
}

// ---- the active one

epoch_lease holding(std::int64_t sent) {
  epoch_lease lease(claim_of("a"), 0);
  lease.looked(0, std::nullopt);
  lease.took(sent, sent + 700, won("a", 8));
  return lease;
}

TEST(epoch_lease, AuthorityCountsFromWhenTheClaimWasSent) {
  const auto lease = holding(1000);
  EXPECT_TRUE(lease.holds());
  EXPECT_EQ(lease.until_ms(), 1000 + term - margin);
  EXPECT_EQ(lease.next(), (plan{epoch_step::renew, 1000 + term / 3}));
}

TEST(epoch_lease, ARenewalCountsFromWhenItWasSent) {
  auto lease = holding(1000);
  lease.renewed(2000, won("a", 8));
  EXPECT_EQ(lease.until_ms(), 2000 + term - margin);
  EXPECT_EQ(lease.next(), (plan{epoch_step::renew, 2000 + term / 3}));
}

TEST(epoch_lease, ARenewalThatFailedMakesNothingLongerAndIsTriedSoon) {
  auto lease = holding(1000);
  lease.failed(2100);
  EXPECT_EQ(lease.until_ms(), 1000 + term - margin);
  EXPECT_EQ(lease.next(), (plan{epoch_step::renew, 2100 + term / 20}));
}

TEST(epoch_lease, ItIsOverAtItsEndAndNotBefore) {
  for (const std::int64_t late : {-1, 0, 1}) {
    auto lease = holding(1000);
    lease.pass(1000 + term - margin + late);
    EXPECT_EQ(lease.holds(), late < 0) << late;
    EXPECT_EQ(lease.lost(), late >= 0) << late;
  }
}

TEST(epoch_lease, WhatIsLostStaysLost) {
  auto lease = holding(1000);
  lease.pass(1000 + term);
  lease.renewed(1000 + term, won("a", 8));
  lease.depose();
  EXPECT_FALSE(lease.holds());
  EXPECT_TRUE(lease.lost());
  EXPECT_EQ(lease.next().what, epoch_step::none);
}

TEST(epoch_lease, ARenewalOfARowThatIsSomebodyElsesDeposes) {
  auto lease = holding(1000);
  lease.renewed(2000, std::nullopt);
  EXPECT_TRUE(lease.lost());
}

TEST(epoch_lease, OnlyAHolderIsDeposed) {
  epoch_lease lease(claim_of("b"), 0);
  lease.depose();
  EXPECT_FALSE(lease.lost());
  EXPECT_EQ(lease.next().what, epoch_step::look);
}

// ---- two of them, with calls that are slow, lost before or lost after they took effect

struct node {
  node(std::string name, std::int64_t offset, std::mt19937_64& random, epoch_table& table)
      : clock_offset(offset), store(table), lease(claim_of(name), offset), random_(random) {}

  [[nodiscard]] std::int64_t clock(std::int64_t real) const { return real + clock_offset; }

  /// One step at `real`, which takes a while; when it can go on again.
  void turn(std::int64_t real) {
    if (real < busy_until) return;
    finish(real);
    lease.pass(clock(real));
    const auto [what, at] = lease.next();
    if (what == epoch_step::none || at > clock(real)) return;
    sent = clock(real);
    asked = what;
    busy_until = real + static_cast<std::int64_t>(random_() % 40);
    if (random_() % 20 == 0) busy_until += 2 * term;  // it was stopped, or the network hung
    fate = static_cast<int>(random_() % 12);
    if (fate == 0) return;  // lost on its way there
    // It takes effect somewhere between the call and its answer.
    switch (what) {
      case epoch_step::look:
        found = std::get<0>(store.read());
        break;
      case epoch_step::take:
        found = std::get<0>(store.take(lease.row(), lease.mine()));
        break;
      case epoch_step::renew:
        found = std::get<0>(store.renew(*lease.row()));
        break;
      case epoch_step::none:
        break;
    }
  }
  void finish(std::int64_t real) {
    const auto what = std::exchange(asked, epoch_step::none);
    if (what == epoch_step::none) return;
    lease.pass(clock(real));
    if (fate <= 1) return lease.failed(clock(real));  // 1: its answer was lost
    if (what == epoch_step::look) lease.looked(clock(real), found);
    if (what == epoch_step::take) lease.took(sent, clock(real), found);
    if (what == epoch_step::renew) lease.renewed(sent, found);
  }
  [[nodiscard]] bool may_answer(std::int64_t real) const {
    return lease.holds() && clock(real) < lease.until_ms();
  }
  /// A process that was deposed begins again as a standby under another name.
  void begin_again(std::int64_t real, const std::string& name) {
    lease = epoch_lease(claim_of(name), clock(real));
  }

  std::int64_t clock_offset;
  fake_epoch_store store;
  epoch_lease lease;
  std::int64_t busy_until = 0;
  std::int64_t sent = 0;
  epoch_step asked = epoch_step::none;
  int fate = 0;
  std::optional<epoch_row> found;

 private:
  std::mt19937_64& random_;
};

TEST(epoch_lease, TwoNeverAnswerAtOnceAndOneOfThemSoonDoes) {
  std::int64_t takes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    epoch_table table;
    std::deque<node> all;
    for (const char* name : {"a", "b", "c"}) {
      all.emplace_back(name, static_cast<std::int64_t>(random() % 1'000'000), random, table);
    }
    std::int64_t names = 0;
    std::int64_t silent = 0;
    std::int64_t epoch = 0;
    for (std::int64_t real = 0; real < 200'000; real += 5) {
      int answering = 0;
      for (node& each : all) {
        each.turn(real);
        if (each.lease.lost()) each.begin_again(real, "n" + std::to_string(++names));
        if (!each.may_answer(real)) continue;
        ++answering;
        ASSERT_GE(each.lease.row()->epoch, epoch) << "seed " << seed;
        if (each.lease.row()->epoch > epoch) ++takes;
        epoch = each.lease.row()->epoch;
      }
      ASSERT_LE(answering, 1) << "seed " << seed << " at " << real;
      silent = answering == 0 ? silent + 5 : 0;
      ASSERT_LT(silent, 10 * term) << "seed " << seed << " at " << real;
    }
  }
  EXPECT_GT(takes, 60) << "nothing was ever taken over";
}

// ---- the role

TEST(active_role, AnswersFromServeUntilItsLeaseEnds) {
  std::int64_t now = 1000;
  active_role role([&] { return now; });
  EXPECT_EQ(role.why_silent(), protocol::reason::standby);
  role.take(3, "here:1", true);
  role.extend(1500);
  EXPECT_EQ(role.why_silent(), protocol::reason::not_ready);
  role.serve();
  EXPECT_TRUE(role.may_answer());
  EXPECT_EQ(role.active(), "here:1");
  EXPECT_EQ(role.takeovers(), 1);
  now = 1499;
  EXPECT_TRUE(role.may_answer());
  now = 1500;
  EXPECT_FALSE(role.may_answer());
  EXPECT_EQ(role.why_silent(), protocol::reason::standby);
}

TEST(active_role, NothingRevivesARoleThatHasEnded) {
  active_role role([] { return std::int64_t{1000}; });
  role.take(3, "here:1", false);
  role.extend(5000);
  role.serve();
  role.end();
  EXPECT_FALSE(role.may_answer());
  role.extend(9000);
  role.serve();
  EXPECT_FALSE(role.may_answer());
  EXPECT_EQ(role.role(), server_role::standby);
}

TEST(active_role, AStoreOfOneCoordinatorIsServedForEver) {
  active_role role([] { return std::numeric_limits<std::int64_t>::max(); });
  role.serve_for_ever();
  EXPECT_TRUE(role.may_answer());
}

// ---- the threads

struct kept_node {
  kept_node(epoch_table& table, const std::string& name)
      : kept(std::make_unique<fake_epoch_store>(table)) {
    store = kept.get();
    epoch_keeper_options how;
    how.mine = {name, name + ":1", {1000}};
    how.boottime_ms = [this] { return clock(); };
    how.role = role;
    how.store = std::move(kept);
    how.on_taken = [this](std::int64_t epoch, bool over) {
      taken = epoch;
      was_over = over;
      role->serve();
    };
    how.on_deposed = [this](const deposed& why) {
      lost = why.epoch;
      ++told;
    };
    how.on_trouble = [this](const actors::store_error* why) { trouble = why != nullptr; };
    keeper = std::make_unique<epoch_keeper>(std::move(how));
  }
  [[nodiscard]] std::int64_t clock() const {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count() + jump;
  }

  std::atomic<std::int64_t> jump{0};
  std::shared_ptr<active_role> role = std::make_shared<active_role>([this] { return clock(); });
  std::unique_ptr<fake_epoch_store> kept;
  fake_epoch_store* store;
  std::atomic<std::int64_t> taken{0};
  std::atomic<bool> was_over{false};
  std::atomic<std::int64_t> lost{0};
  std::atomic<int> told{0};
  std::atomic<bool> trouble{false};
  std::unique_ptr<epoch_keeper> keeper;
};

TEST(epoch_keeper, TheFirstServesAndTheOtherTakesWhatItGivesBackAtOnce) {
  epoch_table table;
  kept_node a(table, "a");
  kept_node b(table, "b");
  a.keeper->start();
  ASSERT_TRUE(eventually([&] { return a.role->may_answer(); }));
  b.keeper->start();
  ASSERT_TRUE(eventually([&] { return b.role->active() == "a:1"; }));
  EXPECT_FALSE(b.role->may_answer());
  a.keeper->release();
  EXPECT_FALSE(a.role->may_answer());
  ASSERT_TRUE(eventually([&] { return b.role->may_answer(); }));
  EXPECT_EQ(b.taken, 2);
  EXPECT_FALSE(b.was_over);
  EXPECT_EQ(a.told, 0) << "whoever gives it back was not deposed";
}

TEST(epoch_keeper, WhoeverIsCutOffFallsSilentBeforeTheOtherServes) {
  epoch_table table;
  kept_node a(table, "a");
  kept_node b(table, "b");
  a.keeper->start();
  ASSERT_TRUE(eventually([&] { return a.role->may_answer(); }));
  b.keeper->start();
  a.store->fail = true;
  ASSERT_TRUE(eventually([&] {
    EXPECT_FALSE(a.role->may_answer() && b.role->may_answer());
    return b.role->may_answer();
  }));
  EXPECT_TRUE(b.was_over);
  EXPECT_EQ(a.lost, 1);
  EXPECT_EQ(a.told, 1);
}

TEST(epoch_keeper, AnAnswerThatNeverComesDoesNotKeepTheLeaseAlive) {
  epoch_table table;
  kept_node a(table, "a");
  a.keeper->start();
  ASSERT_TRUE(eventually([&] { return a.role->may_answer(); }));
  a.store->hang = true;
  ASSERT_TRUE(eventually([&] { return a.told == 1; }));
  EXPECT_FALSE(a.role->may_answer());
  a.store->hang = false;
}

TEST(epoch_keeper, WhoWakesAfterItsTermAnswersNothing) {
  epoch_table table;
  kept_node a(table, "a");
  a.keeper->start();
  ASSERT_TRUE(eventually([&] { return a.role->may_answer(); }));
  a.jump = 60'000;
  EXPECT_FALSE(a.role->may_answer()) << "before any thread has looked";
  EXPECT_TRUE(eventually([&] { return a.told == 1; }));
}

TEST(epoch_keeper, ACommitThatWasRefusedEndsTheRoleAtOnce) {
  epoch_table table;
  kept_node a(table, "a");
  a.keeper->start();
  ASSERT_TRUE(eventually([&] { return a.role->may_answer(); }));
  a.keeper->depose("the store said so");
  EXPECT_FALSE(a.role->may_answer());
  a.keeper->depose("the store said so");
  EXPECT_EQ(a.told, 1);
}

TEST(epoch_keeper, AStandbyTellsOfAStoreThatDoesNotAnswer) {
  epoch_table table;
  kept_node b(table, "b");
  b.store->fail = true;
  b.keeper->start();
  ASSERT_TRUE(eventually([&] { return b.trouble.load(); }));
  EXPECT_FALSE(b.role->may_answer());
  b.store->fail = false;
  EXPECT_TRUE(eventually([&] { return b.role->may_answer(); }));
  EXPECT_FALSE(b.trouble);
}

}  // namespace
}  // namespace leasehold::server
