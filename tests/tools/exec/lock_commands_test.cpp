// `leasehold locks` and `leasehold lock`: what they ask for, and what they show.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/canned_server.hpp"
#include "tools/lock_text.hpp"
#include "tools/output.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tools::exit_code;

constexpr auto key = "acme/p/host:example.com/scan/write";
constexpr auto lease = "k:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

std::string answer(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

std::string lock(int token) {
  return fmt::format(
      R"({{"key":"{}","lease_id":"{}","program":"p","target":{{"kind":"host","typed":"EXAMPLE.com",)"
      R"("normalised":"example.com"}},"holder":"ann/one","fencing_token":{},"generation":{},)"
      R"("state":"active","acquired_at":1700000000000,"expires_at":1700000015000,"ttl_ms":15000,)"
      R"("metadata":{{"build":"7"}},"tie":null,"frozen":false,"row":12}})",
      key, lease, token, token);
}

struct told {
  exit_code code = exit_code::ok;
  std::string output;
  std::string error;
  std::vector<std::string> requests;
};

told run(std::vector<std::string> answers, std::vector<std::string> words) {
  canned_server server(std::move(answers));
  CLI::App app;
  tools::command_line line;
  tools::build_program(app, line);
  words.insert(words.begin(), {"--url", server.url()});
  std::reverse(words.begin(), words.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  told out;
  try {
    app.parse(words);
    out.code = line.result;
  } catch (const CLI::ParseError& wrong) {
    out.code = exit_code::malformed;
    out.error = wrong.what();
  }
  tools::flush_output();
  out.output = testing::internal::GetCapturedStdout();
  out.error += testing::internal::GetCapturedStderr();
  out.requests = server.requests();
  return out;
}

TEST(Locks, AreListedPageAfterPage) {
  const auto end = run({answer(200, R"({"locks":[)" + lock(1) + R"(],"next_page_token":"t 1"})"),
                        answer(200, R"({"locks":[)" + lock(2) + R"(],"next_page_token":""})")},
                       {"locks", "--owner", "ann", "--target", "host:example.com", "--program", "p",
                        "--state", "active"});
  EXPECT_EQ(end.code, exit_code::ok);
  EXPECT_THAT(end.output, AllOf(HasSubstr("KEY"), HasSubstr(key), HasSubstr("ann/one")));
  ASSERT_EQ(end.requests.size(), 2U);
  EXPECT_THAT(
      end.requests[0],
      HasSubstr("GET /v1/locks?owner=ann&target=host%3Aexample.com&program=p&state=active"));
  EXPECT_THAT(end.requests[1], HasSubstr("&page_token=t%201"));
}

TEST(Locks, AreOneJsonDocumentALine) {
  const auto end =
      run({answer(200, R"({"locks":[)" + lock(1) + "," + lock(2) + "]}")}, {"locks", "--json"});
  EXPECT_EQ(std::count(end.output.begin(), end.output.end(), '\n'), 2);
  EXPECT_THAT(end.output, HasSubstr(R"("fencing_token":2)"));
}

TEST(Locks, TheListSaysWhenThereAreMore) {
  const auto end = run({answer(200, R"({"locks":[)" + lock(1) + R"(],"next_page_token":"t"})")},
                       {"locks", "--limit", "1"});
  EXPECT_THAT(end.error, HasSubstr("more locks"));
}

TEST(Lock, IsShownByItsKeyAsOneSegment) {
  const auto end = run({answer(200, lock(7))}, {"lock", "show", key});
  EXPECT_EQ(end.code, exit_code::ok);
  EXPECT_THAT(end.requests[0],
              HasSubstr("GET /v1/locks/acme%2Fp%2Fhost%3Aexample.com%2Fscan%2Fwrite "));
  EXPECT_THAT(end.output, AllOf(HasSubstr("host:example.com (typed EXAMPLE.com)"),
                                HasSubstr("15000 ms"), HasSubstr("7"), Not(HasSubstr("null"))));
}

TEST(Lock, IsShownByItsLeaseId) {
  const auto end = run({answer(200, lock(7))}, {"lock", "show", lease, "--json"});
  EXPECT_THAT(end.requests[0], HasSubstr(fmt::format("GET /v1/locks/k%3A{} ", lease + 2)));
  EXPECT_THAT(end.output, HasSubstr(R"("fencing_token":7)"));
}

TEST(Lock, AWordThatIsNoKeyIsNotAskedFor) {
  for (const auto* wrong : {"example.com", "acme/p/host:EX%41MPLE//", "k:0011", ""}) {
    const auto end = run({}, {"lock", "show", wrong});
    EXPECT_EQ(end.code, exit_code::malformed) << wrong;
    EXPECT_THAT(end.requests, IsEmpty());
  }
}

TEST(Lock, ARevokeNamesTheLockTheForceAndTheReason) {
  const auto done = answer(
      200,
      R"({"decision":"applied","reason":"revoked","lock":{"state":"revoked","generation":7}})");
  auto end = run({done}, {"lock", "revoke", key, "--reason", "host is gone", "--request-id", "r1"});
  EXPECT_EQ(end.code, exit_code::ok);
  EXPECT_THAT(end.requests[0], HasSubstr("POST /v1/locks:revoke "));
  EXPECT_THAT(
      end.requests[0],
      HasSubstr(fmt::format(
          R"({{"key":"{}","force":false,"detail":"host is gone","request_id":"r1"}})", key)));
  EXPECT_EQ(end.output, fmt::format("{}: applied revoked; now revoked\n", key));
  end = run({done}, {"lock", "revoke", lease, "--force", "--reason", "it hangs"});
  EXPECT_THAT(
      end.requests[0],
      HasSubstr(fmt::format(R"({{"lease_id":"{}","force":true,"detail":"it hangs",)", lease)));
}

TEST(Lock, ARevokeWithoutAReasonIsNotAskedFor) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"lock", "revoke", key},
                                                {"lock", "revoke", key, "--force"},
                                                {"lock", "revoke", key, "--reason", ""}}) {
    const auto end = run({}, words);
    EXPECT_EQ(end.code, exit_code::malformed);
    EXPECT_THAT(end.error, HasSubstr("--reason"));
    EXPECT_THAT(end.requests, IsEmpty());
  }
}

TEST(Lock, ARefusalKeepsTheCodesOfTheOtherSubcommands) {
  const auto refused = [](int status) {
    return run({answer(status, R"({"reason":"x"})")}, {"lock", "revoke", key, "--reason", "x"})
        .code;
  };
  EXPECT_EQ(refused(404), exit_code::refused);
  EXPECT_EQ(refused(403), exit_code::forbidden);
  EXPECT_EQ(refused(503), exit_code::unreachable);
}

TEST(Lock, ItsEvidenceIsAMatrixOrJsonLines) {
  const std::string rows = "{\"row\":1,\"event\":\"acquire\",\"reason\":\"acquired\"}\n";
  auto end = run({answer(200, rows)}, {"lock", "evidence", key});
  EXPECT_THAT(end.requests[0], HasSubstr("%2Fwrite/evidence "));
  EXPECT_THAT(end.output, AllOf(HasSubstr("DECISION"), HasSubstr("acquired")));
  end = run({answer(200, rows)}, {"lock", "evidence", key, "--json"});
  EXPECT_EQ(end.output, rows);
  end = run({answer(200, "row,event\n1,acquire\n")}, {"lock", "evidence", key, "--csv"});
  EXPECT_THAT(end.requests[0], HasSubstr("text/csv"));
}

TEST(Lock, HoldersOfOneMachineAreToldApartInItsEvidence) {
  const auto row = [](const char* holder) {
    return fmt::format("{{\"row\":1,\"holder_identity\":\"{}\"}}\n", holder);
  };
  const auto shown = [&](const char* holder) {
    return run({answer(200, row(holder))}, {"lock", "evidence", key}).output;
  };
  EXPECT_THAT(shown("ann/0123456789abcdef:"), HasSubstr("ann/0123456789abcdef:"));
  EXPECT_THAT(shown("ann/build-host-1.example:12345"), HasSubstr("ann/build-..ple:12345"));
  EXPECT_THAT(shown("ann/build-host-1.example:12346"), HasSubstr("ann/build-..ple:12346"));
}

}  // namespace
}  // namespace leasehold::tests
