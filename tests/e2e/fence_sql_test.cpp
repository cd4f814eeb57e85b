// The statements of share/leasehold/sql themselves, as they are installed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <limits>
#include <thread>
#include <utility>

#include "leasehold/client/fencing_guard.hpp"
#include "pg_sandbox.hpp"
#include "support/fenced_postgresql.hpp"
#include "support/fenced_sqlite.hpp"

namespace leasehold::e2e {
namespace {

using tests::fenced_postgresql;
using tests::fenced_sqlite;
using tests::write_end;

/// RapidCheck reads its configuration once, from the environment.
[[maybe_unused]] const int fewer_cases = ::setenv("RC_PARAMS", "max_success=40 max_size=40", 0);

constexpr auto most = std::numeric_limits<std::int64_t>::max();

template <class Table>
void expect_verdicts(Table& table) {
  EXPECT_EQ(table.raise_known("k", 1), write_end::stale) << "no row is made";
  EXPECT_EQ(table.raise("k", 7), write_end::written) << "the first row comes by itself";
  EXPECT_EQ(table.raise("k", 6), write_end::stale);
  EXPECT_EQ(table.raise("k", 7), write_end::written);
  EXPECT_EQ(table.raise("k", 8), write_end::written);
  EXPECT_EQ(table.raise("k", 7), write_end::stale);
  EXPECT_EQ(table.raise("another", 1), write_end::written);
  EXPECT_EQ(table.raise_known("k", 7), write_end::stale);
  EXPECT_EQ(table.raise_known("k", 8), write_end::written);
  EXPECT_EQ(table.raise_known("k", most), write_end::written);
  EXPECT_EQ(table.raise("k", most - 1), write_end::stale);
  EXPECT_EQ(table.raise("", 1), write_end::failed);
  EXPECT_EQ(table.raise("new", 0), write_end::failed);
  EXPECT_EQ(table.raise("new", 1), write_end::written);
  EXPECT_EQ(table.raise("it's; \"one\" key", 2), write_end::written);
  EXPECT_EQ(table.raise("it's; \"one\" key", 1), write_end::stale);
}

template <class Table>
void expect_whole_transactions(Table& table) {
  EXPECT_EQ(table.write("w", 2, "two"), write_end::written);
  EXPECT_EQ(table.write("w", 1, "one"), write_end::stale);
  ASSERT_TRUE(table.execute("BEGIN"));
  EXPECT_EQ(table.raise("w", 9), write_end::written);
  ASSERT_TRUE(table.execute("ROLLBACK"));
  EXPECT_EQ(table.write("w", 3, "three"), write_end::written) << "9 was rolled back";
  EXPECT_EQ(table.rows("w"), (std::vector<tests::written_row>{{2, "two"}, {3, "three"}}));
}

/// The statement and the C++ guard are two forms of one thing: the same answers in every order.
template <class Table>
void expect_the_verdicts_of_the_guard(Table& table) {
  int runs = 0;
  EXPECT_TRUE(rc::check([&] {
    client::fencing_guard guard;
    const auto run = std::to_string(++runs);
    const auto key = rc::gen::element<std::string>("a", "b", "c");
    const auto steps = *rc::gen::container<std::vector<std::pair<std::string, std::int64_t>>>(
        rc::gen::pair(key, rc::gen::inRange<std::int64_t>(1, 9)));
    for (const auto& [name, token] : steps) {
      const bool is_stale = guard.raise(name, token) == client::fence_verdict::stale;
      RC_ASSERT(table.raise(run + name, token) ==
                (is_stale ? write_end::stale : write_end::written));
    }
  }));
}

class fence_in_sqlite : public testing::Test {
 protected:
  std::unique_ptr<fenced_sqlite> open() { return fenced_sqlite::open(kept_.path() / "work.db"); }
  void SetUp() override { ASSERT_NE(table_ = open(), nullptr); }

  tests::temporary_directory kept_;
  std::unique_ptr<fenced_sqlite> table_;
};

TEST_F(fence_in_sqlite, LowerTokensGetNoRowAndTheRestOne) { expect_verdicts(*table_); }
TEST_F(fence_in_sqlite, AStaleWriterWritesNothing) { expect_whole_transactions(*table_); }
TEST_F(fence_in_sqlite, EveryOrderGetsTheVerdictsOfTheGuard) {
  expect_the_verdicts_of_the_guard(*table_);
}

TEST_F(fence_in_sqlite, NobodyComesBetweenTheFenceAndTheWriteBehindIt) {
  const auto other = open();
  ASSERT_NE(other, nullptr);
  other->wait_for_others(0);
  ASSERT_TRUE(table_->execute("BEGIN IMMEDIATE"));
  EXPECT_EQ(table_->raise("k", 5), write_end::written);
  EXPECT_EQ(other->write("k", 6, "early"), write_end::failed) << "busy";
  ASSERT_TRUE(table_->execute("COMMIT"));
  EXPECT_EQ(other->write("k", 6, "in-turn"), write_end::written);
  EXPECT_EQ(table_->write("k", 5, "late"), write_end::stale);
}

class fence_in_postgresql : public testing::Test {
 protected:
  std::unique_ptr<fenced_postgresql> open() { return fenced_postgresql::open(sandbox_.where()); }
  void SetUp() override { ASSERT_NE(table_ = open(), nullptr); }
  bool somebody_waits() {
    return eventually(
        [this] { return table_->value("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0"; });
  }
  /// A second connection tells its token while the first has told 5 and has not committed.
  write_end raise_behind(std::int64_t token, const char* begin, const char* end,
                         std::string* sql_state = nullptr) {
    const auto other = open();
    if (!other) return write_end::failed;
    write_end out = write_end::failed;
    EXPECT_TRUE(table_->execute("BEGIN"));
    EXPECT_EQ(table_->raise("k", 5), write_end::written);
    std::thread second([&] {
      other->execute(begin);
      out = other->raise("k", token);
      if (sql_state != nullptr) *sql_state = other->sql_state();
      other->execute("ROLLBACK");
    });
    EXPECT_TRUE(somebody_waits());
    EXPECT_TRUE(table_->execute(end));
    second.join();
    return out;
  }

  pg_sandbox sandbox_;
  std::unique_ptr<fenced_postgresql> table_;
};

TEST_F(fence_in_postgresql, LowerTokensGetNoRowAndTheRestOneInEveryOrder) {
  expect_verdicts(*table_);
  expect_whole_transactions(*table_);
  expect_the_verdicts_of_the_guard(*table_);
}

TEST_F(fence_in_postgresql, AWriterWaitsForTheOneBeforeItAndIsJudgedByWhatThatOneLeft) {
  EXPECT_EQ(raise_behind(4, "BEGIN", "COMMIT"), write_end::stale);
  EXPECT_EQ(raise_behind(6, "BEGIN", "COMMIT"), write_end::written);
  ASSERT_TRUE(table_->execute("DELETE FROM fence"));
  EXPECT_EQ(raise_behind(4, "BEGIN", "ROLLBACK"), write_end::written) << "the first row, twice";
  std::string sql_state;
  constexpr auto strict = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
  EXPECT_EQ(raise_behind(6, strict, "COMMIT", &sql_state), write_end::failed);
  EXPECT_EQ(sql_state, "40001") << "to be run again as a whole";
}

}  // namespace
}  // namespace leasehold::e2e
