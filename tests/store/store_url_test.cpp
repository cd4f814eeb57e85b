#include "src/store/store_url.hpp"

#include <gtest/gtest.h>

#include <string>

namespace leasehold::storage {
namespace {

store_url good(std::string_view text) {
  auto read = read_store_url(text);
  const auto* fault = std::get_if<store_url_fault>(&read);
  EXPECT_EQ(fault, nullptr) << fault->sentence;
  return fault == nullptr ? std::get<store_url>(read) : store_url{};
}

bool is_refused(std::string_view text) {
  return std::holds_alternative<store_url_fault>(read_store_url(text));
}

TEST(store_url, OfSqliteNamesADataDirectoryOrTheDatabaseInIt) {
  for (const char* same : {"sqlite:/var/l", "sqlite:///var/l", "sqlite:/var/l/leasehold.db"}) {
    EXPECT_EQ(good(same).directory, "/var/l") << same;
    EXPECT_EQ(good(same).what, store_url::kind::sqlite);
  }
  EXPECT_EQ(good("sqlite:leasehold.db").directory, ".");
  EXPECT_EQ(good("sqlite:state").directory, "state");
  EXPECT_EQ(good("sqlite:/a b/100%").directory, "/a b/100%");
}

TEST(store_url, OfPostgresGoesToLibpqAsItWasTyped) {
  for (const char* url : {"postgres://h/d", "postgresql:///d?host=/run/pg&port=5433"}) {
    EXPECT_EQ(good(url).what, store_url::kind::postgres);
    EXPECT_EQ(good(url).connection, url);
    EXPECT_EQ(good(url).shown, url);
  }
}

TEST(store_url, OfAnotherKindIsRefusedWithoutRepeatingIt) {
  for (const char* bad : {"", "sqlite:", "sqlite://", "/var/l", "mysql://u:hunter2@h/d",
                          "postgres:u:hunter2@h", "postgres://h/d\n", "host=h password=hunter2"}) {
    const auto read = read_store_url(bad);
    ASSERT_TRUE(std::holds_alternative<store_url_fault>(read)) << bad;
    const auto& sentence = std::get<store_url_fault>(read).sentence;
    EXPECT_EQ(sentence.find("hunter2"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("sqlite:/"), std::string::npos) << sentence;
  }
  EXPECT_FALSE(is_refused("sqlite:" + std::string(4089, 'a')));
  EXPECT_TRUE(is_refused("sqlite:" + std::string(4090, 'a')));
}

TEST(store_url, ShownHasNoPasswordHoweverItWasWritten) {
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
  for (const auto& each : cases) EXPECT_EQ(good(each.typed).shown, each.shown) << each.typed;
}

TEST(store_url, PasswordsAreLeftOutOfLongerTexts) {
  EXPECT_EQ(without_passwords("no URL: a@b"), "no URL: a@b");
  EXPECT_EQ(without_passwords("not expected: postgres://u:p w@h/d --x and postgres://v:q@i/e end"),
            "not expected: postgres://u@h/d --x and postgres://v@i/e end");
  EXPECT_EQ(without_passwords("\"postgresql://h/d?password=p\" is wrong"),
            "\"postgresql://h/d\" is wrong");
}

}  // namespace
}  // namespace leasehold::storage
