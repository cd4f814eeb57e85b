// What a PostgreSQL server says no with, and what it does not say: locks, deadlocks, time limits,
// serialization, a database that became read-only, no room for a session, restarts. What may pass
// is tried again, the rest is refused; a session that failed is never used again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "failing_database.hpp"
#include "support/one_connection.hpp"

namespace leasehold::tests {
namespace {

using namespace std::chrono_literals;
using protocol::reason;

constexpr auto database = "leases";

class PostgresTrouble : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ground = std::make_unique<failing_database>(); }
  static void TearDownTestSuite() { ground.reset(); }

  void SetUp() override { start(impatient()); }
  void TearDown() override {
    ground->mend();
    if (!scene_ || scene_->ended()) return;
    scene_.reset();
    expect_proven(ground->place);
  }

  void start(const storage::postgres_options& with) {
    scene_.reset();
    ground->mend();
    ground->fresh();
    ground->place.options = with;
    clock_->set(protocol::instant{2'000'000});
    scene_ = std::make_unique<scene>(ground->place, clock_);
    ASSERT_FALSE(scene_->start_error()) << scene_->start_error()->sentence;
  }

  reason submit_one(const std::string& name) { return submit(*scene_->rig, name).reason; }
  /// Nothing of it is there, and it is taken when it is said again.
  void expect_refused(const std::string& name) {
    EXPECT_EQ(submit_one(name), reason::store_unavailable);
    EXPECT_FALSE(scene_->ended()) << scene_->rig->fatal;
    EXPECT_FALSE(job(*scene_->rig, name));
    EXPECT_EQ(submits_of(name), 0);
    expect_no_open_transaction();
  }
  void expect_taken(const std::string& name) {
    EXPECT_EQ(submit_one(name), reason::submitted);
    EXPECT_FALSE(scene_->ended()) << scene_->rig->fatal;
    EXPECT_EQ(submits_of(name), 1);
    expect_no_open_transaction();
  }
  static std::int64_t submits_of(const std::string& name) {
    const auto rows = rows_of(ground->place);
    return std::ranges::count_if(rows, [&](const protocol::stored_row& row) {
      return row.key.lease.value == name && row.input.kind == protocol::event_kind::submit;
    });
  }
  /// A session inside a transaction, above all an aborted one, serves nobody.
  static void expect_no_open_transaction() {
    EXPECT_EQ(value("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in trans%'"
                    " AND application_name LIKE 'leasehold/%'"),
              "0");
  }
  static std::string value(const std::string& query) {
    return ground->server.value(query, database);
  }
  static void run(const std::string& statements) {
    EXPECT_TRUE(ground->server.execute(statements, database)) << statements;
  }
  static std::string url() { return ground->server.url(database); }
  static std::string waiting_for(const std::string& table) {
    return value("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'leasehold." +
                 table + "'::regclass");
  }

  /// The first `times` commits of rows end with this SQLSTATE, at the COMMIT itself.
  class failing_commits {
   public:
    failing_commits(const std::string& state, int times) {
      run("CREATE SEQUENCE public.trouble; CREATE FUNCTION public.trouble() RETURNS trigger"
          " LANGUAGE plpgsql AS $$ BEGIN IF nextval('public.trouble') <= " +
          std::to_string(times) + " THEN RAISE EXCEPTION 'no' USING ERRCODE = '" + state +
          "'; END IF; RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER trouble AFTER INSERT ON"
          " leasehold.batch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION"
          " public.trouble()");
    }
    ~failing_commits() {
      run("DROP TRIGGER trouble ON leasehold.batch; DROP FUNCTION public.trouble;"
          " DROP SEQUENCE public.trouble");
    }
    failing_commits(const failing_commits&) = delete;
    failing_commits& operator=(const failing_commits&) = delete;
  };

  inline static std::unique_ptr<failing_database> ground;
  std::shared_ptr<manual_clock> clock_ = std::make_shared<manual_clock>();
  std::unique_ptr<scene> scene_;
};

TEST_F(PostgresTrouble, WhatMayPassIsTriedAgainAndAnsweredOnce) {
  for (const std::string state : {"40001", "40P01", "55P03", "57014"}) {
    SCOPED_TRACE(state);
    const failing_commits twice(state, 2);
    expect_taken("j-" + state);
  }
}

TEST_F(PostgresTrouble, WhatDoesNotPassIsRefusedInTime) {
  for (const std::string state : {"40001", "40P01", "55P03", "57014"}) {
    SCOPED_TRACE(state);
    {
      const failing_commits always(state, 1'000'000);
      const auto from = std::chrono::steady_clock::now();
      expect_refused("j-" + state);
      EXPECT_LT(std::chrono::steady_clock::now() - from, 5s);
      EXPECT_FALSE(scene_->is_ready());
    }
    expect_taken("j-" + state);
    scene_->rig->checkpoint();
    EXPECT_TRUE(scene_->is_ready());
  }
}

TEST_F(PostgresTrouble, WhatTryingAgainDoesNotMendIsRefusedAtOnce) {
  // No space, no memory, a read-only transaction, something inside.
  for (const std::string state : {"53100", "53200", "25006", "XX000", "42501"}) {
    SCOPED_TRACE(state);
    {
      const failing_commits once(state, 1);
      expect_refused("j-" + state);
    }
    expect_taken("j-" + state);
  }
}

TEST_F(PostgresTrouble, ALockOfAnothersIsWaitedForAndThenRefused) {
  one_connection other(url());
  for (const std::string table : {"batch", "epoch"}) {
    SCOPED_TRACE(table);
    EXPECT_EQ(other.ask("BEGIN"), "BEGIN");
    EXPECT_EQ(other.ask("LOCK TABLE leasehold." + table), "LOCK TABLE");
    EXPECT_EQ(submit_one("j-" + table), reason::store_unavailable);
    EXPECT_FALSE(job(*scene_->rig, "j-" + table));
    EXPECT_EQ(other.ask("COMMIT"), "COMMIT");
    EXPECT_EQ(submits_of("j-" + table), 0);
    expect_taken("j-" + table);
  }
}

TEST_F(PostgresTrouble, ALockThatIsReleasedInTimeIsNoTrouble) {
  one_connection other(url());
  EXPECT_EQ(other.ask("BEGIN"), "BEGIN");
  EXPECT_EQ(other.ask("LOCK TABLE leasehold.batch"), "LOCK TABLE");
  const std::jthread releasing([&] {
    EXPECT_TRUE(eventually([] { return waiting_for("batch") == "1"; }));
    EXPECT_EQ(other.ask("COMMIT"), "COMMIT");
  });
  expect_taken("j");
}

TEST_F(PostgresTrouble, AStatementThatTakesTooLongIsEnded) {
  auto with = impatient();
  with.access.limits.lock = 10s;
  with.access.limits.statement = 200ms;
  start(with);
  one_connection other(url());
  EXPECT_EQ(other.ask("BEGIN"), "BEGIN");
  EXPECT_EQ(other.ask("LOCK TABLE leasehold.batch"), "LOCK TABLE");
  EXPECT_EQ(submit_one("j"), reason::store_unavailable);
  EXPECT_EQ(other.ask("COMMIT"), "COMMIT");
  EXPECT_EQ(submits_of("j"), 0);
  expect_taken("j");
}

TEST_F(PostgresTrouble, ADeadlockIsTriedAgain) {
  one_connection other(url());
  other.ask("SET deadlock_timeout = '10s'");
  EXPECT_EQ(other.ask("BEGIN"), "BEGIN");
  EXPECT_EQ(other.ask("LOCK TABLE leasehold.batch IN EXCLUSIVE MODE"), "LOCK TABLE");
  std::future<std::string> locked;
  // The coordinator has its lock of the epoch: the other one waits for it first.
  proxy_fault cross;
  cross.ends = false;
  cross.passes = true;
  cross.matches = [](const passing_message& what) {
    return what.type == 'E' && what.statement.starts_with("INSERT INTO batch");
  };
  cross.first = [&](const passing_message&) {
    locked = std::async(std::launch::async, [&] {
      auto said = other.ask("LOCK TABLE leasehold.epoch");
      EXPECT_EQ(other.ask("COMMIT"), "COMMIT");
      return said;
    });
    EXPECT_TRUE(eventually([] { return waiting_for("epoch") == "1"; }));
  };
  ground->proxy.set(std::move(cross));
  expect_taken("j");
  EXPECT_EQ(ground->proxy.hits(), 1);
  EXPECT_EQ(locked.get(), "LOCK TABLE");
  EXPECT_THAT(ground->server.log(), testing::HasSubstr("deadlock detected"));
}

TEST_F(PostgresTrouble, ADatabaseThatBecameReadOnlyRefusesUntilItIsNot) {
  expect_taken("before");
  // New sessions of the database are read-only, or are not; its old ones end.
  const auto change = [](const std::string& how) {
    EXPECT_TRUE(
        ground->server.execute("ALTER DATABASE leases " + how +
                               "; SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                               " WHERE application_name LIKE 'leasehold/%'"));
  };
  change("SET default_transaction_read_only = on");
  expect_refused("j");
  expect_refused("j");
  change("RESET default_transaction_read_only");
  expect_taken("j");
}

TEST_F(PostgresTrouble, WithoutRoomForASessionCommitsAreRefusedUntilThereIs) {
  expect_taken("before");
  std::vector<std::unique_ptr<one_connection>> others;
  // The sessions of the coordinator are gone, and all room is taken before it wants new ones.
  ground->proxy.set_link(proxy_link::refused);
  do {
    others.push_back(std::make_unique<one_connection>(url()));
  } while (others.back()->is_open());
  others.pop_back();
  ground->proxy.set_link(proxy_link::open);
  EXPECT_EQ(submit_one("j"), reason::store_unavailable);
  EXPECT_FALSE(scene_->ended()) << scene_->rig->fatal;
  EXPECT_FALSE(job(*scene_->rig, "j"));
  others.clear();
  EXPECT_TRUE(eventually([] { return submits_of("j") == 0; }));
  expect_taken("j");
}

TEST_F(PostgresTrouble, ARestartIsPassedOverInEveryWay) {
  auto& server = ground->server;
  expect_taken("before");
  server.stop();
  EXPECT_EQ(submit_one("j"), reason::store_unavailable);
  EXPECT_FALSE(job(*scene_->rig, "j"));
  server.start();
  EXPECT_EQ(submits_of("j"), 0);
  expect_taken("j");
  server.stop_immediately();
  server.start();
  expect_taken("after a crash");
  server.kill();
  server.start();
  expect_taken("after a kill");
  EXPECT_EQ(submits_of("before"), 1);
}

TEST_F(PostgresTrouble, AServerThatStandsStillEndsTheWaitAndTheProcessWhenACommitIsUnknown) {
  expect_taken("before");
  ground->server.stand_still();
  const auto from = std::chrono::steady_clock::now();
  EXPECT_EQ(submit_one("j"), reason::store_unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - from, 20s);
  // The COMMIT may have been read: nobody can be told that it was not.
  EXPECT_TRUE(scene_->ended());
  ground->server.go_on();
}

/// Nobody waits for an answer longer than a database may take.
TEST_F(PostgresTrouble, ADatabaseThatIsNotThereIsSaidAtTheStart) {
  scene_.reset();
  ground->server.stop();
  const scene began(ground->place, clock_);
  ASSERT_TRUE(began.start_error());
  EXPECT_THAT(began.start_error()->sentence, testing::HasSubstr("leases"));
  ground->server.start();
  start(impatient());
  expect_taken("j");
}

}  // namespace
}  // namespace leasehold::tests
