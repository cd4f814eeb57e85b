// What a lock's name comes down to over HTTP, and who may ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/keys/normalise.hpp"
#include "support/api_rig.hpp"

namespace leasehold::server {
namespace {

using testing::HasSubstr;
using tests::api_rig;

class http_keys_test : public testing::Test {
 protected:
  http_response ask(const std::string& body, const std::string& who = "client") {
    return rig.ask("POST", "/v1/keys:normalize", who, body);
  }
  /// Status, reason and detail of a refusal.
  std::pair<int, std::string> refusal(const std::string& body, const std::string& who = "client") {
    const auto response = ask(body, who);
    const auto json = api_rig::json(response);
    detail = json.at("detail").as_string();
    return {response.status, std::string(json.at("reason").as_string())};
  }
  static std::pair<int, std::string> is(int status, const char* word) { return {status, word}; }

  api_rig rig;
  std::string detail;
};

TEST_F(http_keys_test, AKeyIsShownWithItsLeaseAndWhatWasTyped) {
  const auto response = ask(
      R"({"program":"scan","target":{"host":"Bücher.Example."},"workflow":"w/1","operation_class":"write"})");
  ASSERT_EQ(response.status, 200) << response.body;
  const std::string key = "t/scan/host:xn--bcher-kva.example/w%2F1/write";
  const boost::json::object expected{
      {"key", key},
      {"lease_id", keys::lock_lease_id(key).value},
      {"tenant", "t"},
      {"program", "scan"},
      {"target",
       {{"kind", "host"}, {"typed", "Bücher.Example."}, {"normalised", "xn--bcher-kva.example"}}},
      {"workflow", "w/1"},
      {"operation_class", "write"}};
  EXPECT_EQ(api_rig::json(response), expected);
}

TEST_F(http_keys_test, WorkflowAndOperationClassMayBeLeftOut) {
  const auto body = api_rig::json(ask(R"({"program":"p","target":{"cidr":"10.1.2.3/8"}})"));
  EXPECT_EQ(body.at("key"), "t/p/cidr:10.0.0.0%2F8//");
}

TEST_F(http_keys_test, TheTenantIsTheCredentialsAndNoFieldOfTheBody) {
  const auto theirs = api_rig::json(ask(R"({"program":"p","target":{"ip":"::1"}})", "stranger"));
  EXPECT_EQ(theirs.at("key"), "u/p/ip:%3A%3A1//");
  EXPECT_EQ(refusal(R"({"program":"p","target":{"ip":"::1"},"tenant":"u"})"),
            is(400, "invalid_frame"));
}

TEST_F(http_keys_test, ATargetThatCannotBeNormalisedIsInvalid) {
  EXPECT_EQ(refusal(R"({"program":"p","target":{"host":"a..b"}})"), is(400, "invalid_target"));
  EXPECT_THAT(detail, HasSubstr("empty label"));
  EXPECT_EQ(refusal(R"({"program":"p","target":{"url":"http://me:pw@a/"}})"),
            is(400, "invalid_target"));
  EXPECT_EQ(refusal(R"({"program":"","target":{"host":"a"}})"), is(400, "invalid_target"));
  EXPECT_EQ(refusal(R"({"program":"p","target":{"opaque":"\u0000"}})"), is(400, "invalid_target"));
}

TEST_F(http_keys_test, ABodyOfAnotherShapeIsNamed) {
  EXPECT_EQ(refusal(R"({"program":"p"})"), is(400, "invalid_frame"));
  EXPECT_THAT(detail, HasSubstr("target must be given"));
  EXPECT_EQ(refusal(R"({"target":{"host":"a"}})"), is(400, "invalid_frame"));
  EXPECT_THAT(detail, HasSubstr("program must be given"));
  for (const char* target :
       {"{}", R"({"host":"a","ip":"::1"})", R"({"hots":"a"})", R"({"host":7})", R"("a")", "null"}) {
    EXPECT_EQ(refusal(std::string(R"({"program":"p","target":)") + target + "}"),
              is(400, "invalid_frame"))
        << target;
    EXPECT_THAT(detail, HasSubstr("target")) << target;
  }
  EXPECT_EQ(refusal("{"), is(400, "malformed"));
}

TEST_F(http_keys_test, AProgramThatIsNotGrantedIsForbidden) {
  EXPECT_EQ(ask(R"({"program":"q","target":{"host":"a"}})", "narrow").status, 200);
  EXPECT_EQ(refusal(R"({"program":"p","target":{"host":"a"}})", "narrow"), is(403, "forbidden"));
  EXPECT_EQ(refusal(R"({"program":"*","target":{"host":"a"}})", "narrow"), is(403, "forbidden"));
}

}  // namespace
}  // namespace leasehold::server
