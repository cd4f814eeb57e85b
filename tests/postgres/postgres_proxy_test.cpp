// The proxy between libpq and a server: what each side has seen when the n-th message was cut.
#include "support/postgres_proxy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <vector>

#include "support/one_connection.hpp"
#include "support/postgres_server.hpp"

namespace leasehold::tests {
namespace {

using namespace std::chrono_literals;

class PostgresProxy : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<postgres_server>();
    server->execute("CREATE TABLE kept (n int PRIMARY KEY)");
  }
  static void TearDownTestSuite() { server.reset(); }
  void SetUp() override { EXPECT_TRUE(server->execute("TRUNCATE kept")); }

  [[nodiscard]] std::string url() const { return server->url("postgres", proxy.directory()); }
  /// Waits until the server has no session of the proxy's any more.
  static bool server_is_alone() {
    return eventually([] {
      return server->value(
                 "SELECT count(*) FROM pg_stat_activity WHERE backend_type ="
                 " 'client backend' AND pid <> pg_backend_pid()") == "0";
    });
  }
  static std::string count() { return server->value("SELECT count(*) FROM kept"); }

  inline static std::unique_ptr<postgres_server> server;
  postgres_proxy proxy{server->socket()};
};

TEST_F(PostgresProxy, PassesSessionsOnUnchanged) {
  one_connection one(url());
  one_connection other(url());
  EXPECT_EQ(one.ask("SELECT repeat('x', 3000000)").size(), 3'000'000U);
  EXPECT_EQ(other.ask_extended("SELECT '" + std::string(2'000'000, 'y') + "'").size(), 2'000'000U);
  EXPECT_EQ(proxy.sessions(), 2);
  EXPECT_EQ(proxy.hits(), 0);
}

TEST_F(PostgresProxy, TellsThatThereIsNoEncryption) {
  one_connection plain(url() + "&sslmode=prefer&gssencmode=disable");
  EXPECT_TRUE(plain.is_open());
}

/// At each message of an INSERT and its COMMIT: what was not answered is there or not, and which of
/// both it is follows from where the cut was.
TEST_F(PostgresProxy, CutsAtEveryMessageAndBothOutcomesOfACommitOccur) {
  int there = 0;
  int missing = 0;
  for (const auto to : {toward::server, toward::client}) {
    for (const bool passes : {false, true}) {
      for (int n = 1;; ++n) {
        SetUp();
        one_connection asked(url());
        ASSERT_TRUE(asked.is_open());
        auto fault = cut_before(to, n);
        fault.passes = passes;
        proxy.set(fault);
        asked.ask("BEGIN");
        asked.ask_extended("INSERT INTO kept VALUES (1)");
        const auto said = asked.ask("COMMIT");
        if (proxy.hits() == 0) {
          EXPECT_EQ(said, "COMMIT");
          EXPECT_GT(n, 5);
          proxy.heal();
          break;
        }
        // The last message of all, after the answer, may have been passed on.
        EXPECT_TRUE(said == "!" || (passes && to == toward::client)) << said;
        proxy.heal();
        ASSERT_TRUE(server_is_alone());
        const bool is_there = count() == "1";
        EXPECT_TRUE(is_there || said != "COMMIT");
        ++(is_there ? there : missing);
      }
    }
  }
  EXPECT_GT(there, 3);
  EXPECT_GT(missing, 10);
}

TEST_F(PostgresProxy, ForcesBothOutcomesOfOneCommit) {
  for (const bool passes : {false, true}) {
    SetUp();
    one_connection asked(url());
    auto fault = cut_before(toward::server, 1);
    fault.matches = is_commit;
    fault.passes = passes;
    proxy.set(fault);
    EXPECT_EQ(asked.ask("BEGIN"), "BEGIN");
    EXPECT_EQ(asked.ask("INSERT INTO kept VALUES (1)"), "INSERT 0 1");
    EXPECT_EQ(asked.ask_extended("COMMIT"), "!");
    ASSERT_TRUE(server_is_alone());
    EXPECT_EQ(proxy.hits(), 1);
    EXPECT_EQ(count(), passes ? "1" : "0");
  }
}

TEST_F(PostgresProxy, LeavesTheServerWithAnOpenTransactionWhenOnlyTheClientSeesTheEnd) {
  one_connection asked(url());
  auto fault = cut_before(toward::client, 1);
  fault.matches = [](const passing_message& m) { return m.type == 'C'; };
  fault.nth = 2;
  fault.closes_server = false;
  proxy.set(fault);
  EXPECT_EQ(asked.ask("BEGIN"), "BEGIN");
  EXPECT_EQ(asked.ask("INSERT INTO kept VALUES (1)"), "!");
  EXPECT_EQ(server->value("SELECT count(*) FROM pg_stat_activity WHERE state ="
                          " 'idle in transaction'"),
            "1");
  proxy.heal();
  EXPECT_TRUE(server_is_alone());
  EXPECT_EQ(count(), "0");
}

TEST_F(PostgresProxy, LeavesTheClientWithoutAnAnswerWhenNobodyIsToldOfTheEnd) {
  one_connection asked(url());
  auto fault = cut_after(toward::server, 1);
  fault.closes_client = false;
  proxy.set(fault);
  auto said = std::async(std::launch::async, [&] { return asked.ask("SELECT 1"); });
  EXPECT_EQ(said.wait_for(200ms), std::future_status::timeout);
  EXPECT_TRUE(server_is_alone());
  proxy.heal();
  EXPECT_EQ(said.get(), "!");
}

TEST_F(PostgresProxy, DelaysEachCommitAndNothingElse) {
  one_connection asked(url());
  proxy_fault slow;
  slow.matches = is_commit;
  slow.passes = true;
  slow.ends = false;
  slow.lasts = true;
  slow.delay = 300ms;
  proxy.set(slow);
  const auto lasted = [&](const std::string& statement) {
    const auto from = std::chrono::steady_clock::now();
    asked.ask(statement);
    return std::chrono::steady_clock::now() - from;
  };
  EXPECT_LT(lasted("BEGIN"), 250ms);
  EXPECT_GE(lasted("COMMIT"), 300ms);
  EXPECT_LT(lasted("BEGIN"), 250ms);
  EXPECT_GE(lasted("COMMIT"), 300ms);
  EXPECT_EQ(proxy.hits(), 2);
}

TEST_F(PostgresProxy, KnowsTheServersProcess) {
  one_connection asked(url());
  pid_t seen = 0;
  proxy_fault look;
  look.passes = true;
  look.ends = false;
  look.first = [&](const passing_message& what) { seen = what.backend; };
  proxy.set(look);
  const auto process = asked.ask("SELECT pg_backend_pid()");
  EXPECT_EQ(process, std::to_string(seen));
}

TEST_F(PostgresProxy, RefusesAndSilencesAndOpensAgain) {
  one_connection asked(url());
  proxy.set_link(proxy_link::refused);
  EXPECT_EQ(asked.ask("SELECT 1"), "!");
  EXPECT_FALSE(one_connection(url()).is_open());
  proxy.heal();
  one_connection again(url());
  EXPECT_EQ(again.ask("SELECT 2"), "2");
  proxy.set_link(proxy_link::silent);
  auto said = std::async(std::launch::async, [&] { return again.ask("SELECT 3"); });
  auto made = std::async(std::launch::async, [&] { return one_connection(url()).is_open(); });
  EXPECT_EQ(said.wait_for(200ms), std::future_status::timeout);
  EXPECT_EQ(made.wait_for(0ms), std::future_status::timeout);
  proxy.heal();
  EXPECT_EQ(said.get(), "!");
  EXPECT_FALSE(made.get());
  EXPECT_TRUE(one_connection(url()).is_open());
}

}  // namespace
}  // namespace leasehold::tests
