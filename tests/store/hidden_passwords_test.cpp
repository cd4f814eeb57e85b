#include "src/store/hidden_passwords.hpp"

#include <gtest/gtest.h>

#include <string>

namespace leasehold::storage {
namespace {

TEST(hidden_passwords, ShownHasNoPasswordHoweverItWasWritten) {
  const struct {
    const char* typed;
    const char* shown;
  } cases[] = {
      {"postgres://u:hunter2@h:5432/d", "postgres://u@h:5432/d"},
      {"postgres://:hunter2@h/d", "postgres://@h/d"},
      {"postgres://u:hunter2@x@h/d", "postgres://u@h/d"},
      {"postgres://u:hun/ter2@h/d", "postgres://u@h/d"},
      {"postgres://u:hun?ter2@h/d", "postgres://u@h/d"},
      {"postgresql://h/d?password=hunter2", "postgresql://h/d"},
      {"postgres://h/d?user=u&pass%77ord=hunter2&port=1", "postgres://h/d?user=u&port=1"},
      {"postgres://h/d?sslpassword=hunter2&sslmode=require", "postgres://h/d?sslmode=require"},
      {"postgres://h/d?user=u@realm", "postgres://h/d?user=u@realm"},
      {"postgres://h:5432/d?user=u@realm", "postgres://h:5432/d?user=u@realm"},
  };
  for (const auto& each : cases) EXPECT_EQ(hide_passwords(each.typed), each.shown) << each.typed;
}

TEST(hidden_passwords, PasswordsAreLeftOutOfLongerTexts) {
  EXPECT_EQ(hide_passwords("no URL: a@b"), "no URL: a@b");
  EXPECT_EQ(hide_passwords("not expected: postgres://u:p w@h/d --x and postgres://v:q@i/e end"),
            "not expected: postgres://u@h/d --x and postgres://v@i/e end");
  EXPECT_EQ(hide_passwords("\"postgresql://h/d?password=p\" is wrong"),
            "\"postgresql://h/d\" is wrong");
}

}  // namespace
}  // namespace leasehold::storage
