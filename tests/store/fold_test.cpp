// The fold over whole histories: what a coordinator wrote folds to the records that it had.
#include "tests/store/history.hpp"
#include "tests/store/store_conformance.hpp"
#include "tests/support/memory_store.hpp"

namespace leasehold::tests {
namespace {

using protocol::fold;
using protocol::stored_row;

/// A random history of a few leases.
struct Fold : ::testing::TestWithParam<std::uint32_t> {
  Fold() : past(store, GetParam()) {
    for (const char* name : {"a", "b", "c", "d"}) past.submit(name);
    past.wander(300);
    past.restart(500);
    past.wander(300);
    rows = store.all_rows();
  }

  memory_store store;
  history past;
  std::vector<stored_row> rows;
};

TEST_P(Fold, RowsFoldToTheRecordsThatTheCoordinatorHad) {
  fold folded;
  for (const stored_row& r : rows) {
    const auto wrong = folded.feed(r);
    ASSERT_FALSE(wrong) << wrong->row.value << " " << wrong->column << ": " << wrong->sentence;
  }
  EXPECT_TRUE(folded.missing_rows().empty());
  const auto wanted = past.images();
  ASSERT_EQ(folded.leases().size(), wanted.size());
  for (const auto& [key, image] : wanted) {
    const auto* found = folded.find(key);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(protocol::first_difference(found->state, image.state), "") << key.lease.value;
    EXPECT_EQ(found->policy, image.policy);
    EXPECT_EQ(found->last_row, image.last_row);
    EXPECT_EQ(found->body, image.body);
  }
}

TEST_P(Fold, AFoldFromACheckpointEndsLikeOneFromTheBeginning) {
  fold whole;
  fold early;
  std::size_t half = rows.size() / 2;
  while (half < rows.size() && (rows[half].derived || !rows[half].has_input)) ++half;
  for (std::size_t i = 0; i < half; ++i) early.feed(rows[i]);
  fold resumed;
  for (const auto& [key, image] : early.leases()) {
    const auto bytes = protocol::encode_image(image);
    auto read = protocol::decode_image(bytes);
    ASSERT_TRUE(read);
    resumed.load(key, std::move(*read));
  }
  for (const stored_row& r : rows) {
    whole.feed(r);
    const auto wrong = resumed.feed(r);
    ASSERT_FALSE(wrong) << wrong->row.value << " " << wrong->sentence;
  }
  for (const auto& [key, image] : whole.leases()) {
    EXPECT_EQ(protocol::encode_image(image), protocol::encode_image(*resumed.find(key)));
  }
}

/// What the fold says about rows of which one was changed: the first complaint.
std::optional<fold::mismatch> first_complaint(const std::vector<stored_row>& rows) {
  fold folded;
  for (const stored_row& r : rows) {
    if (auto wrong = folded.feed(r)) return wrong;
  }
  const auto missing = folded.missing_rows();
  return missing.empty() ? std::nullopt : std::optional(missing.front());
}

TEST_P(Fold, EveryChangedDecisionIsFoundAtItsRowAndColumn) {
  for (std::size_t i = 0; i < rows.size(); i += 7) {
    if (rows[i].key.lease.empty()) continue;
    const auto changed = [&](std::string_view column, auto change) {
      auto copy = rows;
      change(copy[i]);
      const auto wrong = first_complaint(copy);
      ASSERT_TRUE(wrong) << "row " << i + 1 << " " << column;
      EXPECT_EQ(wrong->row.value, rows[i].row.value) << column;
      EXPECT_EQ(wrong->column, column) << "row " << i + 1;
    };
    using protocol::decision;
    changed("decision", [](stored_row& r) {
      r.answer.decision =
          r.answer.decision == decision::ignored ? decision::rejected : decision::ignored;
    });
    changed("reason", [](stored_row& r) { r.answer.reason = protocol::reason::internal_error; });
    changed("rule", [](stored_row& r) { r.answer.rule = protocol::rule_id::none; });
    changed("stale_generation", [](stored_row& r) {
      r.answer.flags.stale_generation = !r.answer.flags.stale_generation;
    });
    changed("prev_row", [](stored_row& r) { r.prev_row.value += 1; });
    changed("rule_version", [](stored_row& r) { r.rule_version += 1; });
    changed("state_before", [](stored_row& r) {
      r.state_before = r.state_before == protocol::lease_state::failed
                           ? protocol::lease_state::vacant
                           : protocol::lease_state::failed;
    });
  }
}

TEST_P(Fold, ADeletedRowIsMissedByTheNextRowOfItsLease) {
  for (std::size_t i = 0; i < rows.size(); i += 5) {
    if (rows[i].key.lease.empty()) continue;
    std::optional<protocol::row_number> next;
    for (std::size_t j = i + 1; j < rows.size() && !next; ++j) {
      if (rows[j].key == rows[i].key) next = rows[j].row;
    }
    if (!next) continue;
    auto copy = rows;
    copy.erase(copy.begin() + static_cast<std::ptrdiff_t>(i));
    const auto wrong = first_complaint(copy);
    ASSERT_TRUE(wrong) << "row " << i + 1;
    EXPECT_EQ(wrong->row, *next);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Fold, ::testing::Range(1U, 9U));

stored_row submit_row() {
  stored_row r;
  r.row.value = 1;
  r.key = key_of("a");
  r.at.ms = 1000;
  r.has_input = true;
  r.input.kind = protocol::event_kind::submit;
  r.input.lease = r.key.lease;
  r.input.job = protocol::job_id("a");
  r.answer = {protocol::decision::accepted, protocol::reason::submitted, {}, {}};
  return r;
}

TEST(FoldOfOneRow, APolicyThatNoRowMadeKnownIsNamed) {
  auto r = submit_row();
  r.policy.value = 99;
  fold folded;
  EXPECT_EQ(folded.feed(r)->column, "policy");
}

TEST(FoldOfOneRow, APolicyRowWhoseTextIsAnotherPolicyIsNamed) {
  protocol::policy chosen;
  auto rows = protocol::decode_rows(protocol::encode_policy_row(chosen, {1000}), {1}).rows;
  chosen.lease_duration.ms += 1;
  rows.front().attachment = protocol::canonical_text(chosen);
  fold folded;
  EXPECT_EQ(folded.feed(rows.front())->column, "policy");
}

TEST(FoldOfOneRow, AnExpiryThatIsNotDueIsNamed) {
  stored_row r = submit_row();
  fold folded;
  folded.feed(r);
  stored_row expired;
  expired.row.value = 2;
  expired.prev_row.value = 1;
  expired.key = r.key;
  expired.at.ms = 5000;
  expired.input.kind = protocol::event_kind::expire;
  expired.answer = {protocol::decision::applied, protocol::reason::lease_expired, {}, {}};
  EXPECT_EQ(folded.feed(expired)->column, "event");
}

TEST(FoldOfOneRow, RowsAboutTheStorePass) {
  fold folded;
  auto rows = protocol::decode_rows(protocol::encode_clock_anchored_row("boot", {1000}), {1}).rows;
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().attachment, "boot");
  EXPECT_FALSE(folded.feed(rows.front()));
  EXPECT_TRUE(folded.leases().empty());
}

}  // namespace
}  // namespace leasehold::tests
