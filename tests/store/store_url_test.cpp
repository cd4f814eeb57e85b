#include "src/store/store_url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::tests {
namespace {

using storage::parse_store_url;
using ::testing::HasSubstr;
using ::testing::Not;

std::string shown_of(std::string_view text) {
  const auto parsed = parse_store_url(text);
  if (const auto* bad = std::get_if<storage::bad_store_url>(&parsed)) return bad->sentence;
  return storage::shown(std::get<storage::store_place>(parsed));
}

std::string refusal_of(std::string_view text) {
  const auto parsed = parse_store_url(text);
  const auto* bad = std::get_if<storage::bad_store_url>(&parsed);
  EXPECT_NE(bad, nullptr) << text;
  return bad != nullptr ? bad->sentence : "";
}

TEST(StoreUrl, OfSqliteIsADirectory) {
  const auto parsed = std::get<storage::store_place>(parse_store_url("sqlite:/var/lib/leasehold"));
  EXPECT_EQ(parsed, storage::store_place(storage::sqlite_place{"/var/lib/leasehold"}));
  EXPECT_EQ(storage::shown(parsed), "sqlite:/var/lib/leasehold");
  EXPECT_EQ(shown_of("sqlite:data"), "sqlite:data");
}

TEST(StoreUrl, OfPostgresIsWhateverLibpqReads) {
  EXPECT_EQ(shown_of("postgresql://me@db.example:5433/jobs"),
            "postgresql://me@db.example:5433/jobs");
  EXPECT_EQ(shown_of("postgres://a,b:6000/jobs?target_session_attrs=read-write"),
            "postgresql://a,b:,6000/jobs");
  EXPECT_EQ(shown_of("postgresql:///jobs?host=/run/postgresql&user=me"),
            "postgresql://me@/jobs?host=/run/postgresql");
}

TEST(StoreUrl, IsShownWithoutItsPasswords) {
  for (const auto* url :
       {"postgresql://me:hunter2@host/jobs", "postgresql://me@host/jobs?password=hunter2",
        "postgresql://me:hunter%32@host/jobs", "postgresql://host/jobs?sslpassword=hunter2"}) {
    EXPECT_THAT(shown_of(url), Not(HasSubstr("hunter"))) << url;
    EXPECT_EQ(storage::without_passwords("password hunter2 is wrong, hunter2", url),
              "password *** is wrong, ***");
  }
}

TEST(StoreUrl, ThatCannotBeReadIsRefusedWithoutRepeatingIt) {
  for (const auto* url :
       {"postgresql://me:hunter2@host/jobs?nonsense=1", "postgresql://me:hunter2%@host/jobs",
        "postgresql://me:hunter2@[::1/jobs", "mysql://me:hunter2@host/jobs", "hunter2", ""}) {
    const auto sentence = refusal_of(url);
    EXPECT_THAT(sentence, Not(HasSubstr("hunter2"))) << url;
    EXPECT_THAT(sentence, HasSubstr("postgresql://")) << url;
  }
}

TEST(StoreUrl, OfSqliteWithoutADirectoryOrWithAHostIsRefused) {
  EXPECT_THAT(refusal_of("sqlite:"), HasSubstr("no directory"));
  EXPECT_THAT(refusal_of("sqlite://host/path"), HasSubstr("host"));
}

/// libpq would take a part of such a password for a host or a port, and it would be shown.
TEST(StoreUrl, WhosePasswordMayReadAsAHostIsRefusedWithoutAnyOfIt) {
  for (const std::string text :
       {"postgres://u:SEC/RET@h/d", "postgres://u:p@ss:SECRET@h/d", "postgresql://u:a@b@h/d"}) {
    const auto read = storage::parse_store_url(text);
    const auto* bad = std::get_if<storage::bad_store_url>(&read);
    ASSERT_TRUE(bad) << text;
    EXPECT_EQ(bad->sentence.find("SEC"), std::string::npos) << bad->sentence;
  }
  for (const std::string text : {"postgres://u:SEC%2FRET%40@h/d", "postgres://u@h/d?host=@abstract",
                                 "postgres:///d?host=/run/postgresql&passfile=/a@b"}) {
    EXPECT_TRUE(std::holds_alternative<storage::store_place>(storage::parse_store_url(text)))
        << text;
  }
}

}  // namespace
}  // namespace leasehold::tests
