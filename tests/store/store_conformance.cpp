#include "tests/store/store_conformance.hpp"

#include "tests/store/history.hpp"

namespace leasehold::tests {

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

TEST_P(StoreConformance, TheStateOfTheWholeIsAsOfTheCheckpoint) {
  expect(commit(store(), batch_of({renew_row("a", 1)})));
  actors::checkpoint_slice slice{{}, {}, {1}, true, {}};
  slice.state.floors[0] = {7};
  slice.state.floors[63] = {protocol::restored_floor_step};
  slice.state.grants_from = {1'700'000'000'123};
  expect(checkpoint(store(), slice));
  subject_->reopen();
  EXPECT_EQ(recover(store()).state, slice.state);
}

TEST_P(StoreConformance, PoliciesAreFoundByTheirId) {
  const auto chosen = policy_number(3);
  actors::batch what;
  what.groups.push_back(protocol::encode_policy_row(chosen, {1'700'000'000'000}));
  what.rows = 1;
  what.policies.emplace_back(protocol::id_of(chosen), chosen);
  expect(commit(store(), std::move(what)));
  EXPECT_EQ(expect(store().find_policy(protocol::id_of(chosen))), chosen);
  EXPECT_EQ(expect(store().find_policy({1})), std::nullopt);
}

TEST_P(StoreConformance, TheFrontOfTheLogIsFoundByTime) {
  EXPECT_EQ(row_before(store(), {protocol::max_number}), 0) << "an empty log";
  for (std::int64_t i = 1; i <= 20; ++i) {
    auto what = batch_of({renew_row("a", 2 * i), renew_row("b", 2 * i + 1)});
    what.anchor.coordinator_time = {1'000 * i};
    expect(commit(store(), std::move(what)));
  }
  EXPECT_EQ(row_before(store(), {1'000}), 0);
  EXPECT_EQ(row_before(store(), {1'001}), 2);
  EXPECT_EQ(row_before(store(), {10'000}), 18);
  EXPECT_EQ(row_before(store(), {10'500}), 20);
  EXPECT_EQ(row_before(store(), {20'000}), 38);
  EXPECT_EQ(row_before(store(), {90'000}), 40);
}

TEST_P(StoreConformance, ACutTakesWholeBatchesFromTheFrontAndNothingElse) {
  for (std::int64_t i = 0; i < 200; ++i) {
    expect(commit(store(), batch_of({renew_row("a", 2 * i + 1), renew_row("b", 2 * i + 2)})));
  }
  const auto batches = expect(store().batches_from({1}, 1000));
  EXPECT_EQ(cut(store(), {301}), 0) << "nothing is checkpointed yet";
  expect(checkpoint(store(), {{}, {}, {350}, true, {}}));
  EXPECT_EQ(cut(store(), {301}), 300) << "row 301 keeps the batch that it is in";
  EXPECT_EQ(cut(store(), {301}), 300);
  EXPECT_EQ(cut(store(), {400}), 350) << "what the checkpoint does not have stays";

  subject_->reopen();
  const auto found = recover(store());
  EXPECT_EQ(found.head.anchor_row.value, 350);
  EXPECT_EQ(found.head.head.last_row.value, 400);
  ASSERT_EQ(found.rows.size(), 50U);
  EXPECT_EQ(found.rows.front().row.value, 351);
  const auto left = expect(store().rows_from({1}, 1000));
  ASSERT_EQ(left.size(), 50U);
  EXPECT_EQ(left.front().row.value, 351) << "a reader begins where the log does";
  // The chain goes on from the anchor.
  const auto pieces = expect(store().batches_from({1}, 1000));
  actors::log_head at{{350}, batches[174].chain};
  for (const auto& each : pieces) {
    EXPECT_FALSE(storage::find_broken(at, each));
    at = {each.last_row, each.chain};
  }
  expect(commit(store(), batch_of({renew_row("c", 9)})));
  EXPECT_EQ(expect(store().head()).last_row.value, 401);
}

TEST_P(StoreConformance, ALogThatIsCutToItsEndGoesOnFromThere) {
  expect(commit(store(), batch_of({renew_row("a", 1), renew_row("b", 2)})));
  const auto head = expect(store().head());
  expect(checkpoint(store(), {{}, {}, {2}, true, {}}));
  EXPECT_EQ(cut(store(), {2}), 2);
  subject_->reopen();
  EXPECT_EQ(recover(store()).head.head, head);
  EXPECT_EQ(expect(commit(store(), batch_of({renew_row("c", 3)}))).first_row.value, 3);
}

TEST_P(StoreConformance, TheRequestsThatTookEffectAreReadFromTheRows) {
  history past(store(), 11);
  for (int i = 0; i < 60; ++i) past.submit("job-" + std::to_string(i));
  past.wander(3000);
  std::size_t seen = 0;
  for (const auto& [key, image] : past.images()) {
    const auto read = [&](protocol::instant since) {
      std::promise<actors::store_result<std::vector<protocol::past_request>>> promise;
      store().read_requests(key, image.last_row, image.state.gen, since,
                            [&](auto said) { promise.set_value(std::move(said)); });
      return expect(promise.get_future().get());
    };
    const auto found = read({});
    const auto& kept = image.state.requests;
    ASSERT_GE(found.size(), kept.size());
    auto at = found.end() - static_cast<std::ptrdiff_t>(kept.size());
    for (const auto& each : kept) EXPECT_EQ((at++)->what, each) << key.lease.value;
    EXPECT_TRUE(std::ranges::is_sorted(found, {}, &protocol::past_request::at));
    seen += kept.size();
    EXPECT_TRUE(read(image.last_at + protocol::duration{1}).empty());
  }
  EXPECT_GT(seen, 5U);
}

TEST_P(StoreConformance, TheGrantIsReadFromTheCheckpointAndTheRowsAfterIt) {
  history past(store(), 7);
  past.work("a");
  past.submit("b");
  const auto stored = [&](const std::string& name) {
    std::promise<actors::store_result<actors::stored_grant>> promise;
    store().read_grant(key_of(name), past.images().at(key_of(name)).last_row,
                       [&](actors::store_result<actors::stored_grant> said) {
                         promise.set_value(std::move(said));
                       });
    return expect(promise.get_future().get());
  };
  const auto ours = [&](const std::string& name) {
    const auto state = past.images().at(key_of(name)).state;
    return actors::stored_grant{state.gen, state.held_by};
  };
  EXPECT_EQ(stored("a").gen.value, 1) << "from the rows alone";
  EXPECT_EQ(stored("a"), ours("a"));
  EXPECT_EQ(stored("b"), actors::stored_grant{}) << "never granted";

  actors::checkpoint_slice slice;
  for (const auto& [key, image] : past.images()) slice.changed.push_back({key, image});
  slice.upto = past.last_row();
  slice.last = true;
  expect(checkpoint(store(), std::move(slice)));
  EXPECT_EQ(stored("a"), ours("a")) << "from the checkpoint alone";

  past.restart(100'000'000);
  protocol::event offer;
  offer.kind = protocol::event_kind::offer;
  offer.from = protocol::holder("other/000102030405060708090a0b0c0d0e0f");
  offer.job = protocol::job_id("a");
  past.happen("a", offer);
  EXPECT_EQ(stored("a").gen.value, 2) << "from both";
  EXPECT_EQ(stored("a"), ours("a"));
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
    found.reserve(rows.size());
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
  ASSERT_TRUE(subject_->fail_next_commit()) << "a store under test must be able to fail";
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
