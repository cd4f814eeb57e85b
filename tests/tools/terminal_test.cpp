#include "tools/terminal.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace leasehold::tests {
namespace {

using namespace leasehold::tools;

TEST(Printable, LetsNoEscapeReachATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\x7f"), "a\\u001b[31mb\\u000ac\\u007f");
  EXPECT_EQ(printable("\u0080\u009b"), "\\u0080\\u009b");
  EXPECT_EQ(printable("\x9b"), "\\x9b");  // C1 of one byte, which is no UTF-8
}

TEST(Printable, ShowsMarksThatWouldNotBeSeen) {
  struct marks {
    std::string_view text;
    std::string_view shown;
  };
  // The first and the last of each range.
  for (const auto& [text, shown] :
       {marks{"\u061c", "\\u061c"}, marks{"\u200b\u200f", "\\u200b\\u200f"},
        marks{"\u202a\u202e", "\\u202a\\u202e"}, marks{"\u2028\u2029", "\\u2028\\u2029"},
        marks{"\u2060\u2069", "\\u2060\\u2069"}, marks{"\ufeff", "\\ufeff"},
        marks{"\U000e0001", "\\ue0001"}}) {
    EXPECT_EQ(printable(text), shown);
  }
}

TEST(Printable, LeavesTextOfAnyLengthAsItIs) {
  // Beside the ranges: \u00a0 \u061b \u200a \u2010 \u2027 \u202f \u205f \u2070.
  const std::string beside =
      "\u00a0\u061b\u200a\u2010\u2027\u202f\u205f\u2070\u05d0 h\xc3\xa9 \U0001f600";
  EXPECT_EQ(printable(beside), beside);
  const std::string long_one(5000, 'x');
  EXPECT_EQ(printable(long_one), long_one);
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

TEST(Table, ShowsWhatWouldChangeItsOrder) {
  table shown({"A", "B"});
  shown.add({"x\u202ey", "z\x1b[2J"});
  EXPECT_EQ(shown.text(), "A         B\nx\\u202ey  z\\u001b[2J\n");
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
