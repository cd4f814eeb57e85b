// The connection to PostgreSQL is cut before and after the n-th message in either direction, for
// every operation and every n until none is met any more. A COMMIT ends both ways under the same
// silence: what was answered is in the log once, what was refused is not, and the coordinator goes
// on with a session of its own making.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "failing_database.hpp"

namespace leasehold::tests {
namespace {

/// Every message of every operation, instead of what CI has time for.
bool all_wanted() { return std::getenv("LEASEHOLD_CUTS") != nullptr; }

/// Which operations CI tries a cut with.
enum class tried_by_ci : std::uint8_t { none, submit, these };

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

bool is_wanted(const named_cut& what, const operation& with) {
  if (all_wanted()) return true;
  switch (what.with) {
    case tried_by_ci::none:
      return false;
    case tried_by_ci::submit:
      return with.name == "submit";
    case tried_by_ci::these:
      return with.name == "submit" || with.name == "cancel" || with.name == "checkpoint";
  }
  return false;
}

/// Runs with each cut at the n-th message, n = 1, 2, ... until a run is not met any more. How many
/// runs were met.
int for_each_cut(const operation& tried, failing_database& ground, operation_run& run) {
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
        const bool hit = run.with(
            [&] {
              auto fault = each.what;
              fault.to = to;
              fault.nth = n;
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
    if (std::ranges::none_of(all_cuts(), [&](const auto& each) { return is_wanted(each, tried); }))
      continue;
    operation_run run(tried, ground);
    const int met = for_each_cut(tried, ground, run);
    std::cout << run.summary() << std::endl;
    if (::testing::Test::HasFailure()) return;
    EXPECT_GT(met, 10);
    EXPECT_GT(run.tally().done, 0);
  }
}

}  // namespace
}  // namespace leasehold::tests
