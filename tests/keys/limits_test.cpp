// The sizes of the parts, one before, at and one after each limit, and what text they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/keys/normalise.hpp"

namespace leasehold::keys {
namespace {

using protocol::lock_name;
using protocol::target_kind;
using testing::HasSubstr;

const lock_name plain{"p", target_kind::opaque, "t", "", ""};

bool is_accepted(const lock_name& typed) {
  return std::holds_alternative<lock_name>(normalise(typed));
}

std::string refused(const lock_name& typed) {
  const auto made = normalise(typed);
  const auto* why = std::get_if<refusal>(&made);
  return why == nullptr ? "accepted" : why->sentence;
}

lock_name with(std::string lock_name::*part, std::string text) {
  lock_name out = plain;
  out.*part = std::move(text);
  return out;
}

lock_name of(target_kind kind, std::string target) {
  return {"p", kind, std::move(target), "", ""};
}

TEST(Limits, ANamedPartHas128BytesAtMost) {
  for (const auto part : {&lock_name::program, &lock_name::workflow, &lock_name::operation_class}) {
    EXPECT_TRUE(is_accepted(with(part, std::string(127, 'a'))));
    EXPECT_TRUE(is_accepted(with(part, std::string(128, 'a'))));
    EXPECT_THAT(refused(with(part, std::string(129, 'a'))), HasSubstr("this has 129"));
  }
}

TEST(Limits, OnlyAProgramMustNotBeEmpty) {
  EXPECT_THAT(refused(with(&lock_name::program, "")), HasSubstr("The program must have 1 to 128"));
  EXPECT_TRUE(is_accepted(with(&lock_name::workflow, "")));
  EXPECT_TRUE(is_accepted(with(&lock_name::operation_class, "")));
}

TEST(Limits, NamedPartsAreTextInNfcWithoutControlCharacters) {
  for (const auto part : {&lock_name::program, &lock_name::workflow, &lock_name::operation_class}) {
    const auto made = normalise(with(part, "e\xcc\x81 /:%"));
    ASSERT_TRUE(std::holds_alternative<lock_name>(made));
    EXPECT_EQ(std::get<lock_name>(made).*part, "\xc3\xa9 /:%");
    EXPECT_THAT(refused(with(part, "a\tb")), HasSubstr("control"));
    EXPECT_THAT(refused(with(part, "a\xc2\x9f")), HasSubstr("control"));
    EXPECT_TRUE(is_accepted(with(part, "a\xc2\xa0")));
    EXPECT_THAT(refused(with(part, "\xff")), HasSubstr("UTF-8"));
  }
}

TEST(Limits, SizesAreThoseOfTheNormalForm) {
  std::string decomposed;
  for (int i = 0; i < 64; ++i) decomposed += "e\xcc\x81";  // 192 bytes typed, 128 in NFC
  EXPECT_TRUE(is_accepted(with(&lock_name::workflow, decomposed)));
  EXPECT_FALSE(is_accepted(with(&lock_name::workflow, decomposed + "a")));
}

TEST(Limits, AnOpaqueTargetHas512BytesAtMost) {
  EXPECT_TRUE(is_accepted(of(target_kind::opaque, std::string(511, 'a'))));
  EXPECT_TRUE(is_accepted(of(target_kind::opaque, std::string(512, 'a'))));
  EXPECT_THAT(refused(of(target_kind::opaque, std::string(513, 'a'))), HasSubstr("512"));
}

TEST(Limits, AHostHas253BytesAtMostWithoutItsLastDot) {
  std::string host;
  for (int i = 0; i < 3; ++i) host += std::string(63, 'a') + ".";
  EXPECT_TRUE(is_accepted(of(target_kind::host, host + std::string(60, 'a'))));
  EXPECT_TRUE(is_accepted(of(target_kind::host, host + std::string(61, 'a'))));
  EXPECT_TRUE(is_accepted(of(target_kind::host, host + std::string(61, 'a') + ".")));
  EXPECT_THAT(refused(of(target_kind::host, host + std::string(62, 'a'))), HasSubstr("253"));
}

TEST(Limits, AUrlHas2048BytesAtMostOnceItIsNormalised) {
  const std::string head = "http://a/";
  EXPECT_TRUE(is_accepted(of(target_kind::url, head + std::string(2047 - head.size(), 'x'))));
  EXPECT_TRUE(is_accepted(of(target_kind::url, head + std::string(2048 - head.size(), 'x'))));
  EXPECT_THAT(refused(of(target_kind::url, head + std::string(2049 - head.size(), 'x'))),
              HasSubstr("2048"));
  std::string escaped = head;
  for (int i = 0; i < 2000; ++i) escaped += "%7E";
  EXPECT_TRUE(is_accepted(of(target_kind::url, escaped)));
}

TEST(Limits, NothingIsReadThatWasTypedWithMoreThan8192Bytes) {
  const std::string head = "http://a/#";
  EXPECT_TRUE(is_accepted(of(target_kind::url, head + std::string(8191 - head.size(), 'x'))));
  EXPECT_TRUE(is_accepted(of(target_kind::url, head + std::string(8192 - head.size(), 'x'))));
  EXPECT_THAT(refused(of(target_kind::url, head + std::string(8193 - head.size(), 'x'))),
              HasSubstr("8192"));
}

TEST(Limits, AKindThatIsNoneIsRefused) {
  EXPECT_THAT(refused(of(static_cast<target_kind>(0), "a")), HasSubstr("kind"));
  EXPECT_THAT(refused(of(static_cast<target_kind>(6), "a")), HasSubstr("kind"));
}

}  // namespace
}  // namespace leasehold::keys
