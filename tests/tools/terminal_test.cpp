#include "tools/terminal.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace leasehold::tests {
namespace {

using namespace leasehold::tools;

TEST(Printable, LetsNoEscapeReachATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\x7f"), "a\\x1b[31mb\\x0ac\\x7f");
  EXPECT_EQ(printable("h\xc3\xa9"), "h\xc3\xa9");
}

TEST(Table, PutsNumbersToTheRightAndTextToTheLeft) {
  table shown({"NAME", "COUNT"});
  shown.add({"a", "5"});
  shown.add({"long", "1000"});
  EXPECT_EQ(shown.text(), "NAME  COUNT\na         5\nlong   1000\n");
}

TEST(Table, CountsLettersAndNotBytes) {
  table shown({"N", "X"});
  shown.add({"\xc3\xa9\xc3\xa9", "x"});
  shown.add({"abc", "x"});
  EXPECT_EQ(shown.text(), "N    X\n\xc3\xa9\xc3\xa9   x\nabc  x\n");
}

TEST(Colour, IsNotShownWhereNoTerminalIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(shows_colour(ends[1]));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(TimeText, IsUtcWithMilliseconds) {
  EXPECT_EQ(time_text(1'700'000'000'123), "2023-11-14 22:13:20.123");
  EXPECT_EQ(time_text(0), "-");
}

}  // namespace
}  // namespace leasehold::tests
