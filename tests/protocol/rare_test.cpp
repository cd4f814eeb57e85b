// The parts of a record that are kept elsewhere are values like the others.
#include "leasehold/protocol/rare.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::protocol {
namespace {

TEST(Rare, ACopyIsAValueOfItsOwn) {
  rare<std::string> a(std::string("one"));
  rare<std::string> b = a;
  EXPECT_EQ(a, b);
  *b += " more";
  EXPECT_EQ(*a, "one");
  EXPECT_NE(a, b);
  a = b;
  EXPECT_EQ(*a, "one more");
  const auto& same = a;
  a = same;
  EXPECT_EQ(a->size(), 8U);
}

TEST(Rare, NothingEqualsNothingOnly) {
  rare<std::string> a;
  rare<std::string> b;
  EXPECT_FALSE(a.has_value());
  EXPECT_EQ(a, b);
  b.emplace();
  EXPECT_TRUE(b);
  EXPECT_NE(a, b);
  EXPECT_NE(b, a);
  a = b;
  EXPECT_EQ(*a, "");
  b.reset();
  EXPECT_EQ(b, rare<std::string>{});
  a = b;
  EXPECT_FALSE(a);
}

TEST(RareList, GrowsShrinksAndIsReadAsAVector) {
  rare_list<int> list;
  EXPECT_TRUE(list.empty());
  for (const int each : list) ADD_FAILURE() << each;
  for (const int each : {1, 2, 3}) list.push_back(each);
  list.emplace_back() = 4;
  list.erase(list.begin());
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0], 2);
  EXPECT_EQ(list.back(), 4);
  EXPECT_EQ(std::vector<int>(list.begin(), list.end()), (std::vector{2, 3, 4}));
}

TEST(RareList, IsEqualByWhatIsInIt) {
  rare_list<int> never;
  rare_list<int> once;
  once.push_back(1);
  const auto copy = once;
  EXPECT_NE(never, once);
  EXPECT_EQ(copy, once);
  once.erase(once.begin());
  EXPECT_EQ(never, once);
  EXPECT_EQ(copy.size(), 1U);
}

TEST(RareList, GivesAllAwayOnce) {
  rare_list<int> list;
  EXPECT_EQ(list.take(), std::vector<int>{});
  list.push_back(7);
  EXPECT_EQ(list.take(), std::vector{7});
  EXPECT_TRUE(list.empty());
  list.push_back(8);
  list.clear();
  EXPECT_EQ(list.size(), 0U);
}

}  // namespace
}  // namespace leasehold::protocol
