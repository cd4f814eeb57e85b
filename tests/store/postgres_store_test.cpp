#include "src/store/postgres_store.hpp"

#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <thread>

#include "src/store/postgres_schema.hpp"
#include "support/eventually.hpp"
#include "tests/store/postgres_scene.hpp"

namespace leasehold::tests {
namespace {

using kind = actors::store_error::kind;

class postgres_subject final : public store_subject {
 public:
  postgres_subject() {
    empty_database();
    store_ = open_postgres();
  }
  actors::store& opened() override { return *store_; }
  void reopen() override {
    store_.reset();
    store_ = open_postgres();
  }
  /// A sequence does not roll back, so that the trigger fails once.
  bool fail_next_commit() override {
    auto session = sandbox_session();
    run_sql(session, "CREATE SEQUENCE failures");
    const auto made = session.run(
        "DO $body$ BEGIN EXECUTE 'CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF nextval(''leasehold.failures'') = 1 THEN RAISE EXCEPTION ''no room'' USING "
        "ERRCODE = ''53100''; END IF; RETURN NEW; END $$'; END $body$");
    EXPECT_TRUE(std::holds_alternative<storage::postgres_rows>(made));
    run_sql(session,
            "CREATE TRIGGER fails BEFORE INSERT ON batch FOR EACH ROW EXECUTE FUNCTION "
            "fail_once()");
    return true;
  }

 private:
  std::unique_ptr<actors::store> store_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, StoreConformance, ::testing::Values(make_subject([] {
                           return std::make_unique<postgres_subject>();
                         })));

actors::store_error refusal(actors::store_result<std::unique_ptr<actors::store>> opened) {
  if (const auto* fault = std::get_if<actors::store_error>(&opened)) return *fault;
  auto& store = *std::get<std::unique_ptr<actors::store>>(opened);
  auto recovered =
      store.recover([](const auto&) {}, [](auto&&) {}, [](auto, const auto&) {}, [](auto&&) {});
  if (auto* fault = std::get_if<actors::store_error>(&recovered)) return *fault;
  ADD_FAILURE() << "the store was not refused";
  return {};
}

actors::store_error failure(actors::store_result<actors::committed> done) {
  if (const auto* fault = std::get_if<actors::store_error>(&done)) return *fault;
  ADD_FAILURE() << "the commit did not fail";
  return {};
}

/// A store with three rows, a policy and a checkpoint of its first row, and a session beside it.
struct PostgresStore : ::testing::Test {
  PostgresStore() {
    empty_database();
    how.access = sandbox_access();
    how.access.limits.lock = std::chrono::milliseconds{200};
    how.retry_for = std::chrono::milliseconds{500};
    open();
    auto what = batch_of({renew_row("a", 1)});
    what.groups.push_back(protocol::encode_policy_row({}, {1'700'000'000'000}));
    what.rows = 2;
    what.policies.emplace_back(protocol::id_of(protocol::policy{}), protocol::policy{});
    expect(commit(*store, what));
    expect(checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {1}, true}));
    expect(commit(*store, batch_of({renew_row("a", 3, 1)})));
    sql = sandbox_session();
  }
  void open() {
    store.reset();
    how.epoch = take_epoch();
    store = open_postgres(how);
  }
  actors::store_error refused() {
    store.reset();
    how.epoch = take_epoch();
    return refusal(storage::open_postgres_store(how));
  }
  void run(const std::string& text) { run_sql(*sql, text); }
  [[nodiscard]] std::int64_t waiting_for_nobody() {
    return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  }
  /// From now on a commit waits for a standby that does not exist. The server's processes hear of
  /// it one after the other: a commit of another session shows when they have.
  void wait_for_nobody() {
    run("CREATE TABLE IF NOT EXISTS public.probe (at int8)");
    run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    number("SELECT pg_reload_conf()::int");
    const std::unique_ptr<PGconn, decltype(&PQfinish)> probe(PQconnectdb(""), &PQfinish);
    EXPECT_TRUE(eventually([&] {
      PQconsumeInput(probe.get());
      if (PQisBusy(probe.get()) != 0) return waiting_for_nobody() > 0;
      while (PGresult* const said = PQgetResult(probe.get())) PQclear(said);
      PQsendQuery(probe.get(), "INSERT INTO public.probe VALUES (1)");
      return false;
    }));
    number(
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    EXPECT_TRUE(eventually([&] { return waiting_for_nobody() == 0; }));
  }
  std::int64_t number(const std::string& query) {
    auto rows = sql->run(query);
    return std::get<storage::postgres_rows>(rows).integer(0, 0);
  }
  /// A trigger of each batch that goes on with `then` (PL/pgSQL) at its first time only.
  void once(const std::string& then, const std::string& when = "CREATE TRIGGER strikes BEFORE") {
    always("IF nextval('leasehold.strikes') = 1 THEN " + then + " END IF;", when);
  }
  void always(const std::string& then, const std::string& when = "CREATE TRIGGER strikes BEFORE") {
    run("CREATE SEQUENCE strikes");
    EXPECT_TRUE(std::holds_alternative<storage::postgres_rows>(
        sql->run("DO $body$ BEGIN EXECUTE $made$CREATE FUNCTION strike() RETURNS trigger LANGUAGE "
                 "plpgsql AS $$ BEGIN " +
                 then + " RETURN NEW; END $$ $made$; END $body$")));
    run(when + " INSERT ON batch " +
        (when.find("CONSTRAINT") == std::string::npos ? "" : "DEFERRABLE INITIALLY DEFERRED ") +
        "FOR EACH ROW EXECUTE FUNCTION strike()");
  }
  /// Ends every session but ours.
  void end_sessions() {
    number(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE "
        "application_name = 'leasehold/test'");
  }

  storage::postgres_options how;
  std::unique_ptr<actors::store> store;
  std::optional<storage::postgres_connection> sql;
};

TEST_F(PostgresStore, AnEpochThatMovedRefusesEverythingAsAWhole) {
  take_epoch("another");
  auto what = batch_of({renew_row("a", 4, 3)});
  what.policies.emplace_back(protocol::policy_id{7}, protocol::policy{});
  const auto fault = failure(commit(*store, what));
  EXPECT_EQ(fault.what, kind::deposed);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("epoch 1"));
  EXPECT_EQ(number("SELECT count(*) FROM batch"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM policy"), 1);
  EXPECT_EQ(failure(commit(*store, batch_of({renew_row("a", 4, 3)}))).what, kind::deposed);
  const auto slice = checkpoint(*store, {{{key_of("b"), image_of("b", 2)}}, {}, {3}, true});
  EXPECT_EQ(std::get<actors::store_error>(slice).what, kind::deposed);
  EXPECT_EQ(number("SELECT count(*) FROM record"), 1);
}

TEST_F(PostgresStore, ACheckpointOfAnEpochThatMovedIsRefused) {
  take_epoch("another");
  const auto slice = checkpoint(*store, {{{key_of("b"), image_of("b", 2)}}, {}, {3}, true});
  EXPECT_EQ(std::get<actors::store_error>(slice).what, kind::deposed);
  EXPECT_EQ(number("SELECT count(*) FROM record"), 1);
}

TEST_F(PostgresStore, RenewalsOfTheEpochDoNotStopCommits) {
  auto keeper = epoch_row();
  for (std::int64_t i = 4; i < 24; ++i) {
    EXPECT_TRUE(expect(keeper.renew(how.epoch)));
    expect(commit(*store, batch_of({renew_row("a", i, i - 1)})));
  }
  EXPECT_EQ(expect(keeper.read()).renewals, 20);
}

TEST_F(PostgresStore, ACommitWhoseSessionEndsBeforeItIsDoneIsWrittenAgain) {
  once("PERFORM pg_terminate_backend(pg_backend_pid());",
       "CREATE CONSTRAINT TRIGGER strikes AFTER");
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
  EXPECT_EQ(number("SELECT nextval('strikes')"), 3) << "the trigger was met twice";
  EXPECT_EQ(number("SELECT count(*) FROM batch"), 3);
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 5, 4)}))).first_row.value, 5);
}

/// The server waits for a standby that does not exist, after the commit is in its own log: whoever
/// ends the session there takes the answer away, and nothing else.
TEST_F(PostgresStore, ACommitThatIsDoneAndNotAnsweredIsFoundAndNotWrittenTwice) {
  wait_for_nobody();
  std::promise<actors::store_result<actors::committed>> promise;
  store->commit(batch_of({renew_row("a", 4, 3)}),
                [&promise](auto done) { promise.set_value(std::move(done)); });
  EXPECT_TRUE(eventually([this] { return waiting_for_nobody() > 0; }));
  run("SET synchronous_commit = local");
  run("ALTER SYSTEM RESET synchronous_standby_names");
  end_sessions();
  number("SELECT pg_reload_conf()::int");
  EXPECT_EQ(expect(promise.get_future().get()).first_row.value, 4);
  EXPECT_EQ(number("SELECT count(*) FROM batch"), 3);
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 5, 4)}))).first_row.value, 5);
}

TEST_F(PostgresStore, ACommitThatATakeOverEndsIsDeposed) {
  always("PERFORM pg_sleep(60);");
  std::promise<actors::store_result<actors::committed>> promise;
  store->commit(batch_of({renew_row("a", 4, 3)}),
                [&promise](auto done) { promise.set_value(std::move(done)); });
  EXPECT_TRUE(eventually([this] {
    return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == 1;
  }));
  take_epoch("another");
  EXPECT_EQ(failure(promise.get_future().get()).what, kind::deposed);
  EXPECT_EQ(number("SELECT count(*) FROM batch"), 2);
}

TEST_F(PostgresStore, ACommitThatWasDoneBeforeATakeOverIsFoundAfterIt) {
  wait_for_nobody();
  std::promise<actors::store_result<actors::committed>> promise;
  store->commit(batch_of({renew_row("a", 4, 3)}),
                [&promise](auto done) { promise.set_value(std::move(done)); });
  const auto waiting = [this](const std::string& owner) {
    return number(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND "
               "application_name = 'leasehold/" +
               owner + "'") == 1;
  };
  EXPECT_TRUE(eventually([&] { return waiting("test"); }));
  std::thread other([] { take_epoch("another"); });
  // It ends the session that keeps it from the epoch, and then waits for the standby itself.
  EXPECT_TRUE(eventually([&] { return waiting("keeper"); }));
  run("SET synchronous_commit = local");
  run("ALTER SYSTEM RESET synchronous_standby_names");
  number("SELECT pg_reload_conf()::int");
  other.join();
  EXPECT_EQ(expect(promise.get_future().get()).first_row.value, 4);
  EXPECT_EQ(failure(commit(*store, batch_of({renew_row("a", 5, 4)}))).what, kind::deposed);
}

TEST_F(PostgresStore, WhatMayPassIsTriedAgain) {
  once("RAISE EXCEPTION 'not now' USING ERRCODE = '40001';");
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
  EXPECT_EQ(number("SELECT nextval('strikes')"), 3);
}

TEST_F(PostgresStore, AFullDiskIsToldApartAndPasses) {
  once("RAISE EXCEPTION 'no room' USING ERRCODE = '53100';");
  EXPECT_EQ(failure(commit(*store, batch_of({renew_row("a", 4, 3)}))).what, kind::full);
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
}

TEST_F(PostgresStore, AnotherSessionsLockIsWaitedForAndThenBusy) {
  run("BEGIN");
  run("LOCK TABLE batch IN EXCLUSIVE MODE");
  const auto fault = failure(commit(*store, batch_of({renew_row("a", 4, 3)})));
  EXPECT_EQ(fault.what, kind::busy);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("55P03"));
  run("ROLLBACK");
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
}

TEST_F(PostgresStore, AServerThatIsAwayLosesNothingAndIsUsedAgainWhenItIsBack) {
  auto elsewhere = sandbox_session("elsewhere", "postgresql:///template1");
  run_sql(elsewhere, "ALTER DATABASE postgres WITH ALLOW_CONNECTIONS false");
  end_sessions();
  const auto fault = failure(commit(*store, batch_of({renew_row("a", 4, 3)})));
  EXPECT_EQ(fault.what, kind::io) << fault.sentence;
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(store->rows_from({1}, 10)));
  run_sql(elsewhere, "ALTER DATABASE postgres WITH ALLOW_CONNECTIONS true");
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
  EXPECT_EQ(expect(store->rows_from({1}, 10)).size(), 4U);
}

TEST_F(PostgresStore, AServerThatOnlyReadsIsToldApart) {
  run("ALTER DATABASE postgres SET default_transaction_read_only = on");
  end_sessions();
  const auto fault = failure(commit(*store, batch_of({renew_row("a", 4, 3)})));
  run("ALTER DATABASE postgres RESET default_transaction_read_only");
  EXPECT_EQ(fault.what, kind::io);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("primary"));
  end_sessions();
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
}

TEST_F(PostgresStore, ADatabaseThatLostWhatWasConfirmedIsNotWrittenBehindTheGap) {
  run("DELETE FROM batch WHERE first_row = 3");
  end_sessions();
  const auto fault = failure(commit(*store, batch_of({renew_row("a", 4, 3)})));
  EXPECT_EQ(fault.what, kind::fatal);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("row 3"));
  EXPECT_EQ(number("SELECT count(*) FROM batch"), 1);
}

TEST_F(PostgresStore, ReadersGoOnAfterTheirSessionsEnded) {
  EXPECT_EQ(expect(store->rows_from({1}, 10)).size(), 3U);
  end_sessions();
  EXPECT_EQ(expect(store->rows_from({1}, 10)).size(), 3U);
}

TEST_F(PostgresStore, ABatchMayHaveNoRow) {
  actors::batch nothing;
  nothing.anchor = batch_of({}).anchor;
  EXPECT_EQ(expect(commit(*store, nothing)).head, expect(store->head()));
  EXPECT_EQ(expect(commit(*store, batch_of({renew_row("a", 4, 3)}))).first_row.value, 4);
}

TEST_F(PostgresStore, AnOldEpochIsRefusedAtTheStart) {
  store.reset();
  const auto old = how.epoch;
  take_epoch();
  how.epoch = old;
  EXPECT_EQ(refusal(storage::open_postgres_store(how)).what, kind::deposed);
}

TEST_F(PostgresStore, ASchemaOfAnotherProgramIsRefusedAndLeftAlone) {
  store.reset();
  run("DROP SCHEMA leasehold CASCADE");
  run("CREATE SCHEMA leasehold");
  run("CREATE TABLE leasehold.songs (title text)");
  EXPECT_EQ(refusal(storage::open_postgres_store(how)).what, kind::foreign);
  EXPECT_EQ(number("SELECT count(*) FROM leasehold.songs"), 0);
}

TEST_F(PostgresStore, ANewerFormatIsRefusedByItsNumber) {
  run("UPDATE store SET format = 2");
  const auto fault = refusal(storage::open_postgres_store(how));
  EXPECT_EQ(fault.what, kind::foreign);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("format 2"));
}

TEST_F(PostgresStore, ABackupIsServedOnlyWhenItIsCalledOne) {
  run("UPDATE store SET is_backup = true");
  EXPECT_EQ(refused().what, kind::foreign);
  how.restored_backup = true;
  open();
  expect(commit(*store, batch_of({renew_row("a", 4, 3)})));
  EXPECT_EQ(number("SELECT count(*) FROM store WHERE is_backup"), 0);
}

TEST_F(PostgresStore, AChangedRowIsRefusedByItsNumber) {
  run("UPDATE batch SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE first_row = 3");
  const auto fault = refused();
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("row 3"));
}

TEST_F(PostgresStore, AChangedRecordIsRefusedByItsLease) {
  run("UPDATE record SET image = image || 'x'::bytea");
  const auto fault = refused();
  EXPECT_EQ(fault.what, kind::corrupt);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("lease 'a'"));
}

TEST_F(PostgresStore, AMissingRecordIsRefused) {
  run("DELETE FROM record");
  EXPECT_EQ(refused().what, kind::corrupt);
}

TEST_F(PostgresStore, ALogThatEndsBeforeItsCheckpointIsRefused) {
  run("DELETE FROM batch");
  EXPECT_EQ(refused().what, kind::corrupt);
}

TEST_F(PostgresStore, DamagedFactsAreRefused) {
  run("UPDATE store SET anchor_chain = ''");
  EXPECT_EQ(refused().what, kind::corrupt);
}

TEST_F(PostgresStore, DamageBehindTheCheckpointIsNamedAfterTheStart) {
  for (std::int64_t i = 0; i < 50; ++i) {
    expect(commit(*store, batch_of({renew_row("b", i + 1)})));
  }
  expect(checkpoint(*store, {{{key_of("a"), image_of("a", 1)}}, {}, {53}, true, {}}));
  run("UPDATE batch SET body = decode(repeat('00', length(body)), 'hex') WHERE last_row = 20");
  std::promise<std::string> said;
  how.on_damage = [&said](const std::string& sentence) { said.set_value(sentence); };
  open();
  recover(*store);
  auto sentence = said.get_future();
  ASSERT_EQ(sentence.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_THAT(sentence.get(), ::testing::HasSubstr("row 20"));
}

TEST_F(PostgresStore, AServerThatDoesNotSyncIsNamed) {
  std::string said;
  how.on_unsafe = [&said](const std::string& sentence) { said = sentence; };
  open();
  EXPECT_EQ(said.find("fsync=off") != std::string::npos,
            number("SELECT (current_setting('fsync') = 'off')::int") == 1);
}

TEST_F(PostgresStore, RecordsOfManyPagesAreReadInTheOrderOfTheirKeys) {
  actors::checkpoint_slice slice;
  for (int i = 0; i < 5000; ++i) {
    const auto name = std::to_string(i);
    slice.changed.push_back({key_of(name), image_of(name, 1)});
  }
  slice.upto = {3};
  slice.last = true;
  slice.forgotten = {key_of("a")};
  expect(checkpoint(*store, std::move(slice)));
  open();
  std::vector<protocol::lease_key> keys;
  expect(store->recover([](const auto&) {},
                        [&keys](actors::checkpoint_entry&& e) { keys.push_back(e.key); },
                        [](auto, const auto&) {}, [](auto&&) {}));
  EXPECT_EQ(keys.size(), 5000U);
  EXPECT_TRUE(std::ranges::is_sorted(keys));
}

TEST_F(PostgresStore, ManyLeasesAreForgottenAtOnce) {
  actors::checkpoint_slice slice;
  actors::checkpoint_slice later{{}, {}, {3}, true, {}};
  for (int i = 0; i < 9000; ++i) {
    const auto name = std::to_string(i);
    slice.changed.push_back({key_of(name), image_of(name, 1)});
    later.forgotten.push_back(key_of(name));
  }
  slice.upto = {3};
  slice.last = true;
  expect(checkpoint(*store, std::move(slice)));
  expect(checkpoint(*store, std::move(later)));
  open();
  EXPECT_EQ(recover(*store).records.size(), 1U) << "and the sums of those that are left are right";
}

TEST_F(PostgresStore, CommitsAndReadersRunBesideEachOther) {
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    while (!ended) {
      const auto head = expect(store->head());
      const auto rows = expect(store->rows_from({1}, 10'000));
      EXPECT_GE(static_cast<std::int64_t>(rows.size()), head.last_row.value);
    }
  });
  for (std::int64_t i = 1; i <= 200; ++i) expect(commit(*store, batch_of({renew_row("b", i)})));
  ended = true;
  reader.join();
}

TEST(PostgresStart, SeveralProcessesMayMakeTheTablesAtOnce) {
  empty_database();
  std::vector<std::thread> starts;
  for (int i = 0; i < 4; ++i) {
    starts.emplace_back([] {
      auto session = sandbox_session();
      const auto fault = storage::prepare_schema(session, 64);
      EXPECT_FALSE(fault) << fault->sentence;
    });
  }
  for (auto& each : starts) each.join();
  auto session = sandbox_session();
  EXPECT_EQ(expect(storage::read_facts(session)).store_id.size(), 32U);
}

TEST(PostgresStart, APasswordIsInNoSentence) {
  const auto opened = storage::postgres_connection::open(
      {"postgresql://me:hunter2@/nowhere?host=/does/not/exist&password=hunter2", "test", {}});
  const auto& fault = std::get<actors::store_error>(opened);
  EXPECT_EQ(fault.what, kind::io);
  EXPECT_THAT(fault.sentence, ::testing::Not(::testing::HasSubstr("hunter2")));
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("/does/not/exist"));
}

TEST(PostgresStart, ADatabaseThatIsNotThereIsNamed) {
  const auto opened = storage::postgres_connection::open({"postgresql:///not_there", "test", {}});
  EXPECT_THAT(std::get<actors::store_error>(opened).sentence, ::testing::HasSubstr("not_there"));
}

}  // namespace
}  // namespace leasehold::tests
