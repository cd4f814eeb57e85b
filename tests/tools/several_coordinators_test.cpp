// Clients that know several addresses of one store: whom they ask, in which order, and what they
// never send twice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "leasehold/client/worker.hpp"
#include "support/eventually.hpp"
#include "tests/tools/canned_server.hpp"
#include "tools/api.hpp"
#include "tools/http_client.hpp"

namespace leasehold::tests {
namespace {

using testing::HasSubstr;
using tools::client_options;
using tools::command_line;
using tools::exit_code;
using tools::http_answer;
using tools::http_call;
using tools::http_client;

std::string answer(int status, const std::string& body, const std::string& headers = {}) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                     headers, body);
}
std::string refusal(const std::string& reason, const std::string& active = {}) {
  return answer(503, fmt::format(R"({{"reason":"{}","detail":"because"}})", reason),
                active.empty() ? "" : "Leasehold-Active: " + active + "\r\n");
}
const std::string good = answer(200, R"({"good":1})");

/// Where nobody listens.
constexpr auto nowhere = "http://127.0.0.1:1";

std::string host_of(const canned_server& server) { return server.url().substr(7); }

client_options options_of(const std::string& urls) {
  auto all = tools::parse_endpoints(urls);
  client_options out;
  out.where = all.at(0);
  out.others.assign(all.begin() + 1, all.end());
  out.answer_timeout = std::chrono::seconds(5);
  return out;
}

int status_of(const std::variant<http_answer, tools::transport_failure>& came) {
  const auto* said = std::get_if<http_answer>(&came);
  return said == nullptr ? 0 : said->status;
}

http_call write(bool may_repeat) {
  return {.method = "POST", .target = "/x", .body = "{}", .may_repeat = may_repeat, .on_line = {}};
}

TEST(several_coordinators, AreReadFromAListWithCommas) {
  const auto all = tools::parse_endpoints("http://a:1,https://b");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0], (tools::endpoint{false, "a", "1"}));
  EXPECT_EQ(all[1], (tools::endpoint{true, "b", "443"}));
  std::string many = "http://a:1";
  for (std::size_t i = 1; i < tools::most_endpoints; ++i) many += ",http://a:1";
  EXPECT_EQ(tools::parse_endpoints(many).size(), tools::most_endpoints);
  for (const auto& bad : {std::string(), std::string("http://a,"), std::string(",http://a"),
                          std::string("http://a, http://b"), many + ",http://a:1"}) {
    EXPECT_TRUE(tools::parse_endpoints(bad).empty()) << bad;
  }
}

TEST(several_coordinators, OneThatDoesNotListenIsPassedOver) {
  canned_server server({good, good});
  http_client client(options_of(std::string(nowhere) + "," + server.url()));
  EXPECT_EQ(status_of(client.call(write(false))), 200) << "nothing had been sent";
  EXPECT_EQ(status_of(client.call(write(false))), 200) << "and it stays with the one that serves";
}

TEST(several_coordinators, AStandbyIsPassedOverAlsoByWhatMustNotBeRepeated) {
  for (const char* reason : {"standby", "not_ready", "draining"}) {
    canned_server standby({refusal(reason)});
    canned_server active({good});
    http_client client(options_of(standby.url() + "," + active.url()));
    EXPECT_EQ(status_of(client.call(write(false))), 200) << reason;
  }
}

TEST(several_coordinators, OtherRefusalsStandWhereTheyWereGiven) {
  for (const char* reason : {"store_unavailable", "rate_limited"}) {
    canned_server first({refusal(reason)});
    canned_server second({good});
    http_client client(options_of(first.url() + "," + second.url()));
    EXPECT_EQ(status_of(client.call(write(true))), 503) << reason;
    EXPECT_TRUE(second.requests().empty());
  }
}

TEST(several_coordinators, TheOneThatAStandbyNamesIsAskedNext) {
  canned_server active({good});
  canned_server bystander({good});
  canned_server standby({refusal("standby", host_of(active))});
  http_client client(options_of(standby.url() + "," + bystander.url() + "," + active.url()));
  EXPECT_EQ(status_of(client.call({.target = "/x"})), 200);
  EXPECT_EQ(active.requests().size(), 1U);
  EXPECT_TRUE(bystander.requests().empty());
}

TEST(several_coordinators, AnAddressThatWasNotInTheListIsAskedToo) {
  canned_server active({good});
  canned_server standby({refusal("standby", host_of(active))});
  http_client client(options_of(standby.url()));
  EXPECT_EQ(status_of(client.call({.target = "/x"})), 200);
}

TEST(several_coordinators, ANameThatLeadsNowhereEndsInWhatTheStandbySaid) {
  canned_server standby({refusal("standby", "127.0.0.1:1")});
  http_client client(options_of(standby.url()));
  EXPECT_EQ(status_of(client.call({.target = "/x"})), 503);
}

TEST(several_coordinators, NobodyIsAskedTwiceInOneCall) {
  canned_server a({refusal("standby"), refusal("standby")});
  canned_server b({refusal("standby"), refusal("standby")});
  http_client client(options_of(a.url() + "," + b.url()));
  EXPECT_EQ(status_of(client.call({.target = "/x"})), 503);
  EXPECT_EQ(a.requests().size(), 1U);
  EXPECT_EQ(b.requests().size(), 1U);
}

TEST(several_coordinators, WhatMayHaveBeenDoneIsRepeatedOnlyWhereThatIsTheSame) {
  for (const bool may_repeat : {false, true}) {
    for (const auto& lost : {std::string("CLOSE"), refusal("unknown_outcome")}) {
      canned_server first({lost});
      canned_server second({good});
      http_client client(options_of(first.url() + "," + second.url()));
      const auto status = status_of(client.call(write(may_repeat)));
      EXPECT_EQ(status == 200, may_repeat) << lost;
      EXPECT_EQ(second.requests().size(), may_repeat ? 1U : 0U) << lost;
    }
  }
}

TEST(several_coordinators, AReadWhoseLinesHaveBegunIsNotBegunAnew) {
  // More than is read at once, and less than was promised.
  const std::string much(70'000, 'x');
  canned_server first({"HTTP/1.1 200 OK\r\nContent-Length: 80000\r\n\r\none\n" + much + "CLOSE"});
  canned_server second({answer(200, "one\ntwo\n")});
  http_client client(options_of(first.url() + "," + second.url()));
  std::vector<std::string> lines;
  http_call what{.target = "/x"};
  what.on_line = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  EXPECT_EQ(status_of(client.call(what)), 0);
  EXPECT_EQ(lines, std::vector<std::string>{"one"});
  EXPECT_TRUE(second.requests().empty());
}

TEST(several_coordinators, OneThatHangsCostsOneCallNotTheNext) {
  // Connections are taken by the kernel, and nobody reads.
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor stopped(io, {boost::asio::ip::address_v4::loopback(), 0});
  canned_server active({good});
  auto options = options_of("http://127.0.0.1:" + std::to_string(stopped.local_endpoint().port()) +
                            "," + active.url());
  options.answer_timeout = std::chrono::milliseconds(100);
  http_client client(options);
  EXPECT_EQ(status_of(client.call(write(true))), 0);
  EXPECT_EQ(status_of(client.call(write(true))), 200);
}

TEST(several_coordinators, ASubcommandWaitsForATakeOver) {
  canned_server a({refusal("standby"), refusal("standby"), refusal("standby")});
  canned_server b({refusal("standby"), refusal("not_ready"), good});
  command_line line;
  line.url = a.url() + "," + b.url();
  const auto code = tools::api::open(line, [](tools::api& c) {
    return c.get("/v1/queues", [](const auto&) { return exit_code::ok; });
  });
  EXPECT_EQ(code, exit_code::ok);
}

TEST(several_coordinators, AListThatCannotBeReadIsSaidToBeSo) {
  command_line line;
  line.url = "http://a:1,b:2";
  testing::internal::CaptureStderr();
  const auto code = tools::api::open(line, [](tools::api&) { return exit_code::ok; });
  EXPECT_EQ(code, exit_code::malformed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("commas"));
}

// ---- a worker

client::worker_options worker_of(std::vector<std::string> urls) {
  client::worker_options out;
  out.urls = std::move(urls);
  out.queues = {{"q", 1, {}}};
  out.on_job = [](client::job) {};
  return out;
}

TEST(several_coordinators, AWorkerGoesWhereAStandbySendsItWithoutTheStandbysWait) {
  const auto unwanted = answer(401, "{}");
  canned_server active({unwanted});
  canned_server bystander({});
  canned_server standby(
      {answer(503, R"({"reason":"standby"})",
              "Retry-After: 60\r\nLeasehold-Active: " + host_of(active) + "\r\n")});
  client::worker worker(worker_of({standby.url(), bystander.url()}));
  ASSERT_FALSE(worker.start());
  EXPECT_TRUE(eventually([&] { return worker.ended(); })) << "nobody refused it for good";
  EXPECT_EQ(active.requests().size(), 1U);
}

TEST(several_coordinators, AWorkerTriesTheNextAddressAtOnce) {
  canned_server second({answer(401, "{}")});
  canned_server first({answer(503, R"({"reason":"standby"})", "Retry-After: 60\r\n")});
  client::worker worker(worker_of({nowhere, first.url(), second.url()}));
  ASSERT_FALSE(worker.start());
  EXPECT_TRUE(eventually([&] { return worker.ended(); }));
}

}  // namespace
}  // namespace leasehold::tests
