// `leasehold worker` is stopped for longer than its lease: its authority ends without it, and when
// it wakes it ends its work; what it then reports is evidence and nothing more.
#include <signal.h>

#include <fstream>

#include "false_clocks.hpp"
#include "live_server.hpp"

namespace leasehold::e2e {
namespace {

class StoppedWorker : public testing::Test {
 protected:
  StoppedWorker() { std::ofstream(token_) << server.token("w1"); }

  /// A worker that runs `script`, with the job begun.
  std::unique_ptr<program_run> work_with(const std::string& script) {
    std::filesystem::permissions(token_, std::filesystem::perms::owner_read);
    auto run = std::make_unique<program_run>(
        LEASEHOLD,
        std::vector<std::string>{"--url", server.url(), "--token-file", token_.string(), "worker",
                                 "--queue", "q", "--", "sh", "-c", script},
        kept_.path() / "said", clocks.variables());
    server.submit("job", {{"lease_duration_ms", 60'000}, {"on_expiry", "fail"}});
    EXPECT_TRUE(server.reaches("job", "active"));
    EXPECT_TRUE(eventually([&] { return child() > 0; })) << content_of(kept_.path() / "said");
    return run;
  }

  /// Stops the worker until its lease is over.
  void oversleep(const program_run& worker) {
    worker.stand_still();
    clocks.pass(std::chrono::minutes{2});
    EXPECT_TRUE(server.reaches("job", "failed"));
  }

  /// What the script wrote: whom to look for.
  [[nodiscard]] pid_t child() const {
    pid_t found = 0;
    std::ifstream(file("pid")) >> found;
    return found;
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return (kept_.path() / name).string();
  }

  /// The result of the worker came after the expiry and changed nothing but the evidence.
  void expect_late_result() {
    EXPECT_TRUE(eventually([&] {
      const auto rows = server.evidence("job");
      return std::ranges::any_of(rows, [](const auto& row) { return row.at("event") == "stop"; });
    }));
    const auto rows = server.evidence("job");
    expect_columns(last_row(rows, "result"), {{"decision", "rejected"}, {"generation", 1}});
    expect_columns(last_row(rows, "stop"), {{"reason", "holder_reported_stop"}, {"unproven", 0}});
    expect_columns(server.job("job"),
                   {{"state", "failed"}, {"terminal_result", "none"}, {"generation", 1}});
    expect_replayable(server, "job");
    server.kill();
    expect_proven(server);
  }

  false_clocks clocks;  // of both programs
  live_server server{1, {}, clocks.variables()};
  tests::temporary_directory kept_;
  std::filesystem::path token_ = kept_.path() / "token";
};

TEST_F(StoppedWorker, EndsItsChildWhenItWakesAndItsReportIsLate) {
  const auto worker = work_with("echo $$ >" + file("pid") + "; exec sleep 600");
  oversleep(*worker);
  EXPECT_EQ(::kill(child(), 0), 0) << "nobody could end it meanwhile";
  worker->go_on();
  EXPECT_TRUE(eventually([&] { return ::kill(child(), 0) != 0; }));
  expect_late_result();
}

TEST_F(StoppedWorker, ReportsASuccessThatCountsForNothing) {
  const auto worker = work_with("echo $$ >" + file("pid") + "; while [ ! -e " + file("go") +
                                " ]; do sleep 0.02; done; echo done");
  oversleep(*worker);
  std::ofstream(file("go")) << "go";
  // The child is done: it is a zombie until the worker looks.
  EXPECT_TRUE(eventually([&] {
    return content_of("/proc/" + std::to_string(child()) + "/stat").find(") Z ") !=
           std::string::npos;
  }));
  worker->go_on();
  expect_late_result();
}

}  // namespace
}  // namespace leasehold::e2e
