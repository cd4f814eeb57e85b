#include "src/store/store_copy.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "src/store/copied_tables.hpp"
#include "src/store/kept_head.hpp"
#include "src/store/schema.hpp"
#include "src/store/sqlite_backup.hpp"
#include "src/store/sqlite_store.hpp"
#include "tests/store/copied_history.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::tests {
namespace {

using actors::store_error;
namespace fs = std::filesystem;
using table_rows = std::map<std::string, std::vector<storage::copied_row>>;

/// Every row of every table.
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
store_error refused(const Result& result) {
  const auto* fault = std::get_if<store_error>(&result);
  EXPECT_NE(fault, nullptr);
  return fault == nullptr ? store_error{} : *fault;
}

template <class Result>
std::string sentence(const Result& result) {
  return refused(result).sentence;
}

/// A store with the history of a few leases, a checkpoint in its middle, and floors.
class store_copy : public testing::Test {
 protected:
  store_copy() {
    auto store = expect(storage::open_sqlite_store({.directory = source_.path()}));
    head_ = fill_with_history(*store, 7);
  }

  [[nodiscard]] storage::store_place from() const { return storage::sqlite_place{source_.path()}; }
  [[nodiscard]] storage::store_place to() const {
    return storage::sqlite_place{target_.path() / "copy"};
  }
  [[nodiscard]] fs::path directory_of_copy() const { return target_.path() / "copy"; }

  auto copy(bool restart = false) const {
    return storage::copy_store({.from = from(), .to = to(), .restart = restart});
  }

  /// A process that copies is killed when it has copied something, and not all.
  void kill_in_the_middle() const {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      storage::copy_options how{.from = from(), .to = to()};
      how.progress = [](std::int64_t done, std::int64_t all, std::string_view) {
        if (done > 0 && done < all) ::kill(::getpid(), SIGKILL);
      };
      (void)storage::copy_store(how);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the copy ended before it was killed";
  }

  temporary_directory source_;
  temporary_directory target_;
  actors::log_head head_;
};

TEST_F(store_copy, HasEveryRowOfEveryTableAndTheSameHead) {
  std::int64_t done = 0;
  std::int64_t checked = 0;
  const auto report = expect(storage::copy_store(
      {.from = from(),
       .to = to(),
       .progress = [&](std::int64_t now, std::int64_t, std::string_view) { done = now; },
       .checking = [&](std::int64_t now, std::int64_t) { checked = now; }}));
  EXPECT_EQ(report.head, head_);
  EXPECT_EQ(report.rows, head_.last_row.value);
  EXPECT_EQ(checked, head_.last_row.value);
  EXPECT_FALSE(report.is_backup);
  const auto copied = rows_of(to());
  EXPECT_EQ(copied, rows_of(from()));
  EXPECT_EQ(copied.at("cancel_dispatch").size(), 1U);
  EXPECT_EQ(copied.at("dispatch_event").size(), 1U);
  EXPECT_EQ(copied.at("process_handle").size(), 1U);
  EXPECT_EQ(report.dispatches, 1);
  std::int64_t all = 0;
  for (const auto& [name, rows] : copied) all += static_cast<std::int64_t>(rows.size());
  EXPECT_EQ(done, all);
  EXPECT_GT(report.records, 0);
  const auto verified = expect(storage::verify_store(to(), {.head = head_}));
  EXPECT_TRUE(verified.proven());
  EXPECT_EQ(verified.records, report.records);
  EXPECT_TRUE(verified.remarks.empty());
}

TEST_F(store_copy, GoesOnAsAStoreWhereTheSourceEnded) {
  expect(copy());
  {
    auto store = expect(storage::open_sqlite_store({.directory = directory_of_copy()}));
    const auto was = recover(*store);
    EXPECT_EQ(was.head.head, head_);
    history past(*store, 9);
    past.submit("after");
  }
  EXPECT_GT(expect(storage::head_of_store(to())).last_row, head_.last_row);
}

TEST_F(store_copy, OfAStoreThatIsServedWantsToBeRestored) {
  const auto served = expect(storage::open_sqlite_store({.directory = source_.path()}));
  EXPECT_TRUE(expect(copy()).is_backup);
  EXPECT_NE(sentence(storage::open_sqlite_store({.directory = directory_of_copy()}))
                .find("--restored-backup"),
            std::string::npos);
  expect(storage::open_sqlite_store({.directory = directory_of_copy(), .restored_backup = true}));
}

TEST_F(store_copy, KilledInTheMiddleIsServedAndReadByNobodyUntilItIsMadeAnew) {
  kill_in_the_middle();
  const auto says_so = [](const std::string& said) {
    EXPECT_NE(said.find("a copy that was not finished"), std::string::npos) << said;
  };
  says_so(sentence(storage::open_sqlite_store({.directory = directory_of_copy()})));
  says_so(sentence(storage::verify_store(to(), {})));
  says_so(sentence(storage::head_of_store(to())));
  says_so(sentence(
      storage::backup_store({.from = directory_of_copy(), .to = target_.path() / "backup"})));
  says_so(sentence(
      storage::copy_store({.from = to(), .to = storage::sqlite_place{target_.path() / "next"}})));
  says_so(sentence(copy()));
  EXPECT_EQ(expect(copy(true)).head, head_);
  EXPECT_EQ(rows_of(to()), rows_of(from()));
}

TEST_F(store_copy, OfADamagedStoreIsLeftMarked) {
  {
    auto db = std::get<storage::connection>(storage::connection::open(
        source_.path() / storage::database_name, storage::connection::access::read_write));
    ASSERT_FALSE(db.execute("DELETE FROM record WHERE lease = 'steady'", "damaging"));
  }
  const auto said = refused(copy());
  EXPECT_EQ(said.what, store_error::kind::corrupt);
  EXPECT_NE(said.sentence.find("leasehold verify"), std::string::npos) << said.sentence;
  EXPECT_NE(
      sentence(storage::open_sqlite_store({.directory = directory_of_copy()})).find("not finished"),
      std::string::npos);
}

TEST_F(store_copy, IsMadeIntoAnEmptyStoreAndNoOther) {
  { auto empty = expect(storage::open_sqlite_store({.directory = directory_of_copy()})); }
  expect(copy());
  EXPECT_NE(sentence(copy()).find("not empty"), std::string::npos);
  EXPECT_NE(sentence(copy(true)).find("not empty"), std::string::npos);
  EXPECT_NE(sentence(storage::copy_store({.from = from(), .to = from()})).find("another place"),
            std::string::npos);
  EXPECT_EQ(refused(storage::copy_store(
                        {.from = storage::sqlite_place{target_.path() / "none"}, .to = to()}))
                .what,
            store_error::kind::foreign);
}

TEST_F(store_copy, IntoAStoreThatIsServedIsRefused) {
  const auto served = expect(storage::open_sqlite_store({.directory = directory_of_copy()}));
  EXPECT_EQ(refused(copy()).what, store_error::kind::taken);
}

TEST_F(store_copy, OfAnEmptyStoreIsAnEmptyStore) {
  const storage::store_place nothing = storage::sqlite_place{target_.path() / "empty"};
  { auto empty = expect(storage::open_sqlite_store({.directory = target_.path() / "empty"})); }
  EXPECT_EQ(expect(storage::copy_store({.from = nothing, .to = to()})).head.last_row.value, 0);
  EXPECT_EQ(expect(storage::head_of_store(to())), expect(storage::head_of_store(nothing)));
}

}  // namespace
}  // namespace leasehold::tests
