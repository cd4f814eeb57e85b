// The operator's limits: exact over all threads, given back when nothing came of a submit, and
// changed while running.
#include <gtest/gtest.h>

#include <thread>

#include "actors/usage.hpp"
#include "support/coordinator_rig.hpp"

namespace leasehold::tests {
namespace {

using protocol::reason;

actors::actor_options with_leases(std::int64_t most) {
  actors::actor_options options;
  options.leases_per_tenant = most;
  return options;
}

actors::job_spec with_payload(std::size_t bytes) {
  actors::job_spec spec;
  spec.payload = std::string(bytes, 'p');
  return spec;
}

TEST(Limits, ATenantHasAsManyLeasesAsTheLimitSays) {
  coordinator_rig rig(std::make_shared<memory_store>(), with_leases(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(submit(rig, std::to_string(i)).reason, reason::submitted);
  EXPECT_EQ(submit(rig, "3").reason, reason::rate_limited);
  EXPECT_EQ(submit(rig, "2").reason, reason::duplicate_request) << "a repeat is no new lease";
}

TEST(Limits, SubmitsOnTheirWayCount) {
  auto store = std::make_shared<memory_store>();
  coordinator_rig rig(store, with_leases(2));
  store->hold();
  std::vector<reason> said;
  for (int i = 0; i < 4; ++i) {
    rig.gateway().submit({protocol::tenant_id{"t"}, protocol::job_id{std::to_string(i)}, {"q"}},
                         [&](const actors::answer& a) { said.push_back(a.reason); });
  }
  rig.settle();
  EXPECT_EQ(said, (std::vector{reason::rate_limited, reason::rate_limited}));
  store->resume();
  rig.settle();
  EXPECT_EQ(std::ranges::count(said, reason::submitted), 2);
}

TEST(Limits, WhatASubmitTookIsGivenBackWhenItsCommitFails) {
  auto options = with_leases(1);
  options.payload_bytes = 10;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  rig.store->fail_commit(1);
  EXPECT_EQ(submit(rig, "j", with_payload(10)).reason, reason::store_unavailable);
  EXPECT_EQ(submit(rig, "j", with_payload(10)).reason, reason::submitted);
}

TEST(Limits, TheSameSubmitTwiceAtOnceTakesOneLease) {
  auto store = std::make_shared<memory_store>();
  coordinator_rig rig(store, with_leases(2));
  store->hold();
  for (int i = 0; i < 2; ++i) {
    rig.gateway().submit({protocol::tenant_id{"t"}, protocol::job_id{"same"}, {"q"}},
                         [](const actors::answer&) {});
  }
  rig.settle();
  store->resume();
  rig.settle();
  EXPECT_EQ(submit(rig, "another").reason, reason::submitted);
  EXPECT_EQ(submit(rig, "third").reason, reason::rate_limited);
}

/// Submits under a request, with a name of its own or none.
actors::answer submit_as(coordinator_rig& rig, const std::string& request, const std::string& id) {
  actors::submit_request what{protocol::tenant_id{"t"}, {}, {}};
  what.spec.queue = "q";
  what.spec.request = protocol::request_id{request};
  if (!id.empty()) what.job = protocol::job_id{id};
  actors::answer said;
  rig.gateway().submit(std::move(what), [&](actors::answer a) { said = std::move(a); });
  rig.settle();
  return said;
}

TEST(Requests, OneRequestIsOneJobUnderWhateverNames) {
  auto store = std::make_shared<memory_store>();
  const auto expect_known = [](coordinator_rig& rig) {
    EXPECT_EQ(submit_as(rig, "r1", "a").reason, reason::duplicate_request);
    EXPECT_EQ(submit_as(rig, "r1", "b").reason, reason::request_reused);
    EXPECT_EQ(submit_as(rig, "r1", "").reason, reason::request_reused);
    EXPECT_EQ(submit_as(rig, "r2", "").reason, reason::duplicate_request);
    EXPECT_EQ(submit_as(rig, "r2", "c").reason, reason::request_reused);
    EXPECT_FALSE(job(rig, "b"));
    EXPECT_FALSE(job(rig, "c"));
  };
  {
    coordinator_rig rig(store);
    EXPECT_EQ(submit_as(rig, "r1", "a").reason, reason::submitted);
    EXPECT_EQ(submit_as(rig, "r2", "").reason, reason::submitted);
    expect_known(rig);
  }
  coordinator_rig rig(store);
  expect_known(rig);
}

TEST(Requests, ARequestThatCameToNothingMayBeUsedForAnotherJob) {
  coordinator_rig rig;
  rig.store->fail_commit(1);
  EXPECT_EQ(submit_as(rig, "r", "a").reason, reason::store_unavailable);
  EXPECT_EQ(submit_as(rig, "r", "b").reason, reason::submitted);
}

TEST(Requests, ARepeatUnderAnotherRequestTakesNothingFromIt) {
  coordinator_rig rig;
  EXPECT_EQ(submit_as(rig, "r1", "a").reason, reason::submitted);
  EXPECT_EQ(submit_as(rig, "r2", "a").reason, reason::duplicate_request);
  EXPECT_EQ(submit_as(rig, "r2", "b").reason, reason::submitted) << "r2 had no effect on a";
  EXPECT_EQ(submit_as(rig, "r1", "b").reason, reason::request_reused);
}

TEST(Limits, PayloadsAreBoundedToTheByte) {
  actors::actor_options options;
  options.payload_bytes = 100;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  EXPECT_EQ(submit(rig, "a", with_payload(60)).reason, reason::submitted);
  EXPECT_EQ(submit(rig, "b", with_payload(41)).reason, reason::rate_limited);
  EXPECT_EQ(submit(rig, "c", with_payload(40)).reason, reason::submitted);
  EXPECT_EQ(submit(rig, "d", with_payload(1)).reason, reason::rate_limited);
}

TEST(Limits, ARestartCountsWhatIsThere) {
  auto store = std::make_shared<memory_store>();
  {
    coordinator_rig rig(store, with_leases(2));
    submit(rig, "a");
    submit(rig, "b");
  }
  coordinator_rig rig(store, with_leases(2));
  EXPECT_EQ(submit(rig, "c").reason, reason::rate_limited);
}

TEST(Limits, AChangedLimitHoldsFromThenOn) {
  auto options = with_leases(1);
  options.queue_limits["q"] = 1;
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  rig_worker w(rig, "w");
  w.credit(10);
  submit(rig, "a");
  EXPECT_EQ(submit(rig, "b").reason, reason::rate_limited);

  options.leases_per_tenant = 4;
  rig.coordinator->change(options);
  EXPECT_EQ(submit(rig, "b").reason, reason::submitted);
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 1U) << "the queue's limit is as before";

  options.queue_limits["q"] = 2;
  rig.coordinator->change(options);
  rig.settle();
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 2U) << "nobody had to ask again";

  options.queue_limits["q"] = 1;
  rig.coordinator->change(options);
  submit(rig, "c");
  w.ack("a", 1);
  w.result("a", 1);
  EXPECT_EQ(w.session->all<protocol::offer>().size(), 2U) << "one is held, as many as may be";
}

TEST(Usage, ReservationsOfManyThreadsNeverPassTheLimit) {
  actors::usage all;
  const auto leases = all.leases_of(protocol::tenant_id{"t"});
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        if (actors::usage::reserve(*all.leases_of(protocol::tenant_id{"t"}), 1, 1500)) ++taken;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*leases, taken);
  EXPECT_LE(taken, 1500);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace leasehold::tests
