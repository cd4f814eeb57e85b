#include "src/store/postgres_dispatch.hpp"

#include <csignal>
#include <thread>

#include "tests/store/dispatch_conformance.hpp"
#include "tests/store/postgres_scene.hpp"

namespace leasehold::tests {
namespace {

using kind = actors::store_error::kind;
using protocol::reason;

std::string hex_literal(const std::string& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = "'\\x";
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text.push_back(digits[byte >> 4U]);
    text.push_back(digits[byte & 15U]);
  }
  return text + "'::bytea";
}

std::string where_job(const protocol::lease_key& key) {
  return "WHERE tenant = " + hex_literal(key.tenant.value) +
         " AND lease = " + hex_literal(key.lease.value);
}

std::int64_t number(const std::string& sql) {
  auto session = sandbox_session();
  auto read = session.run(sql);
  if (const auto* fault = std::get_if<storage::postgres_error>(&read)) {
    ADD_FAILURE() << fault->sentence;
    return -1;
  }
  return std::get<storage::postgres_rows>(read).integer(0, 0);
}

void change(const std::string& sql) {
  auto session = sandbox_session();
  run_sql(session, "SET search_path = leasehold");
  run_sql(session, sql);
}

/// The store of a coordinator, asked by itself.
class postgres_coordinator_subject : public dispatch_subject {
 public:
  postgres_coordinator_subject() {
    empty_database();
    open();
  }
  actors::dispatch_store& opened() override { return store_->dispatches(); }
  std::shared_ptr<actors::dispatch_store> another() override {
    return expect(
        storage::open_postgres_dispatches({sandbox_access("beside"), time_function(), 0}));
  }
  void reopen() override {
    store_.reset();
    open();
  }
  void apply(std::vector<protocol::dispatch_change> changes) override {
    actors::batch what;
    what.dispatches = std::move(changes);
    expect(commit(*store_, std::move(what)));
  }
  void put_event(const protocol::dispatch_event& event) override {
    change("INSERT INTO dispatch_event VALUES (" + hex_literal(event.key.tenant.value) + ", " +
           hex_literal(event.key.lease.value) + ", " + std::to_string(event.version) + ", " +
           std::to_string(event.at.ms) + ", '" + std::string(protocol::word(event.kind)) + "', " +
           std::to_string(event.gen.value) + ", " + std::to_string(event.dispatch_count) + ", '" +
           std::string(protocol::word(event.result)) + "')");
  }
  void remove_event(const protocol::dispatch_event& event) override {
    change("DELETE FROM dispatch_event " + where_job(event.key) +
           " AND version = " + std::to_string(event.version));
  }
  bool has_handle(const protocol::lease_key& key, protocol::generation gen) override {
    return number("SELECT count(*) FROM leasehold.process_handle " + where_job(key) +
                  " AND generation = " + std::to_string(gen.value)) == 1;
  }

 protected:
  [[nodiscard]] std::function<protocol::instant()> time_function() const {
    return [time = time_] { return protocol::instant{time->load()}; };
  }
  void open() {
    storage::postgres_options how;
    how.now = time_function();
    store_ = open_postgres(how);
  }

  std::unique_ptr<actors::store> store_;
};

/// A process beside it.
class postgres_process_subject final : public postgres_coordinator_subject {
 public:
  postgres_process_subject() { beside_ = another(); }
  actors::dispatch_store& opened() override { return *beside_; }
  void reopen() override {
    beside_.reset();
    postgres_coordinator_subject::reopen();
    beside_ = another();
  }

 private:
  std::shared_ptr<actors::dispatch_store> beside_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, DispatchConformance, ::testing::Values(make_dispatch_subject([] {
                           return std::make_unique<postgres_coordinator_subject>();
                         })));
INSTANTIATE_TEST_SUITE_P(PostgresProcess, DispatchConformance,
                         ::testing::Values(make_dispatch_subject([] {
                           return std::make_unique<postgres_process_subject>();
                         })));

// ---- What PostgreSQL's alone must do

/// A store with one dispatch that is due.
struct PostgresDispatch : ::testing::Test {
  PostgresDispatch() {
    empty_database();
    storage::postgres_options how;
    how.now = [this] { return protocol::instant{time.load()}; };
    store = open_postgres(how);
    actors::batch what;
    protocol::dispatch_change opening;
    opening.key = job_key("a");
    opening.gen.value = 1;
    opening.at.ms = time;
    opening.cancel_requested_at = opening.at;
    opening.cancel_deadline = opening.at;
    what.dispatches.push_back(opening);
    expect(commit(*store, std::move(what)));
  }

  static std::unique_ptr<actors::dispatch_store> open_beside() {
    return expect(storage::open_postgres_dispatches({sandbox_access("beside"), {}, 0}));
  }
  actors::store_result<std::vector<actors::dispatch_claimed>> claim_a(
      actors::dispatch_store& from) const {
    return said_of<std::vector<actors::dispatch_claimed>>([&](auto hear) {
      from.claim({{job_key("a"),
                   {1},
                   {begun},
                   protocol::dispatch_stage::stream,
                   "",
                   "one",
                   std::string(32, '1')}},
                 {}, hear);
    });
  }

  static constexpr std::int64_t begun = 1'700'000'000'000;
  std::atomic<std::int64_t> time{begun};
  std::unique_ptr<actors::store> store;
};

TEST_F(PostgresDispatch, AProcessIsToldTheCoordinatorsTimeByTheClockOfTheDatabase) {
  time = begun + 86'400'000;
  value_of(said_of<actors::dispatch_page>(
      [&](auto hear) { store->dispatches().page({}, std::move(hear)); }));
  const auto beside = open_beside();
  const auto told = value_of(beside->now()).ms;
  EXPECT_GE(told, time.load());
  EXPECT_LT(told, time.load() + 60'000);
  change("UPDATE dispatch_clock SET at = at - interval '1 hour'");
  const auto later = value_of(open_beside()->now()).ms;
  EXPECT_GE(later, told + 3'600'000);
  EXPECT_LT(later, told + 3'660'000);
}

TEST_F(PostgresDispatch, ADeposedCoordinatorDoesNotSetTheClock) {
  change(
      "INSERT INTO dispatch_clock VALUES (true, 1000000, 5, clock_timestamp()) "
      "ON CONFLICT (is_only) DO UPDATE SET epoch = 1000000, coordinator_ms = 5");
  value_of(said_of<actors::dispatch_page>(
      [&](auto hear) { store->dispatches().page({}, std::move(hear)); }));
  EXPECT_EQ(number("SELECT coordinator_ms FROM leasehold.dispatch_clock"), 5);
}

TEST_F(PostgresDispatch, ARowThatAnotherKeepsLockedIsAnsweredAsUnavailableInTime) {
  const auto beside = open_beside();
  auto other = sandbox_session("stopped");
  run_sql(other, "BEGIN; UPDATE leasehold.cancel_dispatch SET host = host");
  auto how = sandbox_access("hurried");
  how.limits.lock = std::chrono::milliseconds{20};
  const auto hurried = storage::make_postgres_dispatches({how, {}, 0});
  const auto said = value_of(claim_a(*hurried));
  EXPECT_EQ(said.front().why, reason::store_unavailable);
  run_sql(other, "ROLLBACK");
  EXPECT_EQ(value_of(claim_a(*beside)).front().why, reason::none);
}

TEST_F(PostgresDispatch, NoRowStaysLockedBetweenTwoCalls) {
  const auto beside = open_beside();
  EXPECT_EQ(value_of(claim_a(*beside)).front().why, reason::none);
  auto other = sandbox_session();
  run_sql(other, "SET lock_timeout = 50; UPDATE leasehold.cancel_dispatch SET host = host");
  EXPECT_EQ(number("SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                   "'leasehold/beside' AND state LIKE 'idle in transaction%'"),
            0);
}

TEST_F(PostgresDispatch, ALostConnectionIsAnErrorAndTheNextCallHasANewOne) {
  const auto beside = open_beside();
  change(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
      "WHERE application_name = 'leasehold/beside'");
  // The server may not have told it yet: of two calls at least the second is done.
  auto first = claim_a(*beside);
  if (std::holds_alternative<actors::store_error>(first)) first = claim_a(*beside);
  EXPECT_EQ(value_of(std::move(first)).front().why, reason::none);
}

TEST_F(PostgresDispatch, ADatabaseWithoutAStoreAndOneThatWasNotServedAreRefused) {
  const auto refusal = [] {
    auto opened = storage::open_postgres_dispatches({sandbox_access("beside"), {}, 0});
    const auto* fault = std::get_if<actors::store_error>(&opened);
    return fault == nullptr ? kind::busy : fault->what;
  };
  change("UPDATE store SET is_backup = true");
  EXPECT_EQ(refusal(), kind::foreign);
  store.reset();
  empty_database();
  EXPECT_EQ(refusal(), kind::foreign);
}

TEST_F(PostgresDispatch, ADamagedRecordDoesNotHideOthersAndIsStillClosed) {
  actors::batch what;
  protocol::dispatch_change opening;
  for (const auto* job : {"b", "c"}) {
    opening.key = job_key(job);
    opening.gen.value = 1;
    what.dispatches.push_back(opening);
  }
  expect(commit(*store, what));
  change("UPDATE cancel_dispatch SET stage = 'sideways' " + where_job(job_key("a")));
  EXPECT_EQ(value_of(claim_a(store->dispatches())).front().why, reason::store_unavailable);
  const auto first = value_of(said_of<actors::dispatch_page>(
      [&](auto hear) { store->dispatches().page({.limit = 1}, std::move(hear)); }));
  EXPECT_TRUE(first.records.empty());
  EXPECT_TRUE(first.next);
  what.dispatches.clear();
  opening.what = protocol::dispatch_change::kind::close;
  opening.key = job_key("a");
  what.dispatches.push_back(opening);
  expect(commit(*store, what));
  EXPECT_EQ(number("SELECT count(*) FROM leasehold.cancel_dispatch WHERE status = 'closed'"), 1);
}

}  // namespace
}  // namespace leasehold::tests
