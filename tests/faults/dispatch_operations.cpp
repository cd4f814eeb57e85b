#include "dispatch_operations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace leasehold::tests {

namespace {

using protocol::dispatch_result;
using protocol::dispatch_status;
using protocol::reason;

constexpr protocol::dispatch_pace pace{{1'000}, {1'000}, {1'000}};

protocol::lease_key key() { return {protocol::tenant_id{"t"}, protocol::lease_id{"j"}}; }

/// The first answer of several; an error is one like any other that the store could not be used.
template <class Answer>
Answer first_of(actors::store_result<std::vector<Answer>> said) {
  if (auto* answers = std::get_if<std::vector<Answer>>(&said); answers && !answers->empty()) {
    return std::move(answers->front());
  }
  Answer none;
  none.why = reason::store_unavailable;
  return none;
}

/// A dispatcher of one cancel, and what it was told.
class claimant {
 public:
  void begin(scene& s) {
    *this = {};
    s.hold("j");
    s.worker().credit(0);
    protocol::event cancel;
    cancel.kind = protocol::event_kind::cancel;
    EXPECT_EQ(operate(*s.rig, "j", cancel).reason, reason::cancel_requested);
    asked_at_ = job(*s.rig, "j")->state->cancel_requested_at;
  }

  /// By another owner and token each time.
  reason claim(scene& s) {
    auto number = std::to_string(++claims_);
    protocol::dispatch_claim asked;
    asked.key = key();
    asked.gen = {1};
    asked.cancel_requested_at = asked_at_;
    asked.owner = "owner-" + number;
    asked.token = std::string(32 - number.size(), 'a') + number;
    auto said = actors::dispatch_claimed{};
    s.store().dispatches().claim({asked}, pace,
                                 [&](auto answers) { said = first_of(std::move(answers)); });
    if (said.why == reason::none) {
      EXPECT_EQ(said.record.lease_token, asked.token);
      claimed_ = std::move(said.record);
    }
    return said.why;
  }

  reason report(scene& s) {
    ++reports_;
    const protocol::dispatch_report what{key(),
                                         {1},
                                         claimed_.lease_owner,
                                         claimed_.lease_token,
                                         claimed_.version,
                                         dispatch_result::termination_requested};
    auto why = reason::none;
    s.store().dispatches().report({what}, pace,
                                  [&](auto answers) { why = first_of(std::move(answers)).why; });
    return why;
  }

  [[nodiscard]] int claims() const { return claims_; }
  [[nodiscard]] int reports() const { return reports_; }

  /// Connects, too: what is asked next is the claim.
  static void expect_no_claim(scene& s) { EXPECT_EQ(record(s).status, dispatch_status::pending); }

  void expect_the_claim(scene& s) {
    const auto found = record(s);
    auto wanted = claimed_;
    wanted.lease_token.clear();
    EXPECT_EQ(found, wanted);
    EXPECT_EQ(found.status, dispatch_status::leased);
    EXPECT_LE(found.dispatch_count, claims_);
    EXPECT_EQ(found.version, found.dispatch_count);
    EXPECT_EQ(claim(s), reason::claim_held);
    EXPECT_TRUE(events(s).empty());
  }

  void expect_the_report(scene& s) {
    EXPECT_EQ(report(s), reason::stale_claim);
    const auto found = record(s);
    EXPECT_EQ(found.status, dispatch_status::dispatched);
    EXPECT_EQ(found.last_result, dispatch_result::termination_requested);
    EXPECT_EQ(found.lease_owner, "");
    EXPECT_EQ(found.version, claimed_.version + 1);
    const auto told = events(s);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told.front().version, found.version);
    EXPECT_EQ(told.front().kind, protocol::dispatch_event_kind::cancel_dispatched);
  }

 private:
  static protocol::dispatch_record record(scene& s) {
    protocol::dispatch_record out;
    s.store().dispatches().find(key(), [&](auto said) {
      const auto* found = std::get_if<std::optional<protocol::dispatch_record>>(&said);
      EXPECT_TRUE(found && *found);
      if (found && *found) out = **found;
    });
    return out;
  }
  static std::vector<protocol::dispatch_event> events(scene& s) {
    std::vector<protocol::dispatch_event> out;
    s.store().dispatches().events(key(), 0, 10, [&](auto said) {
      auto* found = std::get_if<std::vector<protocol::dispatch_event>>(&said);
      EXPECT_TRUE(found);
      if (found) out = std::move(*found);
    });
    return out;
  }

  protocol::instant asked_at_;
  protocol::dispatch_record claimed_;
  int claims_ = 0;
  int reports_ = 0;
};

/// That the process must stop is found by the next write of the log.
ending refused(scene& s) {
  s.rig->checkpoint();
  return ending::refused;
}

ending claim(claimant& by, scene& s) {
  auto why = by.claim(s);
  if (why == reason::store_unavailable) return refused(s);
  if (why == reason::claim_held) {
    // The one that was not confirmed was made.
    EXPECT_GT(by.claims(), 1);
    s.rig->advance(pace.claim.ms - 1);
    EXPECT_EQ(by.claim(s), reason::claim_held);
    s.rig->advance(1);
    why = by.claim(s);
  }
  EXPECT_EQ(why, reason::none) << word(why);
  return ending::done;
}

ending report(claimant& by, scene& s) {
  const auto why = by.report(s);
  if (why == reason::store_unavailable) return refused(s);
  // One that was not confirmed may have been written.
  EXPECT_TRUE(why == reason::none || (why == reason::stale_claim && by.reports() > 1)) << word(why);
  return ending::done;
}

operation of(std::string name) {
  operation what{std::move(name), {}, {}, {}};
  what.reads = true;
  return what;
}

}  // namespace

operation claims_a_dispatch() {
  const auto by = std::make_shared<claimant>();
  auto what = of("claim of a dispatch");
  what.before = [by](scene& s) {
    by->begin(s);
    by->expect_no_claim(s);
  };
  what.act = [by](scene& s) { return claim(*by, s); };
  what.after = [by](scene& s) { by->expect_the_claim(s); };
  return what;
}

operation reports_a_dispatch() {
  const auto by = std::make_shared<claimant>();
  auto what = of("report of a dispatch");
  what.before = [by](scene& s) {
    by->begin(s);
    EXPECT_EQ(by->claim(s), reason::none);
  };
  what.act = [by](scene& s) { return report(*by, s); };
  what.after = [by](scene& s) { by->expect_the_report(s); };
  return what;
}

}  // namespace leasehold::tests
