#include "tests/support/memory_store.hpp"

#include "tests/store/store_conformance.hpp"

namespace leasehold::tests {
namespace {

class memory_subject final : public store_subject {
 public:
  actors::store& opened() override { return store_; }
  void reopen() override { store_.crash(); }
  bool fail_next_commit() override {
    store_.fail_commit(1);
    return true;
  }

 private:
  memory_store store_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, ::testing::Values(make_subject([] {
                           return std::make_unique<memory_subject>();
                         })));

TEST(MemoryStore, HeldCommitsAreDurableOnlyWhenTold) {
  memory_store store;
  store.hold();
  int answered = 0;
  store.commit(batch_of({renew_row("a", 1)}), [&](auto&&) { ++answered; });
  store.commit(batch_of({renew_row("a", 2, 1)}), [&](auto&&) { ++answered; });
  EXPECT_EQ(store.waiting(), 2U);
  EXPECT_TRUE(store.all_rows().empty());
  EXPECT_TRUE(store.complete_next());
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(store.all_rows().size(), 1U);
  store.resume();
  EXPECT_EQ(answered, 2);
  EXPECT_FALSE(store.complete_next());
}

TEST(MemoryStore, ACrashLosesWhatWaitsAndTellsNobody) {
  memory_store store;
  store.hold();
  bool answered = false;
  store.commit(batch_of({renew_row("a", 1)}), [&](auto&&) { answered = true; });
  store.commit(batch_of({renew_row("a", 2, 1)}), [&](auto&&) { answered = true; });
  EXPECT_TRUE(store.write_next_untold());
  store.crash();
  EXPECT_FALSE(answered);
  EXPECT_EQ(recover(store).rows.size(), 1U);
}

TEST(MemoryStore, TheNthCommitFailsAndNoOther) {
  memory_store store;
  store.fail_commit(2, actors::store_error::kind::io);
  expect(commit(store, batch_of({renew_row("a", 1)})));
  const auto second = commit(store, batch_of({renew_row("a", 2)}));
  ASSERT_TRUE(std::holds_alternative<actors::store_error>(second));
  EXPECT_EQ(std::get<actors::store_error>(second).what, actors::store_error::kind::io);
  expect(commit(store, batch_of({renew_row("a", 3)})));
  EXPECT_EQ(store.all_rows().size(), 2U);
}

}  // namespace
}  // namespace leasehold::tests
