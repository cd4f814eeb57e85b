// Cancels and those who make work stop: the records that a cancel opens and its end closes, the
// process that a worker names, the holder who is asked, and proof that becomes a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "support/coordinator_rig.hpp"
#include "support/eventually.hpp"

namespace leasehold::tests {
namespace {

using protocol::dispatch_result;
using protocol::dispatch_stage;
using protocol::dispatch_status;
using protocol::event_kind;
using protocol::reason;

const std::string boot = "11111111-2222-3333-4444-555555555555";

protocol::lease_key key_of(const std::string& job) {
  return {protocol::tenant_id{"t"}, protocol::lease_id{job}};
}

std::optional<protocol::dispatch_record> stored(coordinator_rig& rig, const std::string& job) {
  return rig.store->dispatches().stored(key_of(job));
}

actors::answer cancel(coordinator_rig& rig, const std::string& job) {
  protocol::event what;
  what.kind = event_kind::cancel;
  return operate(rig, job, std::move(what));
}

actors::dispatch_means with_tokens() {
  actors::dispatch_means means;
  means.make_token = [made = std::make_shared<int>(0)] {
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%032x", static_cast<unsigned>(++*made));
    return std::string(text.data());
  };
  return means;
}

actors::actor_options quick() {
  actors::actor_options options;
  options.dispatch.cadence = {5};
  options.dispatch_pace = {{30'000}, {1'000}, {300'000}};
  return options;
}

/// A job whose cancel leaves it to its holder for ten seconds.
actors::job_spec spec_of() {
  actors::job_spec spec;
  spec.queue = "q";
  spec.policy.reconcile_window = {1'000};
  spec.policy.on_unresolved = protocol::on_unresolved::fail;
  return spec;
}

/// The worker works on the job in generation 1.
void begin(coordinator_rig& rig, rig_worker& worker, const std::string& job = "j") {
  worker.credit(10);
  submit(rig, job, spec_of());
  worker.ack(job, 1);
}

protocol::process_registration naming(const rig_worker& worker, const std::string& job,
                                      std::int64_t gen, std::int64_t pid = 4242) {
  return {protocol::lease_id{job}, {gen}, worker.holder(), {"linux", pid, boot, 77, pid}};
}

protocol::frame_verdict name_process(coordinator_rig& rig, rig_worker& worker,
                                     protocol::process_registration what) {
  const auto id = worker.say(std::move(what));
  rig.settle();
  return worker.session->verdict_of(id).value_or(protocol::frame_verdict{});
}

// ---- the records

TEST(DispatchRecords, ACancelOfALiveAttemptOpensOneInItsOwnCommit) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  begin(rig, worker);
  rig.store->fail_commit(1);
  EXPECT_EQ(cancel(rig, "j").reason, reason::store_unavailable);
  EXPECT_FALSE(stored(rig, "j"));
  EXPECT_EQ(cancel(rig, "j").reason, reason::cancel_requested);
  const auto opened = stored(rig, "j");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->gen, protocol::generation{1});
  EXPECT_EQ(opened->status, dispatch_status::pending);
  EXPECT_EQ(opened->stage, dispatch_stage::stream);
  EXPECT_EQ(opened->cancel_requested_at, job(rig, "j")->state->cancel_requested_at);
  EXPECT_EQ(opened->cancel_deadline, job(rig, "j")->state->cancel_deadline);
}

TEST(DispatchRecords, ACancelThatLeavesNobodyAtWorkOpensNone) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  submit(rig, "waits", spec_of());
  worker.credit(1);
  EXPECT_EQ(cancel(rig, "waits").reason, reason::offer_withdrawn);
  EXPECT_FALSE(stored(rig, "waits"));
}

TEST(DispatchRecords, TheRowThatSettlesTheJobClosesIt) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  begin(rig, worker);
  cancel(rig, "j");
  worker.result("j", 1, protocol::outcome::cancelled);
  EXPECT_EQ(stored(rig, "j")->status, dispatch_status::closed);
}

TEST(DispatchRecords, AStartThatSettlesTheJobClosesIt) {
  auto store = std::make_shared<memory_store>();
  auto clock = std::make_shared<manual_clock>();
  {
    coordinator_rig rig(store, {}, clock);
    rig_worker worker(rig, "w");
    begin(rig, worker);
    cancel(rig, "j");
  }
  clock->set(clock->now() + protocol::duration{600'000});
  coordinator_rig again(store, {}, clock);
  EXPECT_EQ(job(again, "j")->state->state, protocol::lease_state::failed);
  EXPECT_EQ(stored(again, "j")->status, dispatch_status::closed);
}

TEST(DispatchRecords, AStartOpensWhatAnOlderStoreHadNoTablesFor) {
  auto store = std::make_shared<memory_store>();
  auto clock = std::make_shared<manual_clock>();
  {
    coordinator_rig rig(store, {}, clock);
    rig_worker worker(rig, "w");
    begin(rig, worker);
    cancel(rig, "j");
    protocol::dispatch_change gone;
    gone.what = protocol::dispatch_change::kind::forget;
    gone.key = key_of("j");
    store->dispatches().apply({gone});
  }
  for (const bool restored : {false, true}) {
    coordinator_rig again(store, {}, clock, restored);
    ASSERT_TRUE(stored(again, "j")) << restored;
    EXPECT_EQ(stored(again, "j")->status, dispatch_status::pending);
    EXPECT_EQ(stored(again, "j")->gen, protocol::generation{1});
  }
}

TEST(DispatchRecords, AJobThatIsForgottenLeavesNothing) {
  actors::actor_options options;
  options.forget_after = {10'000};
  coordinator_rig rig(std::make_shared<memory_store>(), options);
  rig_worker worker(rig, "w");
  begin(rig, worker);
  begin(rig, worker, "plain");
  name_process(rig, worker, naming(worker, "plain", 1));
  cancel(rig, "j");
  worker.result("j", 1, protocol::outcome::cancelled);
  worker.result("plain", 1);
  ASSERT_TRUE(rig.store->dispatches().handle_of(key_of("plain"), {1}));
  rig.checkpoint();
  rig.advance(200'000);
  ASSERT_FALSE(job(rig, "j"));
  ASSERT_FALSE(job(rig, "plain"));
  EXPECT_FALSE(stored(rig, "j"));
  EXPECT_FALSE(rig.store->dispatches().handle_of(key_of("plain"), {1}));
}

// ---- the process of an attempt

TEST(ProcessOfAnAttempt, IsKnownOnceItIsDurableAndMakesNoRow) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  begin(rig, worker);
  const auto row = job(rig, "j")->row;
  rig.store->hold();
  const auto id = worker.say(naming(worker, "j", 1));
  rig.settle();
  EXPECT_FALSE(worker.session->verdict_of(id));
  rig.store->resume();
  rig.settle();
  const auto said = worker.session->verdict_of(id);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->decision, protocol::decision::accepted);
  EXPECT_EQ(said->reason, reason::process_registered);
  EXPECT_EQ(said->standing.gen, protocol::generation{1});
  EXPECT_EQ(job(rig, "j")->row, row);
  const auto known = rig.store->dispatches().handle_of(key_of("j"), {1});
  ASSERT_TRUE(known);
  EXPECT_EQ(*known, naming(worker, "j", 1).process);
}

TEST(ProcessOfAnAttempt, SaidAgainIsAcceptedAndChangesNothing) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  begin(rig, worker);
  cancel(rig, "j");
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(name_process(rig, worker, naming(worker, "j", 1)).reason, reason::process_registered);
  }
  EXPECT_EQ(stored(rig, "j")->host, boot);
  EXPECT_EQ(stored(rig, "j")->version, 1);
}

TEST(ProcessOfAnAttempt, IsNotTakenWhileTheStoreTakesNothing) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  begin(rig, worker);
  rig.store->fail_commit(1);
  const auto said = name_process(rig, worker, naming(worker, "j", 1));
  EXPECT_EQ(said.reason, reason::store_unavailable);
  EXPECT_GT(said.retry_after.ms, 0);
  EXPECT_FALSE(rig.store->dispatches().handle_of(key_of("j"), {1}));
}

struct refused_naming {
  const char* what;
  std::function<void(coordinator_rig&, rig_worker&)> prepare;
  std::function<void(protocol::process_registration&)> change;
  reason why;
};

TEST(ProcessOfAnAttempt, IsRefusedWhereTheAttemptIsNotTheHoldersOwnAndLive) {
  const auto nothing = [](coordinator_rig&, rig_worker&) {};
  const auto as_it_is = [](protocol::process_registration&) {};
  const std::vector<refused_naming> table{
      {"another lease", nothing, [](auto& what) { what.lease.value = "none"; },
       reason::unknown_lease},
      {"a later generation", nothing, [](auto& what) { what.gen = {2}; },
       reason::unknown_generation},
      {"no generation", nothing, [](auto& what) { what.gen = {0}; }, reason::invalid_frame},
      {"another holder", nothing, [](auto& what) { what.from.value += 'x'; },
       reason::holder_not_yours},
      {"no platform", nothing, [](auto& what) { what.process.platform.clear(); },
       reason::invalid_frame},
      {"pid 1", nothing,
       [](auto& what) { what.process.pid = what.process.process_group = 1; },
       reason::invalid_frame},
      {"no leader of its group", nothing, [](auto& what) { what.process.process_group = 9; },
       reason::invalid_frame},
      {"no boot id", nothing, [](auto& what) { what.process.boot_id = "x"; },
       reason::invalid_frame},
      {"no start ticks", nothing, [](auto& what) { what.process.start_ticks = 0; },
       reason::invalid_frame},
      {"settled", [](coordinator_rig&, rig_worker& worker) { worker.result("j", 1); }, as_it_is,
       reason::lease_settled},
      {"released",
       [](coordinator_rig& rig, rig_worker& worker) {
         worker.credit(0);
         worker.tell(worker.frame(event_kind::release, "j", 1));
         rig.settle();
       },
       as_it_is, reason::lease_released},
      {"expired",
       [](coordinator_rig& rig, rig_worker& worker) {
         worker.credit(0);
         rig.advance(60'000);
       },
       as_it_is, reason::lease_expired},
      {"an earlier generation",
       [](coordinator_rig& rig, rig_worker& worker) {
         rig.advance(60'000);
         worker.credit(10);
       },
       as_it_is, reason::stale_generation},
  };
  for (const auto& each : table) {
    coordinator_rig rig;
    rig_worker worker(rig, "w");
    begin(rig, worker);
    each.prepare(rig, worker);
    auto what = naming(worker, "j", 1);
    each.change(what);
    EXPECT_EQ(name_process(rig, worker, std::move(what)).reason, each.why) << each.what;
    EXPECT_FALSE(rig.store->dispatches().handle_of(key_of("j"), {1})) << each.what;
  }
}

TEST(ProcessOfAnAttempt, OfALockIsRefused) {
  coordinator_rig rig;
  rig_worker worker(rig, "w");
  protocol::acquire wanted;
  wanted.what.kind = event_kind::acquire;
  wanted.what.from = worker.holder();
  wanted.what.sent_at = rig.clock->now();
  wanted.what.request = protocol::request_id{"r"};
  wanted.name = {"prog", protocol::target_kind::opaque, "x", "", ""};
  const auto id = worker.say(wanted);
  rig.settle();
  const auto lock = worker.session->verdict_of(id);
  ASSERT_TRUE(lock);
  EXPECT_EQ(name_process(rig, worker, naming(worker, lock->standing.lease.value, 1)).reason,
            reason::not_a_job);
}

// ---- the dispatcher

/// The record once it stands as wanted.
template <class Wanted>
std::optional<protocol::dispatch_record> once(coordinator_rig& rig, const std::string& job,
                                              Wanted wanted) {
  eventually([&] {
    rig.settle();
    const auto found = stored(rig, job);
    return found && wanted(*found);
  });
  return stored(rig, job);
}

TEST(Dispatcher, AHolderThatAcknowledgesWasAskedToStop) {
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  cancel(rig, "j");
  once(rig, "j", [](const auto& r) { return r.status == dispatch_status::leased; });
  worker.tell(worker.frame(event_kind::cancel_ack, "j", 1));
  const auto done =
      once(rig, "j", [](const auto& r) { return r.status == dispatch_status::dispatched; });
  EXPECT_EQ(done->last_result, dispatch_result::termination_requested);
  EXPECT_EQ(rig.store->dispatches().events_of(key_of("j")).size(), 1U);
  EXPECT_EQ(rig.counters->dispatch.claims.value(), 1);
}

TEST(Dispatcher, WithAProcessTheNextStageWaitsForTheDeadline) {
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  name_process(rig, worker, naming(worker, "j", 1));
  cancel(rig, "j");
  worker.tell(worker.frame(event_kind::cancel_ack, "j", 1));
  const auto next =
      once(rig, "j", [](const auto& r) { return r.stage == dispatch_stage::process; });
  EXPECT_EQ(next->status, dispatch_status::pending);
  EXPECT_EQ(next->next_attempt_at, job(rig, "j")->state->cancel_deadline);
}

TEST(Dispatcher, AHolderThatIsNotThereIsTriedAgainLater) {
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  worker.disconnect();
  cancel(rig, "j");
  const auto waits =
      once(rig, "j", [](const auto& r) { return r.status == dispatch_status::retry_wait; });
  EXPECT_EQ(waits->last_result, dispatch_result::controller_missing);
  EXPECT_EQ(waits->next_attempt_at, rig.clock->now() + protocol::duration{1'000});
}

TEST(Dispatcher, AHolderThatSaysNothingInItsWindowIsTriedAgainLater) {
  auto options = quick();
  options.ack_window = {20};
  coordinator_rig rig(std::make_shared<memory_store>(), options, std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  cancel(rig, "j");
  const auto waits =
      once(rig, "j", [](const auto& r) { return r.status == dispatch_status::retry_wait; });
  EXPECT_EQ(waits->last_result, dispatch_result::dispatch_error);
  EXPECT_GE(worker.session->all<protocol::cancel_notice>().size(), 2U)
      << "once with the cancel, once by the dispatch";
}

TEST(Dispatcher, ALateAcknowledgementOfAnExpiredAttemptCounts) {
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  worker.credit(0);
  rig.advance(60'000);
  ASSERT_EQ(job(rig, "j")->state->state, protocol::lease_state::expired);
  cancel(rig, "j");
  once(rig, "j", [](const auto& r) { return r.status == dispatch_status::leased; });
  const auto asked = worker.session->all<protocol::cancel_notice>();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked.front().standing.gen, protocol::generation{1});
  EXPECT_EQ(worker.tell(worker.frame(event_kind::cancel_ack, "j", 1)).reason,
            reason::lease_expired);
  const auto done =
      once(rig, "j", [](const auto& r) { return r.status == dispatch_status::dispatched; });
  EXPECT_EQ(done->last_result, dispatch_result::termination_requested);
}

TEST(Dispatcher, ManyCancelsAtOnceAreEachClaimedOnceInAFewCycles) {
  constexpr std::int64_t many = 1'000;
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  worker.credit(many);
  std::vector<std::string> jobs;
  for (std::int64_t i = 0; i < many; ++i) jobs.push_back("j" + std::to_string(i));
  for (const auto& job : jobs) {
    submit(rig, job, spec_of());
    worker.say(worker.frame(event_kind::ack, job, 1));
  }
  rig.settle();
  const auto cycles = rig.counters->dispatch.cycles.value();
  for (const auto& job : jobs) {
    protocol::event what;
    what.kind = event_kind::cancel;
    rig.gateway().operate(key_of(job), what, [](const auto&) {});
    worker.say(worker.frame(event_kind::cancel_ack, job, 1));
  }
  EXPECT_TRUE(eventually([&] {
    rig.settle();
    return std::ranges::all_of(jobs, [&](const auto& job) {
      const auto found = stored(rig, job);
      return found && found->status == dispatch_status::dispatched;
    });
  }));
  EXPECT_EQ(rig.counters->dispatch.claims.value(), many);
  // 32 on a page, 4 pages a cycle; a cycle may begin before all have come.
  EXPECT_LE(rig.counters->dispatch.cycles.value() - cycles, 100);
}

/// Finds every process gone.
class finds_it_gone final : public actors::execution_controller {
 public:
  void act(const actors::dispatch_claimed&, std::function<void(dispatch_result)> done) override {
    done(dispatch_result::already_exited);
  }
};

TEST(Dispatcher, WhatIsGoneBecomesARowOnceItsAttemptIsOver) {
  auto means = with_tokens();
  means.host = boot;
  means.controllers[dispatch_stage::process] = std::make_shared<finds_it_gone>();
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, means);
  rig_worker worker(rig, "w");
  actors::job_spec spec = spec_of();
  spec.policy.cancel_grace = {1'000};
  worker.credit(10);
  submit(rig, "j", spec);
  worker.ack("j", 1);
  name_process(rig, worker, naming(worker, "j", 1));
  cancel(rig, "j");
  worker.tell(worker.frame(event_kind::cancel_ack, "j", 1));
  once(rig, "j", [](const auto& r) { return r.stage == dispatch_stage::process; });
  ASSERT_EQ(job(rig, "j")->state->state, protocol::lease_state::active);
  rig.advance(1'000);
  ASSERT_EQ(job(rig, "j")->state->state, protocol::lease_state::unresolved);
  const auto closed =
      once(rig, "j", [](const auto& r) { return r.status == dispatch_status::closed; });
  EXPECT_EQ(closed->last_result, dispatch_result::already_exited);
  EXPECT_EQ(job(rig, "j")->state->state, protocol::lease_state::cancelled);
}

TEST(Dispatcher, WhatAnotherProcessFoundGoneIsGivenOnceTheAttemptIsNotLiveAnyMore) {
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  name_process(rig, worker, naming(worker, "j", 1));
  cancel(rig, "j");
  worker.tell(worker.frame(event_kind::cancel_ack, "j", 1));
  const auto next =
      once(rig, "j", [](const auto& r) { return r.stage == dispatch_stage::process; });
  rig.clock->set(next->next_attempt_at);
  auto& tables = rig.store->dispatches();
  std::optional<actors::dispatch_claimed> claim;
  tables.claim({{next->key, next->gen, next->cancel_requested_at, dispatch_stage::process, boot,
                 "another", std::string(32, 'a')}},
               {}, [&](auto got) {
                 claim = std::get<std::vector<actors::dispatch_claimed>>(got).front();
               });
  ASSERT_TRUE(claim && claim->why == reason::none);
  tables.report({{next->key, next->gen, "another", std::string(32, 'a'), claim->record.version,
                  dispatch_result::already_exited}},
                {}, [](const auto&) {});
  const auto cycles = rig.counters->dispatch.cycles.value();
  const auto row = job(rig, "j")->row;
  eventually([&] {
    rig.settle();
    return rig.counters->dispatch.cycles.value() >= cycles + 3;
  });
  if (job(rig, "j")->state->state == protocol::lease_state::active) {
    EXPECT_EQ(job(rig, "j")->row, row) << "a live attempt gets no row";
  }
  rig.advance(1);
  once(rig, "j", [](const auto& r) { return r.status == dispatch_status::closed; });
  EXPECT_EQ(job(rig, "j")->state->state, protocol::lease_state::cancelled);
}

TEST(Dispatcher, NothingIsClaimedOnceItDrains) {
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, with_tokens());
  rig_worker worker(rig, "w");
  begin(rig, worker);
  rig.coordinator->drain(rig.clock->now() + protocol::duration{10'000});
  rig.settle();
  const auto cycles = rig.counters->dispatch.cycles.value();
  cancel(rig, "j");
  rig.settle();
  EXPECT_EQ(stored(rig, "j")->status, dispatch_status::pending);
  EXPECT_EQ(rig.counters->dispatch.cycles.value(), cycles);
}

TEST(Dispatcher, ADeposedStoreEndsIt) {
  auto means = with_tokens();
  auto told = std::make_shared<std::string>();
  means.on_trouble = [told](std::string_view why) { *told = why; };
  coordinator_rig rig(std::make_shared<memory_store>(), quick(), std::make_shared<manual_clock>(),
                      false, nullptr, means);
  rig_worker worker(rig, "w");
  begin(rig, worker);
  rig.store->dispatches().fail_next(actors::store_error::kind::deposed);
  eventually([&] {
    rig.settle();
    return rig.counters->dispatch.cycle_errors.value() > 0;
  });
  EXPECT_FALSE(told->empty());
  cancel(rig, "j");
  rig.settle();
  EXPECT_EQ(stored(rig, "j")->status, dispatch_status::pending);
}

}  // namespace
}  // namespace leasehold::tests
