// How answers of a coordinator become output and exit codes.
#include "tools/api.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/canned_server.hpp"
#include "tools/evidence_pages.hpp"

namespace leasehold::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tools::api;
using tools::command_line;
using tools::exit_code;

std::string answer(int status, const std::string& body, const std::string& headers = {}) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(),
                     headers, body);
}

std::string problem(int status, const std::string& reason) {
  return answer(status, fmt::format(R"({{"reason":"{}","detail":"because"}})", reason),
                "Content-Type: application/problem+json\r\n");
}

/// Makes one GET to a server that gives these answers.
struct asked {
  exit_code code;
  std::string error;
  std::vector<std::string> requests;
};

asked get_from(std::vector<std::string> answers) {
  canned_server server(std::move(answers));
  command_line line;
  line.url = server.url();
  testing::internal::CaptureStderr();
  const auto code = api::open(
      line, [](api& c) { return c.get("/v1/queues", [](const auto&) { return exit_code::ok; }); });
  return {code, testing::internal::GetCapturedStderr(), server.requests()};
}

TEST(Api, RefusalsBecomeExitCodesByTheirStatus) {
  EXPECT_EQ(get_from({problem(401, "unauthenticated")}).code, exit_code::forbidden);
  EXPECT_EQ(get_from({problem(403, "forbidden")}).code, exit_code::forbidden);
  EXPECT_EQ(get_from({problem(404, "unknown_lease")}).code, exit_code::refused);
  EXPECT_EQ(get_from({problem(409, "already_held")}).code, exit_code::refused);
  EXPECT_EQ(get_from({problem(503, "not_ready")}).code, exit_code::unreachable);
}

TEST(Api, ARefusalIsToldByReasonAndDetail) {
  const auto end = get_from({problem(410, "lease_settled")});
  EXPECT_EQ(end.error, "leasehold: lease_settled: because\n");
}

TEST(Api, WhatARefusalSaysCannotSteerATerminal) {
  const auto end = get_from({answer(404, "{\"reason\":\"x\",\"detail\":\"a\\u001b[2Jb\"}")});
  EXPECT_THAT(end.error, HasSubstr("a\\u001b[2Jb"));
}

TEST(Api, AnAnswerThatIsNoJsonIsNoCoordinator) {
  const auto end = get_from({answer(200, "<html>")});
  EXPECT_EQ(end.code, exit_code::unreachable);
  EXPECT_THAT(end.error, HasSubstr("JSON"));
}

TEST(Api, AConnectionThatEndsBeforeTheAnswerIsUnreachable) {
  EXPECT_EQ(get_from({"CLOSE"}).code, exit_code::unreachable);
  EXPECT_EQ(get_from({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}CLOSE"}).code,
            exit_code::unreachable);
}

TEST(Api, AConnectionThatWasClosedWhileIdleIsOpenedAgain) {
  canned_server server({answer(200, "{}") + "CLOSE", answer(200, R"({"second":1})")});
  command_line line;
  line.url = server.url();
  bool second = false;
  const auto code = api::open(line, [&](api& c) {
    const auto first = c.get("/v1/queues", [](const auto&) { return exit_code::ok; });
    EXPECT_EQ(first, exit_code::ok);
    return c.get("/v1/queues", [&](const auto& body) {
      second = body.contains("second");
      return exit_code::ok;
    });
  });
  EXPECT_EQ(code, exit_code::ok);
  EXPECT_TRUE(second);
}

TEST(Api, LinesComeOneByOneHoweverTheyAreCut) {
  canned_server server(
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
       "4\r\n{\"a\"\r\n6\r\n:1}\n{}\r\n2\r\n\n{\r\n1\r\n}\r\n0\r\n\r\n"});
  command_line line;
  line.url = server.url();
  std::vector<std::string> lines;
  const auto code = api::open(line, [&](api& c) {
    return c.lines("/v1/jobs/x/evidence", "text/csv", [&](std::string_view text) {
      lines.emplace_back(text);
      return true;
    });
  });
  EXPECT_EQ(code, exit_code::ok);
  EXPECT_THAT(lines, ElementsAre("{\"a\":1}", "{}", "{}"));
}

TEST(Api, APageTellsWhereTheNextBegins) {
  canned_server server({answer(200, "{}\n", "Leasehold-Next-Row: 12\r\n")});
  command_line line;
  line.url = server.url();
  std::int64_t next = 0;
  const auto code = api::open(line, [&](api& c) {
    return c.page(
        "/v1/evidence?from=1", [](std::string_view) { return true; }, next);
  });
  EXPECT_EQ(code, exit_code::ok);
  EXPECT_EQ(next, 12);
}

TEST(EvidencePages, AreReadUpToWhereTheLogEndedAtTheBeginningAndNotBeyond) {
  const std::string first = "{\"row\":1}\n{\"row\":2}\n";
  const std::string second = "{\"row\":3}\n{\"row\":4}\n{\"row\":5}\n";
  canned_server server({answer(200, R"({"row":4})"),
                        answer(200, first, "Leasehold-Next-Row: 3\r\n"),
                        answer(200, second, "Leasehold-Next-Row: 6\r\n")});
  command_line line;
  line.url = server.url();
  std::vector<std::string> rows;
  std::vector<std::int64_t> passed;
  const auto code = api::open(line, [&](api& c) {
    std::int64_t newest = 0;
    EXPECT_EQ(tools::ask_newest_row(c, newest), exit_code::ok);
    return tools::each_row(
        c, {1, newest},
        [&](std::string_view text) {
          rows.emplace_back(text);
          return true;
        },
        [&](std::int64_t row) { passed.push_back(row); });
  });
  EXPECT_EQ(code, exit_code::ok);
  EXPECT_THAT(rows, ElementsAre("{\"row\":1}", "{\"row\":2}", "{\"row\":3}", "{\"row\":4}"));
  EXPECT_THAT(passed, ElementsAre(2, 4));
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST(EvidencePages, AreAskedForUntilTheirReaderHasEnough) {
  // A second page would not be answered.
  canned_server server({answer(200, "{\"row\":1}\n{\"row\":2}\n", "Leasehold-Next-Row: 3\r\n")});
  command_line line;
  line.url = server.url();
  int rows = 0;
  const auto code = api::open(line, [&](api& c) {
    return tools::each_row(c, {1, 9}, [&](std::string_view) { return ++rows < 2; });
  });
  EXPECT_EQ(code, exit_code::ok);
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(EvidencePages, ALineThatIsNoRowIsNotTakenForOne) {
  canned_server server({answer(200, "{\"row\":1}\n{\"ro", "Leasehold-Next-Row: 3\r\n")});
  command_line line;
  line.url = server.url();
  testing::internal::CaptureStderr();
  const auto code = api::open(line, [&](api& c) {
    return tools::each_row(c, {1, 2}, [](std::string_view) { return true; });
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no row"));
  EXPECT_EQ(code, exit_code::broken);
}

TEST(Query, EncodesValuesAndLeavesEmptyOnesOut) {
  EXPECT_EQ(tools::query("/v1/jobs").add("queue", "").add("label", "a=b c").add("x", "1").target(),
            "/v1/jobs?label=a%3Db%20c&x=1");
  EXPECT_EQ(tools::job_path("a:b/c", ":cancel"), "/v1/jobs/a%3Ab%2Fc:cancel");
}

TEST(RequestIds, AreNeverTheSame) {
  EXPECT_NE(tools::fresh_request_id(), tools::fresh_request_id());
  EXPECT_EQ(tools::fresh_request_id().size(), 32U);
}

}  // namespace
}  // namespace leasehold::tests
