// One claim for each mutation that can be seeded in the rules: the claim holds for the rules as
// they are, and its test must fail for the rules with the mutation (CMakeLists.txt runs both).
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "leasehold/protocol/rules.hpp"

namespace leasehold {
namespace {

using namespace protocol;

struct last_answer final : row_sink {
  void on_row(const row& what, const record&) override {
    if (what.input != nullptr) answer = what.answer;
  }
  verdict answer;
};

constexpr instant granted_at{1'000};

policy usual_policy() {
  policy chosen;
  chosen.ack_timeout = duration{50};
  chosen.lease_duration = duration{100};
  return chosen;
}

event frame_of(event_kind kind, std::int64_t seq = 0) {
  event frame;
  frame.kind = kind;
  frame.lease = lease_id{"L"};
  frame.gen = generation{1};
  frame.from = holder{"a"};
  frame.seq = sequence{seq};
  frame.sent_at = granted_at;
  return frame;
}

event offer_to_a() {
  event what;
  what.kind = event_kind::offer;
  what.lease = lease_id{"L"};
  what.job = job_id{"J"};
  what.from = holder{"a"};
  return what;
}

verdict judge(record& lease, const event& what, std::int64_t at_ms) {
  last_answer rows;
  step(lease, usual_policy(), what, instant{at_ms}, rows);
  return rows.answer;
}

record offered_lease() {
  record lease;
  judge(lease, offer_to_a(), granted_at.ms);
  return lease;
}

/// Active from 1000 to 1100.
record active_lease() {
  record lease = offered_lease();
  judge(lease, frame_of(event_kind::ack), granted_at.ms);
  return lease;
}

TEST(Mutations, M2AFrameAtItsDeadlineIsTooLate) {
  const struct {
    std::int64_t at_ms;
    reason ack, renew;
  } edges[] = {{-1, reason::ack_accepted, reason::renewed},
               {0, reason::lease_expired, reason::lease_expired},
               {1, reason::lease_expired, reason::lease_expired}};
  for (const auto& edge : edges) {
    record offered = offered_lease();
    EXPECT_EQ(judge(offered, frame_of(event_kind::ack), 1'050 + edge.at_ms).reason, edge.ack)
        << edge.at_ms;
    record active = active_lease();
    EXPECT_EQ(judge(active, frame_of(event_kind::renew, 1), 1'100 + edge.at_ms).reason, edge.renew)
        << edge.at_ms;
  }
}

TEST(Mutations, M5AGrantIsAboveEveryForgottenGeneration) {
  for (const std::int64_t known : {0, 1}) {
    for (const std::int64_t floor : {0, 1, 2, 7}) {
      record lease;
      if (known == 1) {
        lease = active_lease();
        judge(lease, frame_of(event_kind::release), granted_at.ms);
      }
      last_answer rows;
      step(lease, usual_policy(), offer_to_a(), granted_at, rows, generation{floor});
      EXPECT_EQ(rows.answer.reason, reason::offered);
      EXPECT_EQ(lease.gen.value, std::max(known, floor) + 1) << known << " " << floor;
    }
  }
}

TEST(Mutations, M6TheHolderIsTheRecordedOneWhateverAFrameNames) {
  record lease = active_lease();
  event foreign = frame_of(event_kind::renew, 1);
  foreign.from = holder{"b"};
  EXPECT_EQ(judge(lease, foreign, 1'010).reason, reason::ownership_conflict);
  EXPECT_EQ(lease.held_by, holder{"a"});
  EXPECT_EQ(lease.renew_sequence.value, 0);
  EXPECT_EQ(lease.expires_at, instant{1'100});
}

TEST(Mutations, M8OlderProgressNeverReplacesNewer) {
  for (const std::int64_t late : {1, 12, 13}) {
    record lease = active_lease();
    event newer = frame_of(event_kind::progress, 14);
    newer.value = "newer";
    EXPECT_EQ(judge(lease, newer, 1'010).reason, reason::progress_recorded);
    event older = frame_of(event_kind::progress, late);
    older.value = "older";
    EXPECT_EQ(judge(lease, older, 1'011).reason, reason::late_progress);
    EXPECT_EQ(lease.progress_sequence.value, 14);
    EXPECT_EQ(lease.progress_value, "newer");
  }
}

TEST(Mutations, M13AFrameReadBeforeTheDeadlineIsJudgedBeforeIt) {
  for (const std::int64_t at_ms : {1'097, 1'098, 1'099}) {
    record lease = active_lease();
    EXPECT_EQ(judge(lease, frame_of(event_kind::renew, 1), at_ms).reason, reason::renewed) << at_ms;
    EXPECT_EQ(lease.expires_at, instant{at_ms + 100});
  }
}

TEST(Mutations, M14SequencesAreComparedInAllTheirBits) {
  constexpr std::int64_t word = std::int64_t{1} << 32;
  const std::vector<std::int64_t> rising{
      1, (word >> 1) - 1, word >> 1, (word >> 1) + 1, word - 1, word, word + 1, max_number};
  record renews = active_lease();
  record progress = active_lease();
  for (const std::int64_t seq : rising) {
    EXPECT_EQ(judge(renews, frame_of(event_kind::renew, seq), 1'010).reason, reason::renewed)
        << seq;
    EXPECT_EQ(judge(progress, frame_of(event_kind::progress, seq), 1'010).reason,
              reason::progress_recorded)
        << seq;
  }
}

TEST(Mutations, M15ADuplicateRenewExtendsNothing) {
  record lease = active_lease();
  EXPECT_EQ(judge(lease, frame_of(event_kind::renew, 1), 1'010).reason, reason::renewed);
  for (const std::int64_t at_ms : {1'010, 1'011, 1'109}) {
    EXPECT_EQ(judge(lease, frame_of(event_kind::renew, 1), at_ms).reason, reason::duplicate_renew);
    EXPECT_EQ(lease.expires_at, instant{1'110}) << at_ms;
  }
}

}  // namespace
}  // namespace leasehold
