// One bounded cycle of claims: who is called, what is reported, and what ends it.
#include "dispatch_rig.hpp"

namespace leasehold::tests {
namespace {

using actors::dispatch_cycle;
using actors::store_error;
using protocol::dispatch_result;
using protocol::dispatch_status;
using names = std::vector<std::string>;

using DispatchSupervisor = dispatch_rig;

TEST_F(DispatchSupervisor, APageIsClaimedAndReportedInOneCallEach) {
  open_many(3);
  const auto done = cycle();
  EXPECT_EQ(store->claims.size(), 1U);
  EXPECT_EQ(store->claims.at(0).size(), 3U);
  EXPECT_EQ(store->reports.size(), 1U);
  EXPECT_EQ(controller->called(), (names{"j00", "j01", "j02"}));
  EXPECT_EQ(done.seen, 3);
  EXPECT_EQ(done.claimed, 3);
  EXPECT_EQ(done.reported, 3);
  EXPECT_EQ(done.results.at(dispatch_result::termination_requested), 3);
  EXPECT_FALSE(done.more);
  EXPECT_FALSE(done.error);
  EXPECT_EQ(at("j00").status, dispatch_status::dispatched);
}

TEST_F(DispatchSupervisor, EachClaimHasATokenOfItsOwnAndTheNameOfItsOwner) {
  open_many(2);
  cycle();
  const auto& claims = store->claims.at(0);
  EXPECT_NE(claims[0].token, claims[1].token);
  EXPECT_EQ(claims[0].owner, "me");
  EXPECT_EQ(store->reports.at(0)[0].token, claims[0].token);
}

TEST_F(DispatchSupervisor, TheControllersOfAPageRunSideBySide) {
  open_many(3);
  begin();
  EXPECT_EQ(controller->calls.size(), 3U);
  EXPECT_FALSE(did);
  answer(2, dispatch_result::termination_requested);
  answer(0, dispatch_result::dispatch_error);
  EXPECT_TRUE(store->reports.empty()) << "one is still at it";
  answer(1, dispatch_result::already_exited);
  ASSERT_TRUE(did);
  EXPECT_EQ(store->reports.size(), 1U);
  EXPECT_EQ(at("j00").last_result, dispatch_result::dispatch_error);
  EXPECT_EQ(at("j01").last_result, dispatch_result::already_exited);
  EXPECT_EQ(at("j02").last_result, dispatch_result::termination_requested);
}

TEST_F(DispatchSupervisor, AnEmptyListEndsTheCycleWithoutAClaim) {
  const auto done = cycle();
  EXPECT_EQ(done.seen, 0);
  EXPECT_TRUE(store->claims.empty());
}

TEST_F(DispatchSupervisor, ItAsksOnlyForWhatItMayClaim) {
  how.stage = process;
  how.host = host;
  how.controllers = {{process, controller}};
  cycle();
  const auto& query = store->queries.at(0);
  EXPECT_TRUE(query.claimable);
  EXPECT_EQ(query.stage, process);
  EXPECT_EQ(query.host, host);
  EXPECT_EQ(query.limit, how.page);
}

TEST_F(DispatchSupervisor, ItsBoundsAreHard) {
  for (const auto& [asked, bound] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 1}, {1, 1}, {2, 2}, {63, 63}, {64, 64}, {65, 64}, {1'000'000, 64}}) {
    how.page = asked;
    how.cycle_pages = asked;
    make();
    // There is always another page.
    int turn = 100;
    store->on_page = [&](actors::dispatch_page& got) {
      got.next = actors::cursor_after(key(std::to_string(++turn)));
    };
    store->queries.clear();
    const auto done = cycle();
    EXPECT_FALSE(done.error);
    EXPECT_TRUE(done.more);
    EXPECT_EQ(store->queries.size(), bound) << asked;
    EXPECT_EQ(store->queries.at(0).limit, bound) << asked;
  }
}

TEST_F(DispatchSupervisor, ACycleEndsAtItsPagesAndTheNextOneGoesOnThere) {
  how.page = 2;
  how.cycle_pages = 2;
  open_many(7);
  EXPECT_TRUE(cycle().more);
  EXPECT_EQ(controller->called(), (names{"j00", "j01", "j02", "j03"}));
  controller->calls.clear();
  EXPECT_FALSE(cycle().more);
  EXPECT_EQ(controller->called(), (names{"j04", "j05", "j06"}));
}

TEST_F(DispatchSupervisor, RowsThatNeverQualifyDoNotHideThoseBehindThem) {
  how.page = 2;
  how.cycle_pages = 1;
  open_many(6);
  // The first four look claimable and are refused whenever somebody tries.
  store->on_claims = [](std::vector<actors::dispatch_claimed>& got) {
    for (auto& each : got) {
      if (each.record.key.lease.value < "j04") each.why = protocol::reason::claim_held;
    }
  };
  for (int i = 0; i < 3; ++i) cycle();
  EXPECT_EQ(controller->called(), (names{"j04", "j05"}));
}

TEST_F(DispatchSupervisor, ACycleThatBeganInTheMiddleGoesOnWithThoseBeforeItOnce) {
  how.page = 2;
  how.cycle_pages = 2;
  open_many(5);
  cycle();
  open("a");
  controller->calls.clear();
  cycle();
  EXPECT_EQ(controller->called(), (names{"j04", "a"}));
  store->queries.clear();
  cycle();
  EXPECT_EQ(store->queries.size(), 1U) << "it begins at the first again, and there is nothing";
}

// ---- fails closed

TEST_F(DispatchSupervisor, APageOverItsLimitCallsNobody) {
  how.page = 2;
  for (const int records : {1, 2}) {
    open_many(records);
    EXPECT_FALSE(cycle().error) << records;
  }
  controller->calls.clear();
  store->claims.clear();
  open("k0");
  open("k1");
  store->on_page = [](actors::dispatch_page& got) { got.records.push_back(got.records.front()); };
  const auto done = cycle();
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->what, store_error::kind::corrupt);
  EXPECT_TRUE(controller->calls.empty());
  EXPECT_TRUE(store->claims.empty());
}

TEST_F(DispatchSupervisor, AMissingOrUnmovedCursorCallsNobodyAndTheNextCycleBeginsAnew) {
  how.page = 1;
  open_many(3);
  for (const auto& [cursor, calls] :
       std::vector<std::pair<std::string, std::size_t>>{{"", 0}, {std::string(513, 'x'), 0}}) {
    store->on_page = [&cursor = cursor](actors::dispatch_page& got) {
      got.next = actors::dispatch_cursor{cursor};
    };
    const auto done = cycle();
    ASSERT_TRUE(done.error);
    EXPECT_EQ(controller->calls.size(), calls);
    EXPECT_TRUE(store->claims.empty());
  }
  // The cursor of the second page is that which led to it.
  std::optional<actors::dispatch_cursor> first;
  store->on_page = [&](actors::dispatch_page& got) {
    if (first) got.next = first;
    first = got.next;
  };
  const auto done = cycle();
  ASSERT_TRUE(done.error);
  EXPECT_EQ(controller->called(), (names{"j00"})) << "the second page called nobody";
  store->on_page = nullptr;
  store->queries.clear();
  EXPECT_FALSE(cycle().error);
  EXPECT_EQ(store->queries.at(0).from, actors::dispatch_cursor{});
}

TEST_F(DispatchSupervisor, CursorsInARoundCallNobodyTwice) {
  how.page = 1;
  how.cycle_pages = 64;
  open_many(3);
  int turn = 0;
  store->on_page = [&](actors::dispatch_page& got) {
    if (++turn == 3) got.next = actors::dispatch_cursor{store->queries.at(1).from};
  };
  EXPECT_TRUE(cycle().error);
  EXPECT_EQ(store->queries.size(), 3U);
  EXPECT_EQ(controller->called(), (names{"j00", "j01"}));
}

TEST_F(DispatchSupervisor, AnswersThatAreNotToOurClaimsCallNobody) {
  open_many(2);
  const auto expect_nobody = [&](auto falsify) {
    store->on_claims = falsify;
    cycle();
    EXPECT_TRUE(controller->calls.empty());
    pass(2'000);
  };
  using claimed = std::vector<actors::dispatch_claimed>;
  expect_nobody([](claimed& got) { got.pop_back(); });
  expect_nobody([](claimed& got) { got.push_back(got.back()); });
  expect_nobody([](claimed& got) {
    for (auto& each : got) each.record.lease_token = std::string(32, 'f');
  });
  expect_nobody([](claimed& got) {
    for (auto& each : got) each.record.lease_owner = "another";
  });
  expect_nobody([](claimed& got) {
    for (auto& each : got) each.record.gen = protocol::generation{8};
  });
  expect_nobody([](claimed& got) {
    for (auto& each : got) each.record.status = dispatch_status::pending;
  });
  expect_nobody([](claimed& got) { std::swap(got[0], got[1]); });
}

TEST_F(DispatchSupervisor, WithoutARandomTokenNothingIsClaimed) {
  open("j");
  for (const auto* text :
       {"", "0123", "0123456789abcdef0123456789abcde", "0123456789ABCDEF0123456789ABCDEF"}) {
    how.make_token = [text] { return std::string(text); };
    make();
    EXPECT_TRUE(cycle().error);
    EXPECT_TRUE(store->claims.empty());
  }
}

TEST_F(DispatchSupervisor, AnErrorOfTheStoreEndsTheCycleAndTheNextOneGoesOn) {
  open("j");
  kept->fail_next(store_error::kind::busy);
  EXPECT_EQ(cycle().error->what, store_error::kind::busy);
  EXPECT_TRUE(store->claims.empty());
  EXPECT_EQ(cycle().reported, 1);
}

TEST_F(DispatchSupervisor, AClaimWhoseAnswerIsLostCallsNobodyUntilItExpires) {
  open("j");
  store->on_page = [this](actors::dispatch_page&) { kept->lose_next_answer(); };
  EXPECT_TRUE(cycle().error);
  store->on_page = nullptr;
  EXPECT_TRUE(controller->calls.empty());
  pass(999);
  EXPECT_EQ(cycle().claimed, 0);
  pass(1);
  EXPECT_EQ(cycle().claimed, 1);
  EXPECT_EQ(at("j").dispatch_count, 2);
}

TEST_F(DispatchSupervisor, AReportThatFailsLeavesTheClaimToExpire) {
  open("j");
  begin();
  kept->fail_next(store_error::kind::full);
  answer(0, dispatch_result::termination_requested);
  ASSERT_TRUE(did);
  EXPECT_EQ(did->error->what, store_error::kind::full);
  EXPECT_EQ(at("j").status, dispatch_status::leased);
  pass(1'000);
  EXPECT_EQ(cycle().reported, 1);
}

// ---- controllers

TEST_F(DispatchSupervisor, WithoutAControllerItIsTriedAgainLater) {
  how.controllers.clear();
  open("j");
  EXPECT_EQ(cycle().results.at(dispatch_result::controller_missing), 1);
  EXPECT_EQ(at("j").status, dispatch_status::retry_wait);
  EXPECT_EQ(at("j").next_attempt_at, clock->now() + protocol::duration{100});
  pass(99);
  EXPECT_EQ(cycle().claimed, 0);
  pass(1);
  EXPECT_EQ(cycle().claimed, 1);
  EXPECT_EQ(at("j").dispatch_count, 2);
  EXPECT_EQ(at("j").next_attempt_at, clock->now() + protocol::duration{200});
}

TEST_F(DispatchSupervisor, AThrowingControllerIsAnErrorOfThisDispatch) {
  controller->throws = true;
  open("j");
  EXPECT_EQ(cycle().results.at(dispatch_result::dispatch_error), 1);
}

TEST_F(DispatchSupervisor, SettledDispatchedAndBlockedAreNeverCalled) {
  open_many(3);
  cycle(dispatch_result::identity_mismatch);
  ASSERT_EQ(at("j00").status, dispatch_status::blocked);
  kept->operate(key("j01"), protocol::dispatch_operation::resolve, [](const auto&) {});
  kept->operate(key("j02"), protocol::dispatch_operation::retry, [](const auto&) {});
  cycle(dispatch_result::termination_requested);
  controller->calls.clear();
  for (int i = 0; i < 5; ++i) {
    pass(1'000'000);
    EXPECT_EQ(cycle().seen, 0);
  }
  EXPECT_TRUE(controller->calls.empty());
}

TEST_F(DispatchSupervisor, AControllerThatDoesNotAnswerInTimeCountsAsNothing) {
  open_many(2);
  begin();
  answer(0, dispatch_result::termination_requested);
  pass(999);
  supervisor->look_after();
  strand.run();
  EXPECT_EQ(store->reports.size(), 1U) << "the one that answered is told in time";
  EXPECT_FALSE(did) << "the other still has a millisecond";
  pass(1);
  supervisor->look_after();
  strand.run();
  ASSERT_TRUE(did);
  EXPECT_EQ(did->reported, 1);
  answer(1, dispatch_result::termination_requested);
  EXPECT_EQ(store->reports.size(), 1U) << "too late";
  EXPECT_EQ(at("j01").last_result, dispatch_result::none);
  controller->calls.clear();
  EXPECT_EQ(cycle().claimed, 1) << "it is taken again";
  EXPECT_EQ(controller->called(), names{"j01"});
}

TEST_F(DispatchSupervisor, ALateAnswerIsNotTakenForOneOfTheNextCycle) {
  open("j");
  begin();
  pass(1'000);
  supervisor->look_after();
  strand.run();
  begin();
  ASSERT_EQ(controller->waiting.size(), 2U);
  answer(0, dispatch_result::already_exited);
  EXPECT_FALSE(did);
  answer(1, dispatch_result::termination_requested);
  ASSERT_TRUE(did);
  EXPECT_EQ(at("j").last_result, dispatch_result::termination_requested);
}

TEST_F(DispatchSupervisor, AControllerThatDropsItsAnswerHasNothingToReport) {
  open_many(2);
  begin();
  controller->waiting[0] = nullptr;
  strand.run();
  EXPECT_FALSE(did);
  answer(1, dispatch_result::termination_requested);
  ASSERT_TRUE(did);
  EXPECT_EQ(did->reported, 1);
  EXPECT_EQ(at("j00").status, dispatch_status::leased);
}

TEST_F(DispatchSupervisor, TheFirstAnswerCounts) {
  open_many(2);
  begin();
  answer(0, dispatch_result::termination_requested);
  answer(0, dispatch_result::identity_mismatch);
  answer(1, dispatch_result::termination_requested);
  ASSERT_TRUE(did);
  EXPECT_EQ(at("j00").status, dispatch_status::dispatched);
}

TEST_F(DispatchSupervisor, AClaimThatIsOverBeforeAnybodyActsCallsNobody) {
  open("j");
  for (const std::int64_t late : {1'000, 1'001}) {
    store->holds = true;
    begin();
    store->holds = false;
    store->answer();
    store->holds = true;
    strand.run();
    pass(late);
    store->answer();
    controller->at_once = dispatch_result::termination_requested;
    strand.run();
    ASSERT_TRUE(did);
    EXPECT_EQ(did->claimed, 1);
    EXPECT_TRUE(controller->calls.empty());
  }
}

TEST_F(DispatchSupervisor, EndingEarlyClaimsNoFurtherPageAndReportsEachAnswerAsItComes) {
  how.page = 2;
  open_many(4);
  begin();
  supervisor->end_early();
  answer(1, dispatch_result::termination_requested);
  EXPECT_EQ(store->reports.size(), 1U);
  EXPECT_FALSE(did);
  answer(0, dispatch_result::termination_requested);
  ASSERT_TRUE(did);
  EXPECT_EQ(did->reported, 2);
  EXPECT_TRUE(did->more);
  EXPECT_EQ(store->queries.size(), 1U);
}

TEST_F(DispatchSupervisor, ItsEndLeavesNoClaimUnreportedAndBeginsNoPage) {
  how.page = 1;
  open_many(2);
  begin();
  supervisor.reset();
  answer(0, dispatch_result::termination_requested);
  EXPECT_EQ(at("j00").status, dispatch_status::dispatched);
  ASSERT_TRUE(did);
  EXPECT_EQ(store->queries.size(), 1U);
}

}  // namespace
}  // namespace leasehold::tests
