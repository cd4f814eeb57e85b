// The server is killed under load, again and again; what it answered is there afterwards, whole.
// The same on every kind of store, and when it is the database that is killed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "live_server.hpp"
#include "socket_load.hpp"
#include "support/database_place.hpp"
#include "support/postgres_proxy.hpp"
#include "support/postgres_server.hpp"
#include "support/stored_log.hpp"

namespace leasehold::e2e {
namespace {

int kills_wanted(int otherwise) {
  const char* wanted = std::getenv("LEASEHOLD_KILLS");
  return wanted == nullptr ? otherwise : static_cast<int>(std::strtol(wanted, nullptr, 10));
}

class Kill : public testing::Test {
 protected:
  explicit Kill(bool on_postgres = false) {
    if (!on_postgres) return;
    database = std::make_unique<tests::postgres_server>(tests::postgres_server::durable());
    proxy = std::make_unique<tests::postgres_proxy>(database->socket());
  }

  [[nodiscard]] std::vector<std::string> store_arguments() const {
    if (!database) return {};
    return {"--store", database->url("postgres", proxy->directory())};
  }

  /// Loads the server until it has answered some hundred frames more, and kills it then.
  void load_and_kill(live_server& server, int life) {
    std::mt19937_64 random(static_cast<std::uint64_t>(life));
    const std::size_t answered = seen.heard() + 500 + random() % 3000;
    const socket_load load(server, seen, {.life = life, .seed = random()});
    EXPECT_TRUE(eventually([&] { return seen.heard() >= answered; })) << server.log();
    server.kill();
  }

  std::vector<std::string> losses(const live_server& server) {
    const auto log =
        database ? tests::read_postgres_log(database->url()) : tests::read_log(server.data());
    rows = log.rows.size();
    return tests::loss_search(log, seen).run();
  }

  void expect_whole(const live_server& server, int life) {
    const auto lost = losses(server);
    ASSERT_TRUE(lost.empty()) << "after kill " << life << ": " << lost.size()
                              << " losses, the first: " << lost.front();
    if (database) {
      const auto said = run_leasehold({"verify", "--store", database->url()});
      EXPECT_EQ(said.exit_code, 0) << said.output;
    } else {
      expect_proven(server);
    }
  }

  void kill_again_and_again(int kills) {
    live_server server(2, store_arguments());
    for (int life = 0; life < kills && !HasFatalFailure(); ++life) {
      load_and_kill(server, life);
      server.start();
      expect_whole(server, life);
    }
    std::cout << kills << " kills, " << seen.verdicts().size() << " verdicts, " << rows
              << " rows\n";
  }

  std::unique_ptr<tests::postgres_server> database;
  std::unique_ptr<tests::postgres_proxy> proxy;  ///< to the database
  tests::driver_log seen;
  std::size_t rows = 0;
};

class KillOnPostgres : public Kill {
 protected:
  KillOnPostgres() : Kill(true) {}

  /// Loads the server, ends the database under it and starts that again; the server goes on, or
  /// ends because it cannot tell what became of a commit.
  void load_and_end_database(live_server& server, int life) {
    std::mt19937_64 random(static_cast<std::uint64_t>(life));
    auto answered = seen.heard() + 500 + random() % 2000;
    const socket_load load(server, seen, {.life = life, .seed = random()});
    EXPECT_TRUE(eventually([&] { return seen.heard() >= answered; })) << server.log();
    life % 2 == 0 ? database->kill() : database->stop_immediately();
    database->start();
    answered = seen.heard() + 500;
    EXPECT_TRUE(eventually([&] { return seen.heard() >= answered || !server.runs(); }))
        << server.log();
    went_on += server.runs() ? 1 : 0;
    if (server.runs()) server.kill();
  }

  int went_on = 0;
};

TEST_F(Kill, NothingThatWasAnsweredIsLostAndNothingIsHalfThere) {
  kill_again_and_again(kills_wanted(3));
}

TEST_F(KillOnPostgres, NothingThatWasAnsweredIsLostAndNothingIsHalfThere) {
  kill_again_and_again(kills_wanted(2));
}

TEST_F(KillOnPostgres, CutsOfItsConnectionUnderLoadLoseNothingEither) {
  live_server server(2, store_arguments());
  std::mt19937_64 random(1);
  const int cuts = 10 * kills_wanted(2);
  {
    const socket_load load(server, seen, {.life = 0, .seed = random()});
    for (int i = 0; i < cuts && server.runs(); ++i) {
      const auto answered = seen.heard() + 50;
      auto cut = tests::cut_before(i % 2 == 0 ? tests::toward::server : tests::toward::client,
                                   static_cast<int>(1 + random() % 40));
      cut.passes = random() % 2 == 0;
      proxy->set(std::move(cut));
      EXPECT_TRUE(eventually([&] { return proxy->hits() > 0; })) << server.log();
      proxy->heal();
      EXPECT_TRUE(eventually([&] { return seen.heard() >= answered || !server.runs(); }))
          << server.log();
    }
    EXPECT_TRUE(server.runs()) << server.log();
    server.kill();
  }
  server.start();
  expect_whole(server, 0);
  std::cout << cuts << " cuts, " << seen.verdicts().size() << " verdicts, " << rows << " rows\n";
}

TEST_F(KillOnPostgres, TheEndOfTheDatabaseUnderLoadLosesNothingEither) {
  live_server server(2, store_arguments());
  const int kills = kills_wanted(2);
  for (int life = 0; life < kills && !HasFatalFailure(); ++life) {
    load_and_end_database(server, life);
    server.start();
    expect_whole(server, life);
  }
  std::cout << kills << " ends of the database, the server went on after " << went_on << ", "
            << seen.verdicts().size() << " verdicts, " << rows << " rows\n";
}

}  // namespace
}  // namespace leasehold::e2e
