// Properties of every stream of frames and operations, whatever their order.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/protocol/property_generators.hpp"
#include "tests/protocol/property_watch.hpp"

namespace leasehold {
namespace {

using namespace protocol;

/// RapidCheck reads its configuration once, from the environment; more cases than its 100.
[[maybe_unused]] const int more_cases = ::setenv("RC_PARAMS", "max_success=5000 max_size=120", 0);

subject any_subject() {
  return *rc::gen::weightedElement<subject>({{4, subject::job}, {1, subject::lock}});
}

/// Runs a stream, calls `begin()` where it begins with a lease and `check(moment, before, after)`
/// after each step.
template <class Begin, class Check>
void run(const std::vector<choice>& stream, subject about, const policy& chosen, row_sink& rows,
         Begin begin, Check check) {
  record lease;
  instant now{1'000};
  begin();
  for (const choice& c : stream) {
    if (goes_on_with_another(c, lease)) {
      lease = record{};
      begin();
    }
    const moment next = resolve_choice(c, about, lease, now);
    now = next.at;
    const record before = lease;
    step(lease, chosen, next.what, now, rows);
    check(next, before, lease);
  }
}

constexpr auto nothing_to_begin = [] {};

struct silence final : row_sink {
  void on_row(const row&, const record&) override {}
};

/// Of frames that wait, copies wait too; what they will do is what one of them will do.
record without_waiting_copies(record lease) {
  rare_list<deferred_frame> kept;
  for (const deferred_frame& d : lease.deferred) {
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const deferred_frame& other) {
      return other.frame == d.frame;
    });
    if (!seen) kept.push_back(deferred_frame{d.frame, {}});
  }
  lease.deferred = std::move(kept);
  return lease;
}

RC_GTEST_PROP(Properties, NoRowBreaksSafety, ()) {
  const policy chosen = *any_policy();
  const subject about = any_subject();
  safety_watch watch;
  std::vector<moment> history;
  const auto begin = [&] {
    watch.start(record{});
    history.clear();
  };
  run(*any_stream(), about, chosen, watch, begin,
      [&](const moment& next, const record&, const record& r) {
        watch.finish(r);
        history.push_back(next);
        if (!watch.ok()) {
          for (const moment& m : history) RC_LOG() << m << "\n";
          RC_FAIL(watch.complaint());
        }
      });
}

RC_GTEST_PROP(Properties, AFrameSentTwiceChangesNothingButEvidence, ()) {
  policy chosen = *any_policy();
  chosen.defer_limit = 1'000;
  silence rows;
  run(*any_stream(), any_subject(), chosen, rows, nothing_to_begin,
      [&](const moment& next, const record&, const record& after) {
        if (!is_frame(next.what.kind)) return;
        record again = after;
        step(again, chosen, next.what, next.at, rows);
        RC_LOG() << next << "\n";
        RC_ASSERT(without_waiting_copies(again) == without_waiting_copies(after));
      });
}

RC_GTEST_PROP(Properties, AStreamWithEachFrameTwiceEndsAsTheStreamWithEachOnce, ()) {
  policy chosen = *any_policy();
  chosen.defer_limit = 1'000;
  silence rows;
  record twice;
  const auto begin = [&] { twice = record{}; };
  run(*any_stream(), any_subject(), chosen, rows, begin,
      [&](const moment& next, const record&, const record& once) {
        step(twice, chosen, next.what, next.at, rows);
        if (is_frame(next.what.kind)) step(twice, chosen, next.what, next.at, rows);
        RC_LOG() << next << "\n";
        RC_ASSERT(without_waiting_copies(twice) == without_waiting_copies(once));
      });
}

/// Says whether any row accepted a result.
struct result_watch final : row_sink {
  void on_row(const row& what, const record&) override {
    accepted =
        accepted || (what.kind == event_kind::result && what.answer.decision == decision::accepted);
  }
  bool accepted = false;
};

RC_GTEST_PROP(Properties, NothingCompletesWithoutAnAcceptedResult, ()) {
  const policy chosen = *any_policy();
  result_watch rows;
  const auto begin = [&] { rows.accepted = false; };
  run(*any_stream(), subject::job, chosen, rows, begin,
      [&](const moment&, const record&, const record& after) {
        RC_ASSERT(after.state != lease_state::completed || rows.accepted);
      });
}

RC_GTEST_PROP(Properties, ACancelStaysUntilTheJobIsSettled, ()) {
  const policy chosen = *any_policy();
  silence rows;
  bool cancelled = false;
  generation at;
  const auto begin = [&] { cancelled = false; };
  run(*any_stream(), subject::job, chosen, rows, begin,
      [&](const moment& next, const record& before, const record& after) {
        if (cancelled) {
          RC_ASSERT(after.gen == at);
          RC_ASSERT(after.cancel_requested_at.ms != 0);
          RC_ASSERT(after.state == lease_state::active || after.state == lease_state::unresolved ||
                    is_settled(after.state));
        }
        const bool now_cancelled =
            before.cancel_requested_at.ms == 0 && after.cancel_requested_at.ms != 0;
        if (now_cancelled) RC_ASSERT(next.what.kind == event_kind::cancel);
        cancelled = cancelled || now_cancelled;
        at = after.gen;
      });
}

RC_GTEST_PROP(Properties, NothingLeavesASettledState, ()) {
  const policy chosen = *any_policy();
  silence rows;
  run(*any_stream(), subject::job, chosen, rows, nothing_to_begin,
      [&](const moment&, const record& before, record after) {
        if (!is_settled(before.state)) return;
        RC_ASSERT(after.unproven_count() <= before.unproven_count());
        after.unproven = before.unproven;
        after.unproven_nameless = before.unproven_nameless;
        RC_ASSERT(after == before);
      });
}

RC_GTEST_PROP(Properties, TimeAloneGivesTheSameLeaseInOneStepAsInMany, ()) {
  const policy chosen = *any_policy();
  silence rows;
  const std::int64_t pause = *rc::gen::inRange<std::int64_t>(0, 130);
  run(*any_stream(), any_subject(), chosen, rows, nothing_to_begin,
      [&](const moment& next, const record&, const record& after) {
        record at_once = after;
        record bit_by_bit = after;
        expire_due(at_once, chosen, instant{next.at.ms + pause}, rows);
        for (std::int64_t ms = 0; ms <= pause; ++ms) {
          expire_due(bit_by_bit, chosen, instant{next.at.ms + ms}, rows);
        }
        RC_ASSERT(at_once == bit_by_bit);
      });
}

void shift(instant& at, std::int64_t by) {
  if (at.ms != 0) at.ms += by;
}

record shifted(record lease, std::int64_t by) {
  for (instant* at : {&lease.issued_at, &lease.acquired_at, &lease.expires_at, &lease.ack_deadline,
                      &lease.renew_time, &lease.cancel_requested_at, &lease.cancel_acked_at,
                      &lease.cancel_deadline, &lease.last_sent, &lease.next_offer_at,
                      &lease.reconcile_deadline}) {
    shift(*at, by);
  }
  for (unproven_generation& u : lease.unproven) shift(u.last_sent, by);
  for (deferred_frame& d : lease.deferred) shift(d.frame.sent_at, by);
  return lease;
}

RC_GTEST_PROP(Properties, ShiftingTheClockShiftsEveryInstantAndNothingElse, ()) {
  const policy chosen = *any_policy();
  const std::int64_t by = *rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000);
  silence rows;
  record later_lease;
  const auto begin = [&] { later_lease = record{}; };
  run(*any_stream(), any_subject(), chosen, rows, begin,
      [&](const moment& next, const record&, const record& lease) {
        event what = next.what;
        if (what.sent_at.ms > 0) shift(what.sent_at, by);
        step(later_lease, chosen, what, instant{next.at.ms + by}, rows);
        RC_ASSERT(later_lease == shifted(lease, by));
      });
}

}  // namespace
}  // namespace leasehold
