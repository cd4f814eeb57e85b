#include "tools/client/text.hpp"

#include <gtest/gtest.h>

#include "tools/client/stream_link.hpp"

namespace leasehold::client {
namespace {

TEST(clean_text, KeepsWhatIsValidAndMarksWhatIsNot) {
  EXPECT_EQ(clean_text("plain \u00fc \u20ac \U0001F512", 100), "plain \u00fc \u20ac \U0001F512");
  EXPECT_EQ(clean_text("a\xff\xfe z", 100), "a?? z");
  EXPECT_EQ(clean_text("\xc0\xaf", 100), "??") << "an over-long form";
  EXPECT_EQ(clean_text("\xed\xa0\x80", 100), "???") << "a surrogate";
  EXPECT_EQ(clean_text("\xf4\x90\x80\x80", 100), "????") << "beyond U+10FFFF";
  EXPECT_EQ(clean_text("\xe2\x82", 100), "??") << "cut off";
}

TEST(clean_text, CutsBetweenCharacters) {
  EXPECT_EQ(clean_text("ab\u20ac", 4), "ab");
  EXPECT_EQ(clean_text("ab\u20ac", 5), "ab\u20ac");
  EXPECT_EQ(clean_text("abc", 0), "");
}

TEST(stream_address, IsReadFromTheUsualForms) {
  const auto read = [](const char* url) { return parse_stream_address(url); };
  EXPECT_EQ(*read("ws://h:7878/v1/stream"), (stream_address{false, "h", "7878", "/v1/stream"}));
  EXPECT_EQ(*read("http://127.0.0.1:7878"),
            (stream_address{false, "127.0.0.1", "7878", "/v1/stream"}));
  EXPECT_EQ(*read("https://h/"), (stream_address{true, "h", "443", "/v1/stream"}));
  EXPECT_EQ(*read("wss://[::1]:1/x"), (stream_address{true, "::1", "1", "/x"}));
}

TEST(stream_address, RefusesOtherForms) {
  for (const char* url : {"", "h:1", "ftp://h", "ws://", "ws://h:0", "ws://h:65536", "ws://h:",
                          "ws://u@h", "ws://h/?q", "ws://[::1", "ws://h h", "ws://[::1]x"}) {
    EXPECT_FALSE(parse_stream_address(url)) << url;
  }
}

}  // namespace
}  // namespace leasehold::client
