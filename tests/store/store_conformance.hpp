// What every store must do, run for each of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leasehold/actors/store.hpp"
#include "leasehold/protocol/record_image.hpp"
#include "src/store/batch_log.hpp"

namespace leasehold::tests {

/// A store and the way to end and begin it as a process would.
class store_subject {
 public:
  virtual ~store_subject() = default;
  virtual actors::store& opened() = 0;
  /// Ends the store without a checkpoint and opens it again.
  virtual void reopen() = 0;
  /// Makes the next commit fail; false when this store cannot be told to.
  virtual bool fail_next_commit() = 0;
};

using make_subject = std::function<std::unique_ptr<store_subject>()>;

inline protocol::lease_key key_of(std::string lease) {
  return {protocol::tenant_id("acme"), protocol::lease_id(std::move(lease))};
}

/// A renew of this lease, as a row of a group of its own.
inline protocol::stored_row renew_row(const std::string& lease, std::int64_t sequence,
                                      std::int64_t prev_row = 0) {
  protocol::stored_row r;
  r.key = key_of(lease);
  r.prev_row.value = prev_row;
  r.at.ms = 1'700'000'000'000 + sequence;
  r.ingress_at = r.at;
  r.input.kind = protocol::event_kind::renew;
  r.input.lease = r.key.lease;
  r.input.gen.value = 1;
  r.input.from = protocol::holder("w/000102030405060708090a0b0c0d0e0f");
  r.input.seq.value = sequence;
  r.input.sent_at.ms = r.at.ms - 3;
  r.has_input = true;
  r.state_before = protocol::lease_state::active;
  r.answer.decision = protocol::decision::accepted;
  r.answer.reason = protocol::reason::renewed;
  return r;
}

inline actors::batch batch_of(const std::vector<protocol::stored_row>& rows) {
  actors::batch what;
  for (const auto& r : rows) what.groups.push_back(protocol::encode_row(r));
  what.rows = static_cast<std::int64_t>(rows.size());
  what.anchor = {"boot-1", 5000, 1'700'000'000'000, {1'700'000'000'000}};
  return what;
}

inline actors::store_result<actors::committed> commit(actors::store& to, actors::batch what) {
  std::promise<actors::store_result<actors::committed>> promise;
  auto answer = promise.get_future();
  to.commit(std::move(what), [&promise](actors::store_result<actors::committed> result) {
    promise.set_value(std::move(result));
  });
  return answer.get();
}

inline actors::store_result<bool> checkpoint(actors::store& to, actors::checkpoint_slice slice) {
  std::promise<actors::store_result<bool>> promise;
  auto answer = promise.get_future();
  to.checkpoint(std::move(slice), [&promise](actors::store_result<bool> result) {
    promise.set_value(std::move(result));
  });
  return answer.get();
}

template <class T>
T expect(actors::store_result<T> result) {
  if (auto* fault = std::get_if<actors::store_error>(&result)) {
    ADD_FAILURE() << fault->sentence;
    return T{};
  }
  return std::move(std::get<T>(result));
}

/// All that a start was given.
struct recovered_store {
  actors::recovered_head head;
  std::map<protocol::lease_key, protocol::fold::lease_image> records;
  std::map<protocol::policy_id, protocol::policy> policies;
  std::vector<protocol::stored_row> rows;
};

inline recovered_store recover(actors::store& from) {
  recovered_store out;
  out.head = expect(from.recover(
      [&out](actors::checkpoint_entry&& e) { out.records[e.key] = std::move(e.image); },
      [&out](protocol::policy_id id, const protocol::policy& p) { out.policies[id] = p; },
      [&out](actors::stored_batch&& b) {
        auto decoded = protocol::decode_rows(b.rows, b.first_row);
        EXPECT_FALSE(decoded.broken);
        for (auto& r : decoded.rows) out.rows.push_back(std::move(r));
      }));
  return out;
}

inline protocol::fold::lease_image image_of(const std::string& lease, std::int64_t last_row) {
  protocol::fold::lease_image image;
  image.state.lease = protocol::lease_id(lease);
  image.state.job = protocol::job_id(lease);
  image.state.kind = protocol::lease_kind::job;
  image.state.state = protocol::lease_state::vacant;
  image.last_row.value = last_row;
  image.body = "body of " + lease;
  return image;
}

class StoreConformance : public ::testing::TestWithParam<make_subject> {
 protected:
  void SetUp() override { subject_ = GetParam()(); }
  actors::store& store() { return subject_->opened(); }

  std::unique_ptr<store_subject> subject_;
};

TEST_P(StoreConformance, ANewStoreHasAnIdAnEmptyLogAndItsShards) {
  const auto found = recover(store());
  EXPECT_EQ(found.head.store_id.size(), 32U);
  EXPECT_EQ(found.head.shards, 64);
  EXPECT_EQ(found.head.head.last_row.value, 0);
  EXPECT_EQ(found.head.head.chain, storage::genesis_chain(found.head.store_id));
  EXPECT_TRUE(found.rows.empty());
  EXPECT_FALSE(found.head.anchor);
}

TEST_P(StoreConformance, RowsAreNumberedFromOneWithoutGapsInTheOrderOfTheCommits) {
  const auto first = expect(commit(store(), batch_of({renew_row("a", 1), renew_row("b", 2)})));
  const auto second = expect(commit(store(), batch_of({renew_row("c", 3)})));
  EXPECT_EQ(first.first_row.value, 1);
  EXPECT_EQ(first.head.last_row.value, 2);
  EXPECT_EQ(second.first_row.value, 3);
  const auto rows = expect(store().rows_from({1}, 100));
  ASSERT_EQ(rows.size(), 3U);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[static_cast<std::size_t>(i)].row.value, i + 1);
    EXPECT_EQ(rows[static_cast<std::size_t>(i)].input.seq.value, i + 1);
  }
}

TEST_P(StoreConformance, ManyCommitsAtOnceStayInOrderAndEachHearsItsOwnRows) {
  constexpr std::int64_t count = 500;
  std::vector<std::int64_t> first_rows;
  std::promise<void> all;
  for (std::int64_t i = 0; i < count; ++i) {
    store().commit(batch_of({renew_row("a", 2 * i + 1), renew_row("b", 2 * i + 2)}),
                   [&](actors::store_result<actors::committed> result) {
                     first_rows.push_back(expect(std::move(result)).first_row.value);
                     if (first_rows.size() == static_cast<std::size_t>(count)) all.set_value();
                   });
  }
  all.get_future().wait();
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(first_rows[static_cast<std::size_t>(i)], 2 * i + 1);
  }
  const auto rows = expect(store().rows_from({1}, 2 * count + 10));
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(2 * count));
  for (const auto& r : rows) EXPECT_EQ(r.input.seq.value, r.row.value);
}

TEST_P(StoreConformance, TheChainLinksEveryBatchToTheOneBefore) {
  for (std::int64_t i = 1; i <= 5; ++i) expect(commit(store(), batch_of({renew_row("a", i)})));
  const auto batches = expect(store().batches_from({1}, 100));
  actors::log_head at{{0}, storage::genesis_chain(recover(store()).head.store_id)};
  for (const auto& each : batches) {
    EXPECT_FALSE(storage::find_broken(at, each));
    at = {each.last_row, each.chain};
  }
  EXPECT_EQ(at, expect(store().head()));
  EXPECT_EQ(at.last_row.value, 5);
}

TEST_P(StoreConformance, RecoveryYieldsWhatWasCommittedAndTheLastAnchor) {
  const std::vector<protocol::stored_row> rows = {renew_row("a", 1), renew_row("b", 2),
                                                  renew_row("a", 3, 1)};
  const auto done = expect(commit(store(), batch_of(rows)));
  subject_->reopen();
  const auto found = recover(store());
  ASSERT_EQ(found.rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto wanted = rows[i];
    wanted.row.value = static_cast<std::int64_t>(i) + 1;
    EXPECT_EQ(found.rows[i], wanted);
  }
  EXPECT_EQ(found.head.head, done.head);
  ASSERT_TRUE(found.head.anchor);
  EXPECT_EQ(*found.head.anchor, batch_of({}).anchor);
}

TEST_P(StoreConformance, RowsGoOnAfterAReopenWhereTheyEnded) {
  expect(commit(store(), batch_of({renew_row("a", 1), renew_row("a", 2, 1)})));
  subject_->reopen();
  recover(store());
  const auto next = expect(commit(store(), batch_of({renew_row("a", 3, 2)})));
  EXPECT_EQ(next.first_row.value, 3);
}

TEST_P(StoreConformance, RecoveryIsTheCheckpointAndTheTailAfterIt) {
  expect(commit(store(), batch_of({renew_row("a", 1), renew_row("b", 2)})));
  actors::checkpoint_slice slice{
      {{key_of("a"), image_of("a", 1)}, {key_of("b"), image_of("b", 2)}}, {}, {2}, true};
  EXPECT_TRUE(expect(checkpoint(store(), slice)));
  expect(commit(store(), batch_of({renew_row("a", 3, 1)})));
  subject_->reopen();
  const auto found = recover(store());
  EXPECT_EQ(found.head.checkpoint.value, 2);
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(protocol::encode_image(found.records.at(key_of("a"))),
            protocol::encode_image(image_of("a", 1)));
  ASSERT_FALSE(found.rows.empty());
  EXPECT_EQ(found.rows.back().row.value, 3);
}

TEST_P(StoreConformance, ACheckpointThatWasNotFinishedLeavesTheOldTail) {
  expect(commit(store(), batch_of({renew_row("a", 1), renew_row("b", 2)})));
  EXPECT_TRUE(expect(checkpoint(store(), {{{key_of("a"), image_of("a", 1)}}, {}, {2}, false})));
  subject_->reopen();
  const auto found = recover(store());
  EXPECT_EQ(found.head.checkpoint.value, 0);
  EXPECT_EQ(found.rows.size(), 2U);
}

TEST_P(StoreConformance, ForgottenRecordsGoWithTheLastSliceAndNotBefore) {
  expect(commit(store(), batch_of({renew_row("a", 1), renew_row("b", 2)})));
  expect(checkpoint(
      store(),
      {{{key_of("a"), image_of("a", 1)}, {key_of("b"), image_of("b", 2)}}, {}, {2}, true}));
  expect(checkpoint(store(), {{}, {key_of("a")}, {2}, false}));
  subject_->reopen();
  EXPECT_EQ(recover(store()).records.size(), 2U);
  expect(checkpoint(store(), {{}, {key_of("a")}, {2}, true}));
  subject_->reopen();
  const auto found = recover(store());
  ASSERT_EQ(found.records.size(), 1U);
  EXPECT_EQ(found.records.begin()->first, key_of("b"));
}

TEST_P(StoreConformance, ALeaseThatIsKnownAgainIsNotForgotten) {
  expect(commit(store(), batch_of({renew_row("a", 1)})));
  expect(checkpoint(store(), {{}, {key_of("a")}, {1}, false}));
  expect(checkpoint(store(), {{{key_of("a"), image_of("a", 1)}}, {}, {1}, true}));
  subject_->reopen();
  EXPECT_EQ(recover(store()).records.size(), 1U);
}

TEST_P(StoreConformance, PoliciesOfCommittedBatchesAreFoundAtAStart) {
  protocol::policy chosen;
  chosen.lease_duration.ms = 1234;
  auto what = batch_of({});
  what.groups.push_back(protocol::encode_policy_row(chosen, {1'700'000'000'000}));
  what.rows = 1;
  what.policies.emplace_back(protocol::id_of(chosen), chosen);
  expect(commit(store(), what));
  subject_->reopen();
  const auto found = recover(store());
  ASSERT_EQ(found.policies.size(), 1U);
  EXPECT_EQ(found.policies.begin()->first, protocol::id_of(chosen));
  EXPECT_EQ(found.policies.begin()->second, chosen);
}

TEST_P(StoreConformance, TheRowsOfALeaseAreReadBackAlongPrevRow) {
  expect(commit(store(), batch_of({renew_row("a", 1), renew_row("b", 2)})));
  expect(commit(store(), batch_of({renew_row("a", 3, 1), renew_row("b", 4, 2)})));
  expect(commit(store(), batch_of({renew_row("a", 5, 3)})));
  const auto sequences = [](const std::vector<protocol::stored_row>& rows) {
    std::vector<std::int64_t> found;
    for (const auto& r : rows) found.push_back(r.input.seq.value);
    return found;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(sequences(expect(store().rows_of_lease(key_of("a"), {5}, 10))), ElementsAre(5, 3, 1));
  EXPECT_THAT(sequences(expect(store().rows_of_lease(key_of("a"), {5}, 2))), ElementsAre(5, 3));
  EXPECT_THAT(sequences(expect(store().rows_of_lease(key_of("b"), {4}, 10))), ElementsAre(4, 2));
  EXPECT_TRUE(expect(store().rows_of_lease(key_of("b"), {5}, 10)).empty())
      << "a row of another lease is nobody's business";
}

TEST_P(StoreConformance, ReadersSeeNoRowBeyondTheEnd) {
  expect(commit(store(), batch_of({renew_row("a", 1)})));
  EXPECT_TRUE(expect(store().rows_from({2}, 10)).empty());
  EXPECT_TRUE(expect(store().batches_from({2}, 10)).empty());
  EXPECT_TRUE(expect(store().rows_of_lease(key_of("a"), {2}, 10)).empty());
  EXPECT_EQ(expect(store().rows_from({1}, 1)).size(), 1U);
}

TEST_P(StoreConformance, AFailedCommitLeavesNothingAndTheNextOneTakesItsRows) {
  expect(commit(store(), batch_of({renew_row("a", 1)})));
  const auto before = expect(store().head());
  if (!subject_->fail_next_commit()) GTEST_SKIP() << "this store cannot be told to fail";
  const auto failed = commit(store(), batch_of({renew_row("a", 2, 1)}));
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(failed));
  EXPECT_EQ(expect(store().head()), before);
  EXPECT_EQ(expect(store().rows_from({1}, 10)).size(), 1U);
  const auto next = expect(commit(store(), batch_of({renew_row("a", 3, 1)})));
  EXPECT_EQ(next.first_row.value, 2);
}

TEST_P(StoreConformance, ABatchThatLiesAboutItsRowsIsRefused) {
  auto what = batch_of({renew_row("a", 1)});
  what.rows = 2;
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(commit(store(), what)));
  what = batch_of({renew_row("a", 1)});
  what.groups.front().pop_back();
  EXPECT_TRUE(std::holds_alternative<actors::store_error>(commit(store(), what)));
  EXPECT_EQ(expect(store().head()).last_row.value, 0);
}

TEST_P(StoreConformance, RowsLargerThanAPieceAreReadBackWhole) {
  std::vector<protocol::stored_row> rows;
  for (std::int64_t i = 1; i <= 40; ++i) {
    auto r = renew_row("big", i, i - 1);
    r.attachment.assign(64 * 1024 - 7, static_cast<char>('a' + i % 26));
    rows.push_back(std::move(r));
  }
  expect(commit(store(), batch_of(rows)));
  subject_->reopen();
  EXPECT_EQ(recover(store()).rows.size(), rows.size());
  const auto back = expect(store().rows_of_lease(key_of("big"), {40}, 100));
  ASSERT_EQ(back.size(), rows.size());
  EXPECT_EQ(back.front().attachment, rows.back().attachment);
}

}  // namespace leasehold::tests
