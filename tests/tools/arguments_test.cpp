#include "tools/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/job_text.hpp"

namespace leasehold::tests {
namespace {

using testing::HasSubstr;

TEST(Lengths, TakeAUnitOrPlainSeconds) {
  EXPECT_EQ(tools::read_length_ms("90"), 90'000);
  EXPECT_EQ(tools::read_length_ms("250ms"), 250);
  EXPECT_EQ(tools::read_length_ms("10m"), 600'000);
  EXPECT_EQ(tools::read_length_ms("0"), 0);
}

TEST(Lengths, RefuseWhatIsNone) {
  for (const char* text : {"", "-1", "1.5s", "s", "10 m", "1y", "99999999999999"}) {
    EXPECT_EQ(tools::read_length_ms(text), std::nullopt) << text;
  }
}

TEST(PolicyArguments, KeepNumbersWordsAndLengths) {
  std::string fault;
  const auto policy =
      tools::read_policy({"lease_duration_ms=3s", "max_attempts=2", "on_expiry=fail"}, fault);
  EXPECT_EQ(fault, "");
  EXPECT_EQ(policy, (boost::json::object{
                        {"lease_duration_ms", 3000}, {"max_attempts", 2}, {"on_expiry", "fail"}}));
}

TEST(PolicyArguments, NameTheKeyThatIsWrong) {
  std::string fault;
  tools::read_policy({"lease_time=3"}, fault);
  EXPECT_THAT(fault, HasSubstr("lease_duration_ms"));
  fault.clear();
  tools::read_policy({"on_expiry=perhaps"}, fault);
  EXPECT_THAT(fault, HasSubstr("on_expiry"));
  fault.clear();
  tools::read_policy({"max_attempts=3s"}, fault);
  EXPECT_THAT(fault, HasSubstr("max_attempts"));
}

TEST(LabelArguments, MayHoldASignInTheirValue) {
  std::string fault;
  EXPECT_EQ(tools::read_labels({"a=b=c", "d="}, fault),
            (boost::json::object{{"a", "b=c"}, {"d", ""}}));
  EXPECT_EQ(fault, "");
  tools::read_labels({"=x"}, fault);
  EXPECT_THAT(fault, HasSubstr("KEY=VALUE"));
}

TEST(Instants, AreCoordinatorMillisecondsOrFromNow) {
  EXPECT_EQ(tools::read_instant_ms("1700000000000"), 1'700'000'000'000);
  const auto soon = tools::read_instant_ms("+10m");
  const auto later = tools::read_instant_ms("+20m");
  ASSERT_TRUE(soon && later);
  EXPECT_GE(*later - *soon, 599'000);
  EXPECT_EQ(tools::read_instant_ms("0"), std::nullopt);
  EXPECT_EQ(tools::read_instant_ms("tomorrow"), std::nullopt);
}

TEST(Payloads, TravelAsTextOrWhereThatCannotBeAsBase64) {
  boost::json::object text;
  tools::put_payload(text, "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(text, (boost::json::object{{"payload", "gr\xc3\xbc\xc3\x9f"}}));
  boost::json::object bytes;
  tools::put_payload(bytes, "\xff\x01");
  EXPECT_EQ(bytes, (boost::json::object{{"payload_base64", "/wE="}}));
}

TEST(Payloads, AreShownAsTheyWereGiven) {
  EXPECT_THAT(tools::describe({{"job_id", "j"}, {"payload", "a\nb"}}), HasSubstr("a\\u000ab"));
  EXPECT_THAT(tools::describe({{"job_id", "j"}, {"payload_base64", "/wE="}}),
              HasSubstr("(base64) /wE="));
  const auto long_one =
      tools::describe({{"job_id", "j"}, {"payload", 'x' + std::string(4000, 'y')}});
  EXPECT_LT(long_one.size(), 400U);
  EXPECT_THAT(long_one, HasSubstr("--json shows all"));
}

TEST(Files, OverTheirLimitAreRefusedWithIt) {
  std::string fault;
  EXPECT_EQ(tools::read_file("/dev/zero", 10, fault).size(), 11U);
  EXPECT_THAT(fault, HasSubstr("10 bytes"));
  fault.clear();
  tools::read_file("/nowhere/at/all", 10, fault);
  EXPECT_THAT(fault, HasSubstr("/nowhere/at/all"));
}

}  // namespace
}  // namespace leasehold::tests
