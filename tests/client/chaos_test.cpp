#include "leasehold/client/chaos.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace leasehold::client {
namespace {

chaos_options parsed(std::string_view text) { return std::get<chaos_options>(parse_chaos(text)); }
std::string complaint(std::string_view text) { return std::get<std::string>(parse_chaos(text)); }

TEST(chaos, IsReadFromItsTextAndPrintedSo) {
  const auto options = parsed("reorder=0.3,dup=0.1,drop=0.05,delay=5..80ms,seed=7");
  EXPECT_EQ(options.reorder, 0.3);
  EXPECT_EQ(options.dup, 0.1);
  EXPECT_EQ(options.drop, 0.05);
  EXPECT_EQ(options.delay_least.ms, 5);
  EXPECT_EQ(options.delay_most.ms, 80);
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(to_text(options), "reorder=0.3,dup=0.1,drop=0.05,delay=5..80ms,seed=7");
  EXPECT_EQ(parsed(to_text(options)), options);
}

TEST(chaos, TakesOneDelayAndAnyOrderAndNothing) {
  EXPECT_EQ(parsed("seed=3,delay=9ms").delay_most.ms, 9);
  EXPECT_EQ(parsed("delay=9ms").delay_least.ms, 9);
  EXPECT_EQ(parsed(""), chaos_options{});
}

TEST(chaos, SaysWhatIsWrong) {
  EXPECT_NE(complaint("drop=1.5").find("drop"), std::string::npos);
  EXPECT_NE(complaint("dup=-0.1").find("dup"), std::string::npos);
  EXPECT_NE(complaint("reorder=nan").find("reorder"), std::string::npos);
  EXPECT_NE(complaint("delay=5..80").find("delay"), std::string::npos);
  EXPECT_NE(complaint("delay=80..5ms").find("delay"), std::string::npos);
  EXPECT_NE(complaint("seed=x").find("seed"), std::string::npos);
  EXPECT_NE(complaint("jitter=1").find("jitter"), std::string::npos);
  EXPECT_NE(complaint("drop").find("KEY=VALUE"), std::string::npos);
}

std::vector<int> arrivals(const chaos_options& options, std::uint64_t stream) {
  chaos_channel<int> channel(options, stream);
  for (int n = 0; n < 1000; ++n) channel.push({n}, n);
  return channel.take({100000});
}

TEST(chaos, TheSameSeedDoesTheSameAndEachDirectionItsOwn) {
  const auto options = parsed("reorder=0.3,dup=0.1,drop=0.05,delay=5..80ms,seed=7");
  EXPECT_EQ(arrivals(options, 0), arrivals(options, 0));
  EXPECT_NE(arrivals(options, 0), arrivals(options, 1));
  auto other = options;
  other.seed = 8;
  EXPECT_NE(arrivals(options, 0), arrivals(other, 0));
}

TEST(chaos, WithoutFaultsEveryFrameArrivesOnceInOrderAtOnce) {
  chaos_channel<int> channel({}, 0);
  for (int n = 0; n < 100; ++n) channel.push({5}, n);
  const auto got = channel.take({5});
  ASSERT_EQ(got.size(), 100U);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
  EXPECT_FALSE(channel.next());
}

TEST(chaos, FatesComeAboutAsOftenAsAsked) {
  chaos_channel<int> channel(parsed("reorder=0.3,dup=0.2,drop=0.1,seed=1"), 0);
  for (int n = 0; n < 10000; ++n) channel.push({n}, n);
  EXPECT_NEAR(static_cast<double>(channel.counts().dropped), 1000, 150);
  EXPECT_NEAR(static_cast<double>(channel.counts().repeated), 1800, 200);
  EXPECT_NEAR(static_cast<double>(channel.counts().reordered), 3240, 300);
  const auto got = channel.take({100000});
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
}

TEST(chaos, AFrameStaysOnItsWayForItsDelay) {
  chaos_channel<int> channel(parsed("delay=10ms"), 0);
  channel.push({100}, 1);
  EXPECT_TRUE(channel.take({109}).empty());
  EXPECT_EQ(channel.next(), local_time{110});
  EXPECT_EQ(channel.take({110}).size(), 1U);
}

}  // namespace
}  // namespace leasehold::client
