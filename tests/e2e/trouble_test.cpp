// What the machine denies: room in a file, descriptors. The server says so and goes on, or does not
// begin.
#include <algorithm>

#include "stream_peer.hpp"

namespace leasehold::e2e {
namespace {

using protocol::event_kind;
using protocol::reason;

class trouble : public on_threads {};
LEASEHOLD_ON_THREADS(trouble);

/// The last line of a log, which must be its only one.
json::object only_line(const std::string& log) {
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  json::error_code no_json;
  auto line = json::parse(log, no_json);
  EXPECT_TRUE(!no_json && line.is_object()) << log;
  return line.is_object() ? line.get_object() : json::object{};
}

/// Starts leaseholdd with so many descriptors; it must not get far. Its exit code and output.
program_end start_with_descriptors(int count, const std::vector<std::string>& more) {
  const tests::temporary_directory kept;
  std::vector<std::string> arguments{"-c",
                                     "ulimit -n " + std::to_string(count) + R"( && exec "$0" "$@")",
                                     LEASEHOLDD,
                                     "--data",
                                     (kept.path() / "data").string(),
                                     "--listen",
                                     "127.0.0.1:0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  program_run run("/bin/sh", arguments, kept.path() / "log");
  const auto code = run.wait();
  EXPECT_FALSE(std::filesystem::exists(kept.path() / "data"));
  return {code.value_or(-1), content_of(kept.path() / "log")};
}

TEST(few_descriptors, EndTheStartWithOneSentenceInTheFormOfTheLog) {
  const auto ended = start_with_descriptors(319, {});
  EXPECT_EQ(ended.exit_code, 1);
  const auto line = only_line(ended.output);
  expect_columns(line, {{"level", "error"}, {"event", "not started"}});
  const std::string why(line.at("why").as_string());
  EXPECT_NE(why.find("open files is 319; raise it to 320"), std::string::npos) << why;
}

TEST(few_descriptors, AreToldToPeopleInPlainWords) {
  const auto ended = start_with_descriptors(32, {"--log-format", "human"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_TRUE(ended.output.starts_with("leaseholdd: The limit of open files is 32;"))
      << ended.output;
  EXPECT_EQ(std::ranges::count(ended.output, '\n'), 1) << ended.output;
}

TEST_P(trouble, AFileThatMayNotGrowRefusesWritesUntilItMay) {
  live_server server(GetParam());
  stream_peer worker(server, "w1");
  worker.hello();
  const json::object large{
      {"queue", "idle"}, {"job_id", "during"}, {"payload", std::string(60'000, 'x')}};
  // Room for the log, and none for the job.
  server.limit(RLIMIT_FSIZE, server.log().size() + 8192);
  const auto refused = server.post("/v1/jobs", large);
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_EQ(refused.body.at("reason"), "store_unavailable");
  EXPECT_TRUE(server.has_logged("\"event\":\"the store takes no writes; nothing is granted\""));
  EXPECT_EQ(server.get("/healthz", "").status, 200);
  EXPECT_EQ(server.job("during").at("status"), 404);
  EXPECT_TRUE(server.runs());

  server.limit(RLIMIT_FSIZE, RLIM_INFINITY);
  EXPECT_TRUE(server.has_logged("\"event\":\"the store takes writes again\""));
  EXPECT_TRUE(eventually([&] { return server.get("/readyz", "").status == 200; }));
  EXPECT_EQ(server.post("/v1/jobs", large).status, 201);
  // Neither was a session lost.
  EXPECT_EQ(worker.tell(worker.frame(event_kind::renew, "none", 1, 1)).reason,
            reason::unknown_lease);
  expect_proven(server);
}

}  // namespace
}  // namespace leasehold::e2e
