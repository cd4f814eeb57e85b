// The server of a test's own: what it keeps, and what it loses.
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <future>

#include "support/one_connection.hpp"

namespace leasehold::tests {
namespace {

class PostgresServer : public ::testing::Test {
 protected:
  void write(int n) {
    EXPECT_TRUE(server.execute("INSERT INTO kept VALUES (" + std::to_string(n) + ")"));
  }
  std::string count() { return server.value("SELECT count(*) FROM kept"); }
  void SetUp() override { EXPECT_TRUE(server.execute("CREATE TABLE kept (n int)")); }

  postgres_server server;
};

TEST_F(PostgresServer, KeepsWhatWasCommittedOverEveryEndOfIt) {
  write(1);
  server.stop();
  EXPECT_FALSE(server.runs());
  server.start();
  write(2);
  server.stop_immediately();
  server.start();
  write(3);
  server.kill();
  EXPECT_FALSE(server.execute("SELECT 1"));
  server.start();
  EXPECT_EQ(count(), "3");
}

TEST_F(PostgresServer, StandsStillAndGoesOn) {
  one_connection asked(server.url());
  EXPECT_EQ(asked.ask("SELECT 1"), "1");
  server.stand_still();
  auto said = std::async(std::launch::async, [&] { return asked.ask("SELECT 2"); });
  EXPECT_EQ(said.wait_for(std::chrono::milliseconds{200}), std::future_status::timeout);
  server.go_on();
  EXPECT_EQ(said.get(), "2");
}

/// What a test of durability rests upon: whoever does not ask for it does lose what was answered.
TEST_F(PostgresServer, LosesWhatWasAnsweredWhenNobodyWaitsForItsLog) {
  server.set("synchronous_commit", "off");
  server.set("wal_writer_delay", "10s");
  server.stop();
  server.start();
  const auto before = count();
  write(1);
  server.kill();
  server.start();
  EXPECT_EQ(count(), before);
}

TEST_F(PostgresServer, TakesParametersAtItsNextStart) {
  server.set("default_transaction_read_only", "on");
  EXPECT_TRUE(server.execute("SELECT 1"));
  write(1);
  server.stop();
  server.start();
  EXPECT_FALSE(server.execute("INSERT INTO kept VALUES (2)"));
  EXPECT_EQ(count(), "1");
}

TEST_F(PostgresServer, CopiesADatabase) {
  server.make_database("first");
  EXPECT_TRUE(server.execute("CREATE TABLE t AS SELECT 7 AS n", "first"));
  server.make_database("second", "first");
  EXPECT_EQ(server.value("SELECT n FROM t", "second"), "7");
  server.drop_database("second");
  EXPECT_FALSE(server.execute("SELECT 1", "second"));
}

}  // namespace
}  // namespace leasehold::tests
