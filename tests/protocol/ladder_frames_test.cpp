// The product of what a frame can meet, walked whole: the table of the library and the ladder of
// ifs give the same decision, reason and flags everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/protocol/ladder_cases.hpp"

namespace leasehold::ladder {
namespace {

using namespace protocol;

constexpr lease_state every_state[] = {
    lease_state::none,       lease_state::vacant,     lease_state::offered,   lease_state::active,
    lease_state::declined,   lease_state::expired,    lease_state::released,  lease_state::revoked,
    lease_state::retry_wait, lease_state::unresolved, lease_state::completed, lease_state::failed,
    lease_state::cancelled};

bool can_be_a_locks(lease_state state) {
  return state == lease_state::vacant || state == lease_state::active ||
         state == lease_state::expired || state == lease_state::released ||
         state == lease_state::revoked;
}

bool can_have_a_cancel(lease_state state) {
  return state == lease_state::active || state == lease_state::unresolved || is_settled(state);
}

/// The bodies a kind can have, right and wrong ones.
std::vector<event> bodies(event_kind kind) {
  std::vector<event> out;
  event frame = frame_of(kind);
  if (kind == event_kind::renew || kind == event_kind::progress) {
    for (const std::int64_t seq : {-1, 0, 1, 4, 5, 6}) {
      for (const char* value : {"half", "most"}) {
        frame.seq = sequence{seq};
        frame.value = kind == event_kind::progress ? value : "";
        out.push_back(frame);
        if (kind == event_kind::renew) break;
      }
    }
  } else if (kind == event_kind::result) {
    for (const outcome how :
         {outcome::none, outcome::success, outcome::failed, outcome::cancelled}) {
      for (const char* detail : {"", "d"}) {
        for (const bool retryable : {false, true}) {
          frame.ending = how;
          frame.detail = detail;
          frame.retryable = retryable;
          out.push_back(frame);
        }
      }
    }
  } else if (kind == event_kind::release) {
    for (const char* id : {"", "new", "asked", "asked-by-b", "was-a-revoke"}) {
      frame.request = request_id{id};
      out.push_back(frame);
    }
  } else {
    out.push_back(frame);
  }
  return out;
}

/// Every body with every generation, holder and timestamp.
std::vector<event> every_frame() {
  constexpr std::int64_t sent[] = {std::numeric_limits<std::int64_t>::min(),
                                   0,
                                   1,
                                   issued_ms - skew_ms - 1,
                                   issued_ms - skew_ms,
                                   issued_ms - skew_ms + 1,
                                   last_sent_ms - 1,
                                   last_sent_ms,
                                   last_sent_ms + 1,
                                   judged_at.ms + skew_ms - 1,
                                   judged_at.ms + skew_ms,
                                   judged_at.ms + skew_ms + 1,
                                   std::numeric_limits<std::int64_t>::max()};
  std::vector<event> out;
  for (const event_kind kind :
       {event_kind::ack, event_kind::decline, event_kind::renew, event_kind::progress,
        event_kind::cancel_ack, event_kind::result, event_kind::release}) {
    for (event frame : bodies(kind)) {
      for (const std::int64_t gen : {0, 1, 2, 3, 4}) {
        for (const char* from : {"", "a", "b"}) {
          for (const std::int64_t at : sent) {
            frame.gen = generation{gen};
            frame.from = holder{from};
            frame.sent_at = instant{at};
            out.push_back(frame);
          }
        }
      }
    }
  }
  return out;
}

void remember_requests(record& lease) {
  lease.requests = {asked("asked", event_kind::release, 3, "a"),
                    asked("asked-by-b", event_kind::release, 1, "b"),
                    asked("was-a-revoke", event_kind::revoke, 0, "")};
}

/// Every lease of one state and kind: frozen or not, cancelled or not, and how it ended.
std::vector<record> every_lease(lease_state state, lease_kind kind) {
  std::vector<record> out;
  for (const bool frozen : {false, true}) {
    for (const bool cancel : {false, true}) {
      for (int unproven = 0; unproven < unproven_variants; ++unproven) {
        for (int ending = 0; ending < ending_variants; ++ending) {
          record lease = lease_in(state, kind);
          if (frozen && is_settled(state)) continue;
          if (cancel && (!can_have_a_cancel(state) || kind == lease_kind::lock)) continue;
          if (is_live(state) && (ending != 0 || unproven == 2 || unproven == 4)) continue;
          lease.frozen = frozen;
          if (cancel) lease.cancel_requested_at = instant{9'700};
          if (cancel) lease.cancel_deadline = instant{10'500};
          set_unproven(lease, unproven);
          set_ending(lease, ending);
          remember_requests(lease);
          out.push_back(lease);
        }
      }
    }
  }
  return out;
}

TEST(LadderOfFrames, EveryFrameMeetsTheSameAnswerAsOnThePage) {
  const std::vector<event> frames = every_frame();
  const policy chosen = usual_policy();
  comparison walk;
  for (const lease_state state : every_state) {
    for (const lease_kind kind : {lease_kind::job, lease_kind::lock}) {
      if (kind == lease_kind::lock && !can_be_a_locks(state)) continue;
      if (state == lease_state::none) {
        for (const event& frame : frames) walk.frame(record{}, chosen, frame);
        continue;
      }
      for (const record& lease : every_lease(state, kind)) {
        for (const event& frame : frames) walk.frame(lease, chosen, frame);
      }
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_GT(walk.judged(), 1'000'000);
  RecordProperty("judged", std::to_string(walk.judged()));
}

TEST(LadderOfFrames, TheBufferOfAnOfferFillsAtItsLimit) {
  comparison walk;
  for (const std::int64_t limit : {0, 1, 2, 3}) {
    policy chosen = usual_policy();
    chosen.defer_limit = limit;
    for (const std::size_t waiting : {0U, 1U, 2U, 3U}) {
      record lease = lease_in(lease_state::offered);
      while (lease.deferred.size() < waiting) {
        lease.deferred.push_back({frame_of(event_kind::renew), {}});
      }
      for (const event& frame : every_frame()) walk.frame(lease, chosen, frame);
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_THAT(walk.reasons(),
              testing::IsSupersetOf({"reorder_buffer_full", "awaiting_activation"}));
}

TEST(LadderOfFrames, CapsOfARenewCountOneBelowAtAndOneAboveEachOther) {
  comparison walk;
  constexpr std::int64_t expires = 10'500;
  constexpr std::int64_t wanted = 11'000;
  const std::vector<std::int64_t> caps{0,          expires - 1, expires,    expires + 1,
                                       wanted - 1, wanted,      wanted + 1, 90'000};
  for (const std::int64_t life : caps) {
    for (const std::int64_t cancel : caps) {
      record lease = lease_in(lease_state::active);
      policy chosen = usual_policy();
      chosen.max_lifetime = duration{life == 0 ? 0 : life - lease.acquired_at.ms};
      if (cancel != 0) lease.cancel_requested_at = instant{9'700};
      lease.cancel_deadline = instant{cancel};
      lease.expires_at = instant{expires};
      for (const std::int64_t seq : {4, 5, 6}) {
        event frame = frame_of(event_kind::renew);
        frame.seq = sequence{seq};
        walk.frame(lease, chosen, frame);
      }
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_EQ(walk.reasons(), (std::set<std::string>{"renewed", "duplicate_renew", "stale_sequence",
                                                   "max_lifetime_reached", "cancel_pending"}));
}

TEST(LadderOfFrames, LimitsOfAttemptsAndLossesCountOneBelowAtAndOneAbove) {
  comparison walk;
  for (const std::int64_t limit : {0, 1, 3}) {
    policy chosen = usual_policy();
    chosen.max_attempts = limit;
    chosen.max_losses = limit;
    for (const std::int64_t so_far : {0, 1, 2, 3, 4}) {
      for (const lease_state state : {lease_state::offered, lease_state::active}) {
        for (const lease_kind kind : {lease_kind::job, lease_kind::lock}) {
          if (state == lease_state::offered && kind == lease_kind::lock) continue;
          for (const bool cancel : {false, true}) {
            record lease = lease_in(state, kind);
            lease.attempt = so_far;
            lease.losses = so_far;
            if (cancel && (state != lease_state::active || kind == lease_kind::lock)) continue;
            if (cancel) lease.cancel_requested_at = instant{9'700};
            if (cancel) lease.cancel_deadline = instant{10'500};
            for (const event& frame : every_frame()) walk.frame(lease, chosen, frame);
          }
        }
      }
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_THAT(walk.reasons(),
              testing::IsSupersetOf({"losses_exhausted", "attempts_exhausted", "retry_scheduled",
                                     "job_failed", "released", "offer_declined"}));
}

TEST(LadderOfFrames, ACancelIsAcknowledgedOnce) {
  comparison walk;
  for (const std::int64_t requested : {0, 9'700}) {
    for (const std::int64_t acked : {0, 9'800}) {
      record lease = lease_in(lease_state::active);
      lease.cancel_requested_at = instant{requested};
      lease.cancel_deadline = instant{requested == 0 ? 0 : 10'500};
      lease.cancel_acked_at = instant{requested == 0 ? 0 : acked};
      walk.frame(lease, usual_policy(), frame_of(event_kind::cancel_ack));
    }
  }
  EXPECT_EQ(walk.differences(), "");
  EXPECT_EQ(walk.reasons(), (std::set<std::string>{"cancel_not_requested", "duplicate_cancel_ack",
                                                   "cancel_acknowledged"}));
}

}  // namespace
}  // namespace leasehold::ladder
