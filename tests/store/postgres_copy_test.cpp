// Copies from and into PostgreSQL, in the server of tools/pg-sandbox.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/store/copied_tables.hpp"
#include "src/store/open_store.hpp"
#include "src/store/store_copy.hpp"
#include "tests/store/copied_history.hpp"
#include "tests/store/postgres_scene.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

using actors::store_error;
using table_rows = std::map<std::string, std::vector<storage::copied_row>>;

const storage::store_place database = storage::postgres_place{"postgresql://"};

table_rows rows_of(const storage::store_place& place) {
  auto from = expect(storage::open_table_source(place));
  EXPECT_FALSE(from->begin());
  table_rows out;
  for (const auto& table : storage::copied_tables()) {
    auto& rows = out[std::string(table.name)];
    EXPECT_FALSE(from->each_row(table, [&](storage::copied_row&& row) {
      rows.push_back(std::move(row));
      return std::optional<store_error>{};
    }));
  }
  expect(from->end());
  return out;
}

template <class Result>
std::string sentence(const Result& result) {
  const auto* fault = std::get_if<store_error>(&result);
  EXPECT_NE(fault, nullptr);
  return fault == nullptr ? "" : fault->sentence;
}

std::unique_ptr<actors::store> open(const storage::store_place& place, bool restored = false) {
  return expect(storage::open_store({.place = place, .restored_backup = restored}));
}

class postgres_copy : public testing::Test {
 protected:
  postgres_copy() { empty_database(); }

  [[nodiscard]] storage::store_place file(const char* name) const {
    return storage::sqlite_place{place_.path() / name};
  }

  static actors::log_head fill(const storage::store_place& place) {
    auto store = open(place);
    recover(*store);
    return fill_with_history(*store, 11);
  }

  temporary_directory place_;
};

TEST_F(postgres_copy, ThereAndBackHasEveryRowAndProvesEveryDecision) {
  const auto head = fill(file("first"));
  const auto there = expect(storage::copy_store({.from = file("first"), .to = database}));
  EXPECT_EQ(there.head, head);
  EXPECT_EQ(there.rows, head.last_row.value);
  EXPECT_FALSE(there.is_backup);
  EXPECT_EQ(rows_of(database), rows_of(file("first")));
  EXPECT_EQ(rows_of(database).at("process_handle").size(), 1U);
  EXPECT_TRUE(expect(storage::verify_store(database, {.head = head})).proven());
  EXPECT_EQ(expect(storage::head_of_store(database)), head);
  const auto back = expect(storage::copy_store({.from = database, .to = file("second")}));
  EXPECT_EQ(back.head, head);
  EXPECT_FALSE(back.is_backup);
  EXPECT_EQ(rows_of(file("second")), rows_of(file("first")));
}

TEST_F(postgres_copy, GoesOnWhereTheSourceEnded) {
  const auto head = fill(file("first"));
  expect(storage::copy_store({.from = file("first"), .to = database}));
  {
    auto store = open(database);
    EXPECT_EQ(recover(*store).head.head, head);
    history past(*store, 12);
    past.submit("after");
  }
  EXPECT_GT(expect(storage::head_of_store(database)).last_row, head.last_row);
  EXPECT_TRUE(expect(storage::verify_store(database, {.head = head})).proven());
}

TEST_F(postgres_copy, KilledInTheMiddleIsServedAndReadByNobodyUntilItIsMadeAnew) {
  const auto head = fill(file("first"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    storage::copy_options how{.from = file("first"), .to = database};
    how.progress = [](std::int64_t done, std::int64_t all, std::string_view) {
      if (done > 0 && done < all) ::kill(::getpid(), SIGKILL);
    };
    (void)storage::copy_store(how);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the copy ended before it was killed";
  for (const auto& said :
       {sentence(storage::open_store({.place = database})),
        sentence(storage::verify_store(database, {})), sentence(storage::head_of_store(database)),
        sentence(storage::copy_store({.from = database, .to = file("next")})),
        sentence(storage::copy_store({.from = file("first"), .to = database}))}) {
    EXPECT_NE(said.find("a copy that was not finished"), std::string::npos) << said;
  }
  EXPECT_EQ(
      expect(storage::copy_store({.from = file("first"), .to = database, .restart = true})).head,
      head);
  EXPECT_EQ(rows_of(database), rows_of(file("first")));
}

TEST_F(postgres_copy, OfAStoreThatIsServedWantsToBeRestored) {
  fill(database);
  const auto served = open(database);
  EXPECT_TRUE(expect(storage::copy_store({.from = database, .to = file("copy")})).is_backup);
  EXPECT_NE(sentence(storage::open_store({.place = file("copy")})).find("--restored-backup"),
            std::string::npos);
  open(file("copy"), true);
}

TEST_F(postgres_copy, IntoAStoreThatIsServedOrNotEmptyIsRefused) {
  fill(file("first"));
  {
    const auto served = open(database);
    EXPECT_NE(sentence(storage::copy_store({.from = file("first"), .to = database}))
                  .find("is served by a coordinator"),
              std::string::npos);
  }
  expect(storage::copy_store({.from = file("first"), .to = database}));
  EXPECT_NE(
      sentence(storage::copy_store({.from = file("first"), .to = database})).find("not empty"),
      std::string::npos);
}

TEST_F(postgres_copy, WhatIsNoStoreIsNamed) {
  EXPECT_NE(sentence(storage::verify_store(database, {})).find("no Leasehold store"),
            std::string::npos);
  EXPECT_NE(sentence(storage::copy_store({.from = database, .to = file("copy")}))
                .find("no Leasehold store"),
            std::string::npos);
}

}  // namespace
}  // namespace leasehold::tests
