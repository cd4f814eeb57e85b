// What readers of dispatch tables are shown, and who wins when several write them.
#include <algorithm>
#include <barrier>
#include <map>
#include <thread>

#include "tests/store/dispatch_conformance.hpp"

namespace leasehold::tests {
namespace {

using protocol::dispatch_operation;
using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;
using protocol::reason;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- Pages

TEST_P(DispatchConformance, PagesHoldEveryRecordOnceInTheOrderOfItsKey) {
  EXPECT_THAT(jobs({}), IsEmpty());
  for (const auto* tenant : {"b", "a", "ab"}) {
    for (const auto* job : {"z", "0", "\xc3\xa9", "Z", "zz"}) open(job_key(job, tenant));
  }
  std::vector<std::string> expected;
  for (const auto* tenant : {"a", "ab", "b"}) {
    for (const auto* job : {"0", "Z", "z", "zz", "\xc3\xa9"}) {
      expected.push_back(std::string(tenant) + "/" + job);
    }
  }
  for (const std::size_t limit : {1U, 2U, 14U, 15U, 16U, 64U}) {
    EXPECT_EQ(jobs({.limit = limit}), expected) << limit;
  }
}

TEST_P(DispatchConformance, APageIsNoLongerThanItsHardBound) {
  std::vector<protocol::dispatch_change> all;
  for (int i = 0; i < 66; ++i) all.push_back(opening(job_key("job-" + std::to_string(100 + i))));
  subject_->apply(all);
  EXPECT_EQ(page({.limit = 1'000}).records.size(), actors::most_dispatches);
  EXPECT_EQ(page({.limit = 65}).records.size(), actors::most_dispatches);
  EXPECT_EQ(page({.limit = 64}).records.size(), 64U);
  EXPECT_EQ(page({.limit = 63}).records.size(), 63U);
  EXPECT_EQ(page({.limit = 0}).records.size(), 1U);
}

TEST_P(DispatchConformance, ACursorThatIsNoneOfOursIsRefused) {
  open(job_key("a"));
  for (const auto* cursor : {"x", "4acme", "9:acme", ":", "-1:a", "99999999999999999999:a"}) {
    const auto said =
        said_of<actors::dispatch_page>([&](auto hear) { store().page({.from = {cursor}}, hear); });
    EXPECT_TRUE(std::holds_alternative<actors::store_error>(said)) << cursor;
  }
  const auto said = said_of<actors::dispatch_page>(
      [&](auto hear) { store().page({.from = {"1:" + std::string(511, 'a')}}, hear); });
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(said));
}

TEST_P(DispatchConformance, APageHasWhatItsFiltersSay) {
  for (const auto* job : {"a", "b", "c", "d"}) {
    register_process(job_key(job));
    open(job_key(job));
  }
  open(job_key("e", "other"));
  report(claim(job_key("b")), dispatch_result::termination_requested);  // the process stage
  report(claim(job_key("c")), dispatch_result::pid_mismatch);
  close(job_key("d"));
  EXPECT_THAT(jobs({.statuses = {dispatch_status::blocked}}), ElementsAre("acme/c"));
  EXPECT_THAT(jobs({.statuses = {dispatch_status::closed, dispatch_status::blocked}}),
              ElementsAre("acme/c", "acme/d"));
  EXPECT_THAT(jobs({.statuses = {dispatch_status::leased}}), IsEmpty());
  EXPECT_THAT(jobs({.stage = dispatch_stage::process}), ElementsAre("acme/b"));
  EXPECT_THAT(jobs({.host = std::string(boot)}),
              ElementsAre("acme/a", "acme/b", "acme/c", "acme/d"));
  EXPECT_THAT(jobs({.host = ""}), ElementsAre("other/e"));
  EXPECT_THAT(jobs({.tenant = protocol::tenant_id("other")}), ElementsAre("other/e"));
  EXPECT_THAT(jobs({.statuses = {dispatch_status::pending},
                    .stage = dispatch_stage::stream,
                    .tenant = protocol::tenant_id("acme")}),
              ElementsAre("acme/a"));
}

TEST_P(DispatchConformance, WhatMayBeClaimedNowIsNotHiddenByWhatMayNot) {
  for (int i = 0; i < 5; ++i) {
    const auto n = std::to_string(i);
    open(job_key("closed-" + n));
    close(job_key("closed-" + n));
    open(job_key("blocked-" + n));
    report(claim(job_key("blocked-" + n)), dispatch_result::invalid);
    open(job_key("done-" + n));
    report(claim(job_key("done-" + n)), dispatch_result::already_exited);
  }
  open(job_key("leased"));
  open(job_key("retry"));
  open(job_key("wanted"));
  report(claim(job_key("retry")), dispatch_result::dispatch_error);
  claim(job_key("leased"));
  const actors::dispatch_query claimable{.claimable = true, .limit = 1};
  EXPECT_THAT(jobs(claimable), ElementsAre("acme/wanted"));
  EXPECT_EQ(page(claimable).records.size(), 1U);
  const auto begun = now();
  subject_->set_time(begun + protocol::duration{999});
  EXPECT_THAT(jobs(claimable), ElementsAre("acme/wanted"));
  subject_->set_time(begun + protocol::duration{1'000});
  EXPECT_THAT(jobs(claimable), ElementsAre("acme/retry", "acme/wanted"));
  subject_->set_time(begun + protocol::duration{29'999});
  EXPECT_THAT(jobs(claimable), ElementsAre("acme/retry", "acme/wanted"));
  subject_->set_time(begun + protocol::duration{30'000});
  EXPECT_THAT(jobs(claimable), ElementsAre("acme/leased", "acme/retry", "acme/wanted"));
}

// ---- Proof and counts

TEST_P(DispatchConformance, WhatHasExitedComesInTheOrderOfItsChangeUntilItIsClosed) {
  const auto begun = now();
  for (const auto* job : {"c", "a", "b", "d"}) {
    open(job_key(job));
    pass(10);
    report(claim(job_key(job)),
           *job == 'd' ? dispatch_result::termination_requested : dispatch_result::already_exited);
  }
  EXPECT_THAT(exited({}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(exited({}, 2), ElementsAre("c", "a"));
  EXPECT_THAT(exited(begun + protocol::duration{20}), ElementsAre("a", "b"));
  EXPECT_THAT(exited(begun + protocol::duration{21}), ElementsAre("b"));
  close(job_key("a"), 1);
  EXPECT_THAT(exited({}), ElementsAre("c", "b"));
}

TEST_P(DispatchConformance, CountsAreByStageStatusAndResultWithTheAgeOfTheOldest) {
  const auto begun = now();
  const auto count = [&] {
    return value_of(said_of<actors::dispatch_counts>([&](auto hear) { store().count(hear); }))
        .cells;
  };
  EXPECT_THAT(count(), IsEmpty());
  for (const auto* job : {"a", "b", "c"}) {
    open(job_key(job));
    pass(10);
  }
  report(claim(job_key("b")), dispatch_result::pid_mismatch);
  const auto cells = count();
  ASSERT_EQ(cells.size(), 2U);
  for (const auto& each : cells) {
    EXPECT_EQ(each.stage, dispatch_stage::stream);
    const bool is_blocked = each.status == dispatch_status::blocked;
    EXPECT_EQ(each.records, is_blocked ? 1 : 2);
    EXPECT_EQ(each.oldest, is_blocked ? begun + protocol::duration{10} : begun);
    EXPECT_EQ(each.last_result, is_blocked ? dispatch_result::pid_mismatch : dispatch_result::none);
  }
}

TEST_P(DispatchConformance, TheTimeIsTheCoordinators) {
  EXPECT_EQ(value_of(store().now()), now());
  pass(123);
  EXPECT_EQ(value_of(store().now()), now());
}

// ---- Several

TEST_P(DispatchConformance, AnotherClaimantSeesTheSameRecordsAndEvents) {
  open(job_key("a"));
  const auto other = subject_->another();
  using answers = std::vector<actors::dispatch_claimed>;
  const auto claimed = value_of(said_of<answers>(
      [&](auto hear) { other->claim({claim_of(job_key("a"), "two")}, pace_, hear); }));
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed.front().why, reason::none);
  EXPECT_EQ(claim(job_key("a")).why, reason::claim_held);
  using reported = std::vector<actors::dispatch_reported>;
  const auto said = value_of(said_of<reported>([&](auto hear) {
    other->report({report_of(claimed.front(), dispatch_result::already_exited)}, pace_, hear);
  }));
  EXPECT_EQ(said.front().why, reason::none);
  EXPECT_EQ(record(job_key("a")).status, dispatch_status::dispatched);
  EXPECT_EQ(events(job_key("a")).size(), 1U);
}

/// Claims every job as soon as all the others may, and counts by job who was let.
std::map<std::string, int> race(const std::vector<std::shared_ptr<actors::dispatch_store>>& all,
                                const std::vector<protocol::dispatch_claim>& claims,
                                const protocol::dispatch_pace& pace) {
  std::barrier begin(static_cast<std::ptrdiff_t>(all.size()));
  std::mutex mutex;
  std::map<std::string, int> won;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      for (auto asked : claims) {
        asked.owner = "owner-" + std::to_string(i);
        asked.token[0] = static_cast<char>('0' + i);
        begin.arrive_and_wait();
        using answers = std::vector<actors::dispatch_claimed>;
        const auto said = said_of<answers>([&](auto hear) { all[i]->claim({asked}, pace, hear); });
        const auto* done = std::get_if<answers>(&said);
        const std::lock_guard lock(mutex);
        EXPECT_NE(done, nullptr) << std::get<actors::store_error>(said).sentence;
        if (done == nullptr) continue;
        const auto why = done->front().why;
        EXPECT_TRUE(why == reason::none || why == reason::claim_held);
        if (why == reason::none) won[asked.key.lease.value] += 1;
      }
    });
  }
  threads.clear();
  return won;
}

TEST_P(DispatchConformance, OfClaimantsThatRaceOneIsLetForEachClaimsLife) {
  std::vector<protocol::dispatch_claim> claims;
  for (int i = 0; i < 20; ++i) {
    const auto key = job_key("job-" + std::to_string(i));
    open(key);
    claims.push_back(claim_of(key));
  }
  const std::vector all{subject_->another(), subject_->another(), subject_->another(),
                        subject_->another()};
  for (int round = 1; round <= 2; ++round) {
    const auto won = race(all, claims, pace_);
    EXPECT_EQ(won.size(), claims.size());
    for (const auto& [job, count] : won) EXPECT_EQ(count, 1) << job;
    for (const auto& each : claims) EXPECT_EQ(record(each.key).version, round);
    subject_->set_time(now() + pace_.claim);
  }
}

}  // namespace
}  // namespace leasehold::tests
