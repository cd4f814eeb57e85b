// The statement on permutations of the protocol page, section 3, both halves of it: which frames of
// one correct holder arrive first does not matter.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "leasehold/protocol/rules.hpp"

namespace leasehold {
namespace {

using namespace protocol;

struct silence final : row_sink {
  void on_row(const row&, const record&) override {}
};

/// No cap is in reach: no lifetime, and a grace that ends long after every arrival.
policy roomy_policy() {
  policy chosen;
  chosen.ack_timeout = duration{10'000};
  chosen.lease_duration = duration{5'000};
  chosen.cancel_grace = duration{100'000};
  chosen.max_clock_skew = duration{1'000};
  chosen.defer_limit = 64;
  return chosen;
}

constexpr instant offered_at{1'000};

event from_the_holder(event_kind kind, std::int64_t seq, std::int64_t sent) {
  event frame;
  frame.kind = kind;
  frame.lease = lease_id{"L"};
  frame.gen = generation{1};
  frame.from = holder{"a"};
  frame.seq = sequence{seq};
  frame.sent_at = instant{sent};
  if (kind == event_kind::progress) frame.value = "step " + std::to_string(seq);
  return frame;
}

/// What stands before the frames that are permuted.
enum class prelude : std::uint8_t { offer, acked, cancelled };

record begin(prelude how, const policy& chosen) {
  record lease;
  silence rows;
  event offer;
  offer.kind = event_kind::offer;
  offer.lease = lease_id{"L"};
  offer.job = job_id{"J"};
  offer.from = holder{"a"};
  step(lease, chosen, offer, offered_at, rows);
  if (how == prelude::offer) return lease;
  step(lease, chosen, from_the_holder(event_kind::ack, 0, offered_at.ms), offered_at, rows);
  if (how == prelude::acked) return lease;
  event cancel;
  cancel.kind = event_kind::cancel;
  cancel.lease = lease_id{"L"};
  step(lease, chosen, cancel, offered_at, rows);
  return lease;
}

bool closes(event_kind kind) {
  return kind == event_kind::result || kind == event_kind::release || kind == event_kind::decline;
}

struct ending {
  record lease;
  instant highest_renew_arrived;
};

/// The n-th frame to come arrives n ms after the offer, whichever it is.
ending deliver(const std::vector<event>& frames, prelude how, const policy& chosen) {
  ending out{begin(how, chosen), {}};
  silence rows;
  instant now = offered_at;
  sequence highest;
  for (const event& frame : frames) {
    now = now + duration{1};
    step(out.lease, chosen, frame, now, rows);
    if (frame.kind == event_kind::renew && frame.seq > highest) {
      highest = frame.seq;
      out.highest_renew_arrived = now;
    }
  }
  return out;
}

void print(std::ostream& out, const std::vector<event>& frames) {
  for (const event& f : frames) out << word(f.kind) << ' ' << f.seq.value << ", ";
  out << "\n";
}

/// The first half of the statement, or the second when a frame closes the generation.
void require_same(const ending& wanted, const ending& got, bool closing) {
  RC_ASSERT(got.lease.held_by == wanted.lease.held_by);
  RC_ASSERT(got.lease.gen == wanted.lease.gen);
  RC_ASSERT(got.lease.state == wanted.lease.state);
  if (closing) {
    RC_ASSERT(got.lease.terminal_result == wanted.lease.terminal_result);
    return;
  }
  RC_ASSERT(got.lease.renew_sequence == wanted.lease.renew_sequence);
  RC_ASSERT(got.lease.progress_sequence == wanted.lease.progress_sequence);
  RC_ASSERT(got.lease.progress_value == wanted.lease.progress_value);
  if (got.lease.state == lease_state::active && got.lease.renew_sequence.value > 0) {
    RC_ASSERT(got.lease.expires_at >= got.highest_renew_arrived + got.lease.lease_duration);
  }
}

std::vector<event> open_frames(std::size_t count) {
  std::vector<event> frames;
  for (std::size_t i = 0; i < count; ++i) {
    const auto kind = *rc::gen::element(event_kind::renew, event_kind::progress, event_kind::renew,
                                        event_kind::progress, event_kind::cancel_ack);
    const auto seq = *rc::gen::inRange<std::int64_t>(1, 7);
    const auto sent = offered_at.ms + *rc::gen::inRange<std::int64_t>(-900, 900);
    frames.push_back(from_the_holder(kind, kind == event_kind::cancel_ack ? 0 : seq, sent));
  }
  return frames;
}

event closing_frame() {
  const auto kind = *rc::gen::element(event_kind::result, event_kind::release);
  event frame = from_the_holder(kind, 0, offered_at.ms + 5);
  if (kind == event_kind::result) {
    frame.ending = *rc::gen::element(outcome::success, outcome::failed);
    frame.retryable = *rc::gen::arbitrary<bool>();
  }
  return frame;
}

void shuffle_and_compare(std::vector<event> frames, prelude how, const policy& chosen) {
  const bool closing =
      std::any_of(frames.begin(), frames.end(), [](const event& f) { return closes(f.kind); });
  const ending wanted = deliver(frames, how, chosen);
  print(RC_LOG(), frames);
  for (std::size_t i = frames.size(); i > 1; --i) {
    std::swap(frames[i - 1], frames[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  print(RC_LOG(), frames);
  require_same(wanted, deliver(frames, how, chosen), closing);
}

RC_GTEST_PROP(Permutation, WithoutAClosingFrameTheOrderDecidesNothing, ()) {
  std::vector<event> frames = open_frames(*rc::gen::inRange<std::size_t>(0, 40));
  const auto how = *rc::gen::element(prelude::offer, prelude::acked, prelude::cancelled);
  if (*rc::gen::inRange(0, 4) != 0) {
    frames.push_back(from_the_holder(event_kind::ack, 0, offered_at.ms));
  }
  shuffle_and_compare(std::move(frames), how, roomy_policy());
}

RC_GTEST_PROP(Permutation, WithAClosingFrameTheOrderDecidesNeitherStateNorResult, ()) {
  std::vector<event> frames = open_frames(*rc::gen::inRange<std::size_t>(0, 40));
  const auto how = *rc::gen::element(prelude::offer, prelude::acked, prelude::cancelled);
  const bool decline = how == prelude::offer && *rc::gen::inRange(0, 4) == 0;
  if (decline) {
    frames.push_back(from_the_holder(event_kind::decline, 0, offered_at.ms));
  } else {
    frames.push_back(from_the_holder(event_kind::ack, 0, offered_at.ms));
    event last = closing_frame();
    if (how == prelude::cancelled && *rc::gen::arbitrary<bool>()) last.ending = outcome::cancelled;
    if (last.kind != event_kind::result) last.ending = outcome::none;
    frames.push_back(last);
  }
  shuffle_and_compare(std::move(frames), how, roomy_policy());
}

/// Every order of six frames of which one closes, not only some.
TEST(Permutation, EveryOrderOfSixFramesEndsTheSameWay) {
  const policy chosen = roomy_policy();
  for (const event_kind closing : {event_kind::ack, event_kind::result, event_kind::release}) {
    event last = from_the_holder(closing, 0, 1'005);
    if (closing == event_kind::result) last.ending = outcome::success;
    const std::vector<event> frames{from_the_holder(event_kind::ack, 0, 1'000),
                                    from_the_holder(event_kind::renew, 1, 1'001),
                                    from_the_holder(event_kind::renew, 2, 1'002),
                                    from_the_holder(event_kind::progress, 1, 1'003),
                                    from_the_holder(event_kind::progress, 2, 1'004),
                                    last};
    const record wanted = deliver(frames, prelude::offer, chosen).lease;
    std::vector<std::size_t> order(frames.size());
    std::iota(order.begin(), order.end(), 0U);
    do {
      std::vector<event> shuffled;
      shuffled.reserve(frames.size());
      for (const std::size_t i : order) shuffled.push_back(frames[i]);
      const record got = deliver(shuffled, prelude::offer, chosen).lease;
      ASSERT_EQ(got.state, wanted.state);
      ASSERT_EQ(got.gen, wanted.gen);
      ASSERT_EQ(got.held_by, wanted.held_by);
      ASSERT_EQ(got.terminal_result, wanted.terminal_result);
      if (closes(closing)) continue;
      ASSERT_EQ(got.renew_sequence.value, 2);
      ASSERT_EQ(got.progress_sequence.value, 2);
      ASSERT_EQ(got.progress_value, "step 2");
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

}  // namespace
}  // namespace leasehold
