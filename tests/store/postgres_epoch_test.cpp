#include "src/store/postgres_epoch.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "src/store/open_store.hpp"
#include "src/store/postgres_schema.hpp"
#include "tests/store/postgres_scene.hpp"

namespace leasehold::tests {
namespace {

using kind = actors::store_error::kind;

struct PostgresEpoch : ::testing::Test {
  PostgresEpoch() { empty_database(); }
};

TEST_F(PostgresEpoch, OfANewStoreIsZeroAndReleased) {
  EXPECT_EQ(expect(epoch_row().read()), storage::epoch_state{});
}

TEST_F(PostgresEpoch, IsTakenByTheOneWhoSawItAsItIs) {
  auto row = epoch_row();
  const auto seen = expect(row.read());
  const auto first = expect(row.take(seen, "one", "host-1:7400"));
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, (storage::epoch_state{1, "one", "host-1:7400", 0, false}));
  EXPECT_EQ(expect(row.read()), *first);
  EXPECT_FALSE(expect(row.take(seen, "two", "host-2:7400"))) << "it is not as it was seen";
  EXPECT_TRUE(expect(row.renew(1)));
  EXPECT_FALSE(expect(row.take(*first, "two", "host-2:7400"))) << "it was renewed meanwhile";
  const auto second = expect(row.take(expect(row.read()), "two", "host-2:7400"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->epoch, 2);
  EXPECT_FALSE(expect(row.renew(1))) << "the former owner is deposed";
  EXPECT_FALSE(expect(row.release(1)));
  EXPECT_FALSE(expect(row.read()).released);
  EXPECT_TRUE(expect(row.release(2)));
  EXPECT_TRUE(expect(row.read()).released);
}

TEST_F(PostgresEpoch, OneOfManyWhoTakeItAtOnceGetsIt) {
  const auto seen = expect(epoch_row().read());
  std::atomic<int> taken{0};
  std::vector<std::thread> racers;
  for (int i = 0; i < 6; ++i) {
    racers.emplace_back([&, name = "racer-" + std::to_string(i)] {
      auto row = epoch_row(name);
      if (expect(row.take(seen, name, ""))) ++taken;
    });
  }
  for (auto& each : racers) each.join();
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(expect(epoch_row().read()).epoch, 1);
}

TEST_F(PostgresEpoch, ACommitOfTheFormerOwnerThatStandsStillIsEnded) {
  auto row = epoch_row();
  const auto first = expect(row.take(expect(row.read()), "stopped", ""));
  ASSERT_TRUE(first);
  auto stopped = sandbox_session("stopped");
  EXPECT_FALSE(stopped.execute("BEGIN"));
  {
    storage::postgres_pipeline middle(stopped);
    storage::check_epoch(middle, 1);
    EXPECT_FALSE(middle.finish());
  }
  const auto second = expect(row.take(*first, "next", ""));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->epoch, 2);
  const auto fault = stopped.execute("COMMIT");
  ASSERT_TRUE(fault);
  EXPECT_TRUE(fault->is_lost);
}

TEST_F(PostgresEpoch, ALostSessionIsReplaced) {
  auto row = epoch_row("lost");
  expect(row.read());
  auto other = sandbox_session();
  other.run(
      "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
      "WHERE application_name = 'leasehold/lost'");
  EXPECT_EQ(expect(row.read()).epoch, 0);
}

struct OpenStore : PostgresEpoch {
  OpenStore() {
    how.place = storage::postgres_place{"postgresql://"};
    how.term = std::chrono::milliseconds{500};
    how.address = "host-1:7400";
  }
  storage::store_options how;
};

TEST_F(OpenStore, ASecondCoordinatorIsToldWhoHasIt) {
  const auto first = expect(storage::open_store(how));
  const auto second = storage::open_store(how);
  const auto& fault = std::get<actors::store_error>(second);
  EXPECT_EQ(fault.what, kind::taken);
  EXPECT_THAT(fault.sentence, ::testing::HasSubstr("host-1:7400"));
  expect(commit(*first, batch_of({renew_row("a", 1)})));
}

TEST_F(OpenStore, OneThatEndedInOrderIsFollowedAtOnce) {
  expect(storage::open_store(how));
  how.term = std::chrono::hours{1};
  EXPECT_TRUE(expect(storage::open_store(how)));
}

TEST_F(OpenStore, OneThatNobodyRenewsIsTakenAfterATerm) {
  auto row = epoch_row();
  expect(row.take(expect(row.read()), "dead", "host-9:7400"));
  const auto store = expect(storage::open_store(how));
  expect(commit(*store, batch_of({renew_row("a", 1)})));
  EXPECT_EQ(expect(row.read()).epoch, 2);
}

}  // namespace
}  // namespace leasehold::tests
