// The tables of cancellation dispatch, row by row: claim, result, operator, and what a step of a
// job means for it.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "leasehold/protocol/dispatch.hpp"

namespace leasehold::protocol {
inline constexpr instant cancelled{1'000};
inline constexpr instant deadline{1'500};
inline constexpr dispatch_pace pace{duration{100}, duration{10}, duration{60}};
inline const std::string host = "10c57e73-a9fd-46f1-aecb-71b60c3b41fc";
inline const std::string token = "0123456789abcdef0123456789abcdef";
inline const lease_key job{tenant_id{"t"}, lease_id{"j"}};

inline dispatch_change opening() {
  dispatch_change change;
  change.what = dispatch_change::kind::open;
  change.key = job;
  change.gen = generation{7};
  change.at = cancelled;
  change.cancel_requested_at = cancelled;
  change.cancel_deadline = deadline;
  return change;
}

inline dispatch_record opened(const std::string& of_host = {}) {
  return open_dispatch(opening(), of_host);
}

inline dispatch_record in_process_stage() {
  auto record = opened(host);
  record.stage = dispatch_stage::process;
  return record;
}

inline dispatch_claim claim_of(const dispatch_record& r) {
  return {r.key,
          r.gen,
          r.cancel_requested_at,
          r.stage,
          r.stage == dispatch_stage::process ? r.host : "",
          "me",
          token};
}

/// Claimed at `at`, as its report must name it.
inline dispatch_report claimed(dispatch_record& r, std::int64_t at,
                               dispatch_result said = dispatch_result::termination_requested) {
  EXPECT_EQ(claim_dispatch(r, claim_of(r), instant{at}, pace), reason::none);
  return {r.key, r.gen, r.lease_owner, r.lease_token, r.version, said};
}

inline dispatch_event reported(dispatch_record& r, std::int64_t at, dispatch_result said) {
  const auto report = claimed(r, at, said);
  dispatch_event event;
  EXPECT_EQ(report_dispatch(r, report, instant{at + 1}, pace, event), reason::none);
  return event;
}

/// The claim is refused and nothing changes.
inline void expect_refused(const dispatch_record& r, const dispatch_claim& asked, std::int64_t at,
                           reason why) {
  auto after = r;
  EXPECT_EQ(claim_dispatch(after, asked, instant{at}, pace), why);
  EXPECT_EQ(after, r);
}

inline void expect_stale(const dispatch_record& r, const dispatch_report& said, std::int64_t at) {
  auto after = r;
  dispatch_event event;
  EXPECT_EQ(report_dispatch(after, said, instant{at}, pace, event), reason::stale_claim);
  EXPECT_EQ(after, r);
  EXPECT_EQ(event, dispatch_event{});
}

}  // namespace leasehold::protocol
