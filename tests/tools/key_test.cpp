// `leasehold key`: one line for a key, one sentence and code 2 for what cannot be one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string>
#include <vector>

#include "tools/subcommands.hpp"

namespace leasehold::tests {
namespace {

using testing::HasSubstr;
using tools::exit_code;

struct outcome {
  exit_code result = exit_code::ok;
  std::string out;
  std::string error;
};

/// Runs `leasehold key` with these words; wrong usage counts as malformed, as in the program.
outcome key(std::vector<std::string> words) {
  CLI::App app;
  tools::command_line line;
  tools::build_program(app, line);
  words.insert(words.begin(), "key");
  std::reverse(words.begin(), words.end());
  outcome end;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(words);
    end.result = line.result;
  } catch (const CLI::ParseError& wrong) {
    app.exit(wrong);
    end.result = exit_code::malformed;
  }
  end.out = testing::internal::GetCapturedStdout();
  end.error = testing::internal::GetCapturedStderr();
  return end;
}

void expect_refused(const std::vector<std::string>& words, const char* part) {
  const auto end = key(words);
  EXPECT_EQ(end.result, exit_code::malformed);
  EXPECT_EQ(end.out, "");
  EXPECT_THAT(end.error, HasSubstr(part));
  EXPECT_EQ(std::count(end.error.begin(), end.error.end(), '\n'), 1) << end.error;
}

TEST(Key, PrintsTheCanonicalKeyAloneOnOneLine) {
  const auto end = key({"--program", "p", "--host", "EXAMPLE.com."});
  EXPECT_EQ(end.result, exit_code::ok);
  EXPECT_EQ(end.out, "default/p/host:example.com//\n");
  EXPECT_EQ(end.error, "");
}

TEST(Key, TakesEveryKindOfTarget) {
  EXPECT_EQ(key({"--program", "p", "--ip", "::ffff:192.0.2.1"}).out, "default/p/ip:192.0.2.1//\n");
  EXPECT_EQ(key({"--program", "p", "--cidr", "10.1.1.1/8"}).out, "default/p/cidr:10.0.0.0%2F8//\n");
  EXPECT_EQ(key({"--program", "p", "--url", "HTTP://a:80"}).out,
            "default/p/url:http%3A%2F%2Fa%2F//\n");
  EXPECT_EQ(key({"--program", "p", "--opaque", "a b"}).out, "default/p/opaque:a%20b//\n");
}

TEST(Key, CarriesTenantWorkflowAndOperationClass) {
  EXPECT_EQ(key({"--program", "p", "--workflow", "w/1", "--operation-class", "o", "--host", "a",
                 "--tenant", "acme"})
                .out,
            "acme/p/host:a/w%2F1/o\n");
  EXPECT_EQ(key({"--program", "p", "--workflow", "", "--host", "a"}).out, "default/p/host:a//\n");
}

TEST(Key, AsJsonShowsWhatWasTypedBesideWhatIsLocked) {
  const auto end = key({"--json", "--program", "p", "--host", "BÜCHER.example"});
  const auto shown = boost::json::parse(end.out).as_object();
  EXPECT_EQ(shown.at("key"), "default/p/host:xn--bcher-kva.example//");
  EXPECT_EQ(shown.at("lease_id").as_string().size(), 66U);
  EXPECT_EQ(shown.at("target"), (boost::json::object{{"kind", "host"},
                                                     {"typed", "BÜCHER.example"},
                                                     {"normalised", "xn--bcher-kva.example"}}));
}

TEST(Key, WhatIsRefusedGetsOneSentenceAndNoKey) {
  expect_refused({"--program", "p", "--host", "a..b"}, "empty label");
  expect_refused({"--program", "p", "--host", ""}, "empty");
  expect_refused({"--program", "", "--host", "a"}, "program");
  expect_refused({"--program", "p", "--url", "http://me:pw@a/"}, "user");
  expect_refused({"--program", "p", "--ip", "010.0.0.1"}, "leading zeros");
  expect_refused({"--program", "p", "--host", "a", "--tenant", "a/b"}, "--tenant");
}

TEST(Key, NeedsExactlyOneTargetAndAProgram) {
  expect_refused({"--program", "p"}, "exactly one of --host");
  expect_refused({"--program", "p", "--host", "a", "--ip", "::1"}, "exactly one of --host");
  EXPECT_EQ(key({"--host", "a"}).result, exit_code::malformed);
}

TEST(Key, AUrlOfTheProgramIsNoTarget) {
  CLI::App app;
  tools::command_line line;
  tools::build_program(app, line);
  testing::internal::CaptureStdout();
  app.parse("--url http://coordinator:1 key --program p --url http://target/");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "default/p/url:http%3A%2F%2Ftarget%2F//\n");
  EXPECT_EQ(line.url, "http://coordinator:1");
}

}  // namespace
}  // namespace leasehold::tests
