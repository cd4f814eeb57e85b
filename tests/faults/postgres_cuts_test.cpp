// The connection to PostgreSQL is cut before and after the n-th message in either direction, for
// every operation and every n until none is met any more. A COMMIT ends both ways under the same
// silence: what was answered is in the log once, what was refused is not, and the coordinator goes
// on with a session of its own making.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "failing_database.hpp"
#include "support/one_connection.hpp"

namespace leasehold::tests {
namespace {

/// Every message of every operation, instead of what CI has time for.
bool all_wanted() { return std::getenv("LEASEHOLD_CUTS") != nullptr; }

constexpr auto take_over = "take-over";

/// Which operations CI tries a cut with.
enum class tried_by_ci : std::uint8_t { none, submit, these };

constexpr std::array<std::string_view, 6> tried_operations{
    "submit", "cancel", "checkpoint", "claim of a dispatch", "report of a dispatch", take_over};

struct named_cut {
  std::string name;
  proxy_fault what;
  tried_by_ci with = tried_by_ci::none;
};

proxy_fault cut(bool passes, bool lasts) {
  proxy_fault out;
  out.passes = passes;
  out.lasts = lasts;
  return out;
}

proxy_fault unseen_by(bool server) {
  auto out = cut(server, false);
  out.closes_client = server;
  out.closes_server = !server;
  return out;
}

/// pg_terminate_backend, before the message reaches the server.
proxy_fault terminated() {
  auto out = cut(true, false);
  out.ends = false;
  out.first = [](const passing_message& what) {
    if (what.backend == 0) return;
    ::kill(what.backend, SIGTERM);
    eventually([&] { return ::kill(what.backend, 0) != 0; });
  };
  return out;
}

const std::vector<named_cut>& all_cuts() {
  static const std::vector<named_cut> all{
      {"cut after", cut(true, false), tried_by_ci::these},
      {"cut before", cut(false, false)},
      {"cut before, and nobody gets in any more", cut(false, true)},
      {"cut after, and nobody gets in any more", cut(true, true), tried_by_ci::submit},
      {"cut, and the server does not see it", unseen_by(true)},
      {"cut, and the client does not see it", unseen_by(false)},
      {"the server ends the session before", terminated()},
  };
  return all;
}

bool is_wanted(const named_cut& what, const std::string& with) {
  if (all_wanted()) return true;
  switch (what.with) {
    case tried_by_ci::none:
      return false;
    case tried_by_ci::submit:
      return with == "submit";
    case tried_by_ci::these:
      return std::ranges::find(tried_operations, with) != tried_operations.end();
  }
  return false;
}

/// Runs with each cut at the n-th message, n = 1, 2, ... until a run is not met any more, which
/// `run` says. How many runs were met. `matches`: which messages count; empty: all.
int for_each_cut(const std::string& tried, failing_database& ground,
                 const std::function<bool(const std::function<void()>& fail, bool lasts)>& run,
                 const std::function<bool(const passing_message&)>& matches = {}) {
  constexpr int most_messages = 300;
  int met = 0;
  for (const auto& each : all_cuts()) {
    if (!is_wanted(each, tried)) continue;
    for (const auto to : {toward::server, toward::client}) {
      if (each.what.first && to == toward::client) continue;
      int n = 1;
      const auto one = [&] {
        const ::testing::ScopedTrace where(
            __FILE__, __LINE__,
            each.name + " message " + std::to_string(n) +
                (to == toward::server ? " to the server" : " to the client"));
        const bool hit = run(
            [&] {
              auto fault = each.what;
              fault.to = to;
              fault.nth = n;
              fault.matches = matches;
              ground.proxy.set(std::move(fault));
            },
            each.what.lasts);
        if (::testing::Test::HasFailure()) std::cout << "met: " << ground.proxy.met() << "\n";
        return hit;
      };
      while (n < most_messages && one() && !::testing::Test::HasFailure()) ++n;
      EXPECT_LT(n, most_messages);
      met += n - 1;
      if (::testing::Test::HasFailure()) return met;
    }
  }
  return met;
}

TEST(PostgresCuts, LeaveAnswersTrueAndTheCoordinatorGoesOn) {
  failing_database ground;
  for (const auto& tried : all_operations()) {
    if (tried.of_directories) continue;
    if (std::ranges::none_of(all_cuts(),
                             [&](const auto& each) { return is_wanted(each, tried.name); }))
      continue;
    operation_run run(tried, ground);
    const int met = for_each_cut(
        tried.name, ground, [&](const auto& fail, bool lasts) { return run.with(fail, lasts); });
    std::cout << run.summary() << std::endl;
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(met, 10);
    EXPECT_GT(run.tally().done, 0);
  }
}

/// A coordinator serves when another one takes its store over, behind a connection that fails.
class succession {
 public:
  explicit succession(failing_database& ground)
      : ground_(ground), url_(ground.server.url("leases")), former_(url_, url_, "former") {
    former_.options = impatient();
  }

  bool with(const std::function<void()>& fail) {
    ground_.fresh();
    const auto clock = std::make_shared<manual_clock>();
    clock->set(protocol::instant{2'000'000});
    scene former(former_, clock);
    EXPECT_FALSE(former.start_error()) << former.start_error()->sentence;
    if (former.start_error()) return false;
    former.hold("j");
    const auto before = stands();
    fail();
    auto next = std::make_unique<scene>(ground_.place, clock);
    const bool hit = ground_.hits() > 0;
    ground_.mend();
    const auto& fault = next->start_error();
    EXPECT_TRUE(hit || !fault) << fault->sentence;
    if (fault) {
      EXPECT_NE(fault->what, actors::store_error::kind::taken) << fault->sentence;
    }
    ++(fault ? refused : done);
    const bool is_taken = expect_one_owner(before, !fault, former);
    if (!fault) {
      EXPECT_EQ(submit(*next->rig, "mine").reason, protocol::reason::submitted);
    }
    const bool is_served = !fault;
    next.reset();
    expect_one_after_that(clock, is_taken, is_served);
    return hit;
  }

  int done = 0;
  int refused = 0;

 private:
  struct standing {
    std::int64_t epoch = 0;
    std::string owner;
    friend bool operator==(const standing&, const standing&) = default;
  };
  [[nodiscard]] standing stands() const {
    one_connection reader(url_);
    return {std::stoll(reader.ask("SELECT epoch FROM leasehold.epoch")),
            reader.ask("SELECT owner FROM leasehold.epoch")};
  }

  /// Whether the epoch was taken, as who asked for it may not know. Who has it not writes nothing.
  bool expect_one_owner(const standing& before, bool is_confirmed, scene& former) {
    const auto now = stands();
    const bool is_taken = now.epoch != before.epoch;
    EXPECT_TRUE(is_taken || !is_confirmed);
    if (is_taken) {
      EXPECT_EQ(now.epoch, before.epoch + 1);
      EXPECT_NE(now.owner, before.owner);
    } else {
      EXPECT_EQ(now, before);
    }
    const auto said = submit(*former.rig, "late").reason;
    EXPECT_EQ(said == protocol::reason::submitted, !is_taken) << word(said);
    if (is_taken) {
      EXPECT_NE(submit(*former.rig, "later").reason, protocol::reason::submitted);
    }
    return is_taken;
  }

  /// The one after it has an epoch that nobody had, and all that was answered.
  void expect_one_after_that(const std::shared_ptr<manual_clock>& clock, bool was_taken,
                             bool was_served) {
    const auto before = stands();
    {
      scene last(ground_.place, clock);
      ASSERT_FALSE(last.start_error()) << last.start_error()->sentence;
      EXPECT_EQ(stands().epoch, before.epoch + 1);
      EXPECT_NE(stands().owner, before.owner);
      const auto held = job(*last.rig, "j");
      ASSERT_TRUE(held);
      EXPECT_EQ(held->state->state, protocol::lease_state::active);
      EXPECT_EQ(job(*last.rig, "late").has_value(), !was_taken);
      EXPECT_FALSE(job(*last.rig, "later"));
      EXPECT_EQ(job(*last.rig, "mine").has_value(), was_served);
      EXPECT_EQ(submit(*last.rig, "afterwards").reason, protocol::reason::submitted);
    }
    expect_proven(former_);
  }

  failing_database& ground_;
  std::string url_;
  database_place former_;
};

/// A take-over reads everything: rows of answers, and what a session says of itself when it begins,
/// are too many to be cut one by one. CI tries the statements and their ends.
bool is_one_of_a_take_over(const passing_message& what) {
  if (what.to == toward::client)
    return all_wanted() ? what.type != 'D' && what.type != 'S' : what.type == 'C';
  return all_wanted() || what.type == 'E' || what.type == 'Q';
}

TEST(PostgresCuts, OfATakeOverLeaveOneOwnerOfEachEpoch) {
  failing_database ground;
  succession run(ground);
  const int met = for_each_cut(
      take_over, ground, [&](const auto& fail, bool) { return run.with(fail); },
      is_one_of_a_take_over);
  std::cout << take_over << ": " << met << " cuts, " << run.refused << " refused, " << run.done
            << " passed over" << std::endl;
  if (::testing::Test::HasFailure()) return;
  EXPECT_GT(met, 10);
  EXPECT_GT(run.done, 0);
  EXPECT_GT(run.refused, 0);
}

}  // namespace
}  // namespace leasehold::tests
