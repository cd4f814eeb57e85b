// The guard of a C++ service: what it lets through, in every order and from many threads.
#include "leasehold/client/fencing_guard.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::client {
namespace {

using enum fence_verdict;

TEST(FencingGuard, ALowerTokenIsRefusedTheSameAndAHigherOneAreNot) {
  fencing_guard guard;
  EXPECT_EQ(guard.raise("k", 7), accepted);
  EXPECT_EQ(guard.raise("k", 6), stale);
  EXPECT_EQ(guard.raise("k", 7), accepted);
  EXPECT_EQ(guard.raise("k", 8), accepted);
  EXPECT_EQ(guard.raise("k", 7), stale);
  EXPECT_EQ(guard.highest("k"), 8);
}

TEST(FencingGuard, OnlyAnAcceptedWriteIsDone) {
  fencing_guard guard;
  std::vector<int> done;
  EXPECT_EQ(guard.write("k", 2, [&] { done.push_back(2); }), accepted);
  EXPECT_EQ(guard.write("k", 1, [&] { done.push_back(1); }), stale);
  EXPECT_EQ(guard.write("", 3, [&] { done.push_back(3); }), invalid);
  EXPECT_EQ(done, std::vector{2});
}

TEST(FencingGuard, AnOldHolderIsAcceptedUntilTheNewTokenHasComeAndNotAfter) {
  fencing_guard guard;
  EXPECT_EQ(guard.raise("k", 1), accepted);
  // The lock has gone to token 2, which nobody here knows yet.
  EXPECT_EQ(guard.raise("k", 1), accepted);
  EXPECT_EQ(guard.raise("k", 2), accepted);
  EXPECT_EQ(guard.raise("k", 1), stale);
}

TEST(FencingGuard, KeysDoNotShareTokens) {
  fencing_guard guard;
  EXPECT_EQ(guard.raise("a", 9), accepted);
  EXPECT_EQ(guard.raise("b", 1), accepted);
  EXPECT_EQ(guard.highest("a"), 9);
  EXPECT_EQ(guard.highest("b"), 1);
  EXPECT_EQ(guard.highest("c"), 0);
}

TEST(FencingGuard, TokensBelowOneAndKeysOutsideTheirSizeAreInvalid) {
  fencing_guard guard({.keys = 4, .key_bytes = 3});
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  for (const auto token : {least, std::int64_t{-1}, std::int64_t{0}}) {
    EXPECT_EQ(guard.raise("k", token), invalid) << token;
  }
  EXPECT_EQ(guard.raise("k", 1), accepted);
  EXPECT_EQ(guard.raise("k", most), accepted);
  EXPECT_EQ(guard.raise("", 1), invalid);
  EXPECT_EQ(guard.raise("abc", 1), accepted);
  EXPECT_EQ(guard.raise("abcd", 1), invalid);
  EXPECT_EQ(guard.size(), 2U);
}

TEST(FencingGuard, AKeyBeyondTheLimitIsRefusedAndNoneIsDroppedForIt) {
  fencing_guard guard({.keys = 2});
  EXPECT_EQ(guard.raise("a", 5), accepted);
  EXPECT_EQ(guard.raise("b", 5), accepted);
  EXPECT_EQ(guard.raise("c", 5), full);
  EXPECT_EQ(guard.raise("a", 4), stale);
  EXPECT_EQ(guard.raise("b", 4), stale);
  EXPECT_EQ(guard.size(), 2U);
  fencing_guard none({.keys = 0});
  EXPECT_EQ(none.raise("a", 1), full);
}

TEST(FencingGuard, AForgottenKeyMakesRoomAndIsNewAgain) {
  fencing_guard guard({.keys = 1});
  EXPECT_EQ(guard.raise("a", 5), accepted);
  EXPECT_TRUE(guard.forget("a"));
  EXPECT_FALSE(guard.forget("a"));
  EXPECT_EQ(guard.raise("b", 1), accepted);
  EXPECT_TRUE(guard.forget("b"));
  EXPECT_EQ(guard.raise("a", 1), accepted);
}

TEST(FencingGuard, AWriteThatThrowsHasToldItsTokenAndKeepsNobodyWaiting) {
  fencing_guard guard;
  EXPECT_THROW(guard.write("k", 2, [] { throw std::runtime_error("disk"); }), std::runtime_error);
  EXPECT_EQ(guard.raise("k", 1), stale);
  EXPECT_EQ(guard.raise("k", 2), accepted);
}

TEST(FencingGuard, ANewerWriteBeginsOnlyOnceTheOlderOneIsOver) {
  fencing_guard guard;
  std::atomic<bool> newer_waits = false;
  std::atomic<bool> older_is_over = false;
  bool was_over = false;
  std::thread newer;
  guard.write("k", 1, [&] {
    newer = std::thread([&] {
      newer_waits = true;
      guard.write("k", 2, [&] { was_over = older_is_over; });
    });
    while (!newer_waits) std::this_thread::yield();
    EXPECT_EQ(guard.highest("k"), 1) << "asking does not wait, and nothing newer runs yet";
    older_is_over = true;
  });
  newer.join();
  EXPECT_TRUE(was_over);
}

TEST(FencingGuard, WritesOfDifferentKeysDoNotWaitForEachOther) {
  fencing_guard guard;
  std::atomic<int> inside = 0;
  const auto meet = [&] {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  };
  std::thread other([&] { guard.write("b", 1, meet); });
  EXPECT_EQ(guard.write("a", 1, meet), accepted);
  other.join();
}

/// What must be said, by the sentence itself: a map of the highest token, and a count.
class plain_model {
 public:
  explicit plain_model(fence_limits limits) : limits_(limits) {}

  fence_verdict raise(const std::string& key, std::int64_t token) {
    if (key.empty() || key.size() > limits_.key_bytes || token < 1) return invalid;
    const auto at = highest_.find(key);
    if (at == highest_.end()) {
      if (highest_.size() == limits_.keys) return full;
      highest_[key] = token;
      return accepted;
    }
    if (token < at->second) return stale;
    at->second = token;
    return accepted;
  }
  bool forget(const std::string& key) { return highest_.erase(key) == 1; }

 private:
  fence_limits limits_;
  std::map<std::string, std::int64_t> highest_;
};

RC_GTEST_PROP(FencingGuardProperty, EveryOrderOfTokensGetsTheVerdictsOfTheModel, ()) {
  const fence_limits limits{.keys = *rc::gen::inRange<std::size_t>(0, 5), .key_bytes = 2};
  fencing_guard guard(limits);
  plain_model model(limits);
  const auto keys = rc::gen::element<std::string>("", "a", "b", "c", "dd", "ee", "fff");
  const auto steps = *rc::gen::container<std::vector<std::pair<std::string, std::int64_t>>>(
      rc::gen::pair(keys, rc::gen::inRange<std::int64_t>(-1, 12)));
  for (const auto& [key, token] : steps) {
    if (token == 11) {
      RC_ASSERT(guard.forget(key) == model.forget(key));
    } else {
      RC_ASSERT(guard.raise(key, token) == model.raise(key, token));
    }
    RC_ASSERT(guard.size() <= limits.keys);
  }
}

/// What one thread after another has written to a key; the guard alone keeps them apart.
struct target {
  std::vector<std::int64_t> written;
};

TEST(FencingGuardThreads, TokensOfAKeyNeverFallHoweverManyWriteAtOnce) {
  constexpr int writers = 8;
  constexpr int writes = 1'000;
  constexpr std::array<const char*, 5> keys{"a", "b", "c", "d", "e"};
  std::array<target, keys.size()> targets;
  std::array<std::atomic<std::int64_t>, keys.size()> granted{};
  std::atomic<int> refused = 0;
  fencing_guard guard;
  std::vector<std::thread> threads;
  threads.reserve(writers);
  for (unsigned seed = 1; seed <= writers; ++seed) {
    threads.emplace_back([&, seed] {
      std::minstd_rand dice(seed);
      for (int i = 0; i < writes; ++i) {
        const std::size_t at = dice() % keys.size();
        const std::int64_t token = ++granted[at];
        if (dice() % 4 == 0) std::this_thread::yield();
        const auto said =
            guard.write(keys[at], token, [&] { targets[at].written.push_back(token); });
        if (said == stale) ++refused;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::size_t done = 0;
  for (std::size_t at = 0; at < keys.size(); ++at) {
    EXPECT_TRUE(std::ranges::is_sorted(targets[at].written)) << keys[at];
    EXPECT_EQ(guard.highest(keys[at]), targets[at].written.back());
    EXPECT_EQ(granted[at], targets[at].written.back()) << "the newest is never refused";
    done += targets[at].written.size();
  }
  EXPECT_EQ(done + static_cast<std::size_t>(refused), std::size_t{writers} * writes);
}

TEST(FencingGuardThreads, ForgettingAmongWritesKeepsThemOneAtATime) {
  fencing_guard guard({.keys = 1});
  std::atomic<bool> stop = false;
  std::int64_t inside = 0;
  std::atomic<int> overlaps = 0;
  std::thread forgetter([&] {
    while (!stop) guard.forget("k");
  });
  constexpr int writers = 3;
  std::vector<std::thread> threads;
  threads.reserve(writers);
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 3'000; ++n) {
        guard.write("k", 1, [&] {
          if (++inside != 1) ++overlaps;
          --inside;
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  stop = true;
  forgetter.join();
  EXPECT_EQ(overlaps, 0);
}

}  // namespace
}  // namespace leasehold::client
