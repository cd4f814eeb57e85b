// A job as a child process: what goes in, what comes out, and how it is ended.
#include "tools/job_run.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "tools/client/job_work.hpp"
#include "tools/client/stream_link.hpp"

namespace leasehold::tools {
namespace {

using client::stop_reason;
using protocol::outcome;

/// Remembers what a job reported, and lets a test wait for its progress.
class kept_reports final : public client::job_reports {
 public:
  void progress(const client::grant&, std::string value) override {
    const std::lock_guard hold(lock_);
    progress_.push_back(std::move(value));
    changed_.notify_all();
  }
  void register_process(const client::grant&, const protocol::process_handle& process) override {
    const std::lock_guard hold(lock_);
    process_ = process;
  }
  [[nodiscard]] protocol::process_handle process() {
    const std::lock_guard hold(lock_);
    return process_;
  }
  void finish(const client::grant&, outcome how, std::string detail, bool retryable) override {
    const std::lock_guard hold(lock_);
    ending = how;
    text = std::move(detail);
    again = retryable;
    ++finishes;
  }
  bool wait_for_progress(const std::string& value) {
    std::unique_lock hold(lock_);
    return changed_.wait_for(hold, std::chrono::seconds(20), [&] {
      return std::find(progress_.begin(), progress_.end(), value) != progress_.end();
    });
  }
  std::vector<std::string> progress() {
    const std::lock_guard hold(lock_);
    return progress_;
  }

  outcome ending = outcome::none;
  std::string text;
  bool again = false;
  int finishes = 0;

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::string> progress_;
  protocol::process_handle process_;
};

struct job_run_test : testing::Test {
  static void SetUpTestSuite() {
    signal(SIGPIPE, SIG_IGN);
    child_process::adopt_orphans();
  }

  std::shared_ptr<kept_reports> reports = std::make_shared<kept_reports>();
  client::job_start facts{.what = {protocol::lease_id("J-1"), {7}},
                          .job = protocol::job_id("J-1"),
                          .queue = "q",
                          .payload = "the work",
                          .attempt = 3,
                          .lease_duration = {30000},
                          .cancel_grace = {10000},
                          .last_progress = {},
                          .trace_id = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                          .deadline = client::local_now() + protocol::duration{27000}};
  std::shared_ptr<client::job_work> work;
  live_children children;
  run_options options;

  void prepare(const std::string& script) {
    work = std::make_shared<client::job_work>(facts, reports);
    options.program = "/bin/sh";
    options.arguments = {"sh", "-c", script};
  }
  void run(const std::string& script) {
    prepare(script);
    run_job(client::job(work), options, children);
  }
  /// Runs the script, and once it has told its first progress "up", tells it to stop.
  void run_and_stop(const std::string& script, stop_reason why) {
    prepare(script);
    std::thread runs([&] { run_job(client::job(work), options, children); });
    EXPECT_TRUE(reports->wait_for_progress("up"));
    work->must_stop(why);
    runs.join();
  }
};

TEST_F(job_run_test, ThePayloadGoesInAndTheLastLineComesOut) {
  run("echo first; cat; echo; echo");
  EXPECT_EQ(reports->ending, outcome::success);
  EXPECT_EQ(reports->text, "the work");
  EXPECT_EQ(reports->finishes, 1);
}

TEST_F(job_run_test, APayloadThatNobodyReadsHarmsNothing) {
  facts.payload = std::string(65536, 'x');
  run("exit 0");
  EXPECT_EQ(reports->ending, outcome::success);
  run("wc -c");
  EXPECT_EQ(reports->text, "65536");
}

TEST_F(job_run_test, TheEnvironmentHasTheFactsOfTheJobAndNoCredentials) {
  setenv("LEASEHOLD_TOKEN_FILE", "/secret", 1);
  setenv("LEASEHOLD_URL", "http://somewhere", 1);
  run("echo $LEASEHOLD_JOB_ID $LEASEHOLD_QUEUE $LEASEHOLD_ATTEMPT $LEASEHOLD_GENERATION "
      "$LEASEHOLD_TOKEN $LEASEHOLD_TRACEPARENT ${LEASEHOLD_TOKEN_FILE-none} ${LEASEHOLD_URL-none} "
      "$(( LEASEHOLD_DEADLINE_MS > 20000 && LEASEHOLD_DEADLINE_MS <= 27000 ))");
  unsetenv("LEASEHOLD_TOKEN_FILE");
  unsetenv("LEASEHOLD_URL");
  EXPECT_EQ(reports->text,
            "J-1 q 3 7 7 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 none none 1");
}

TEST_F(job_run_test, TheProcessOfTheCommandIsNamed) {
  run("echo $$");
  const auto named = reports->process();
  EXPECT_TRUE(protocol::is_well_formed(named));
  EXPECT_EQ(std::to_string(named.pid), reports->text);
}

TEST_F(job_run_test, TheExitStatusDecides) {
  run("exit 0");
  EXPECT_EQ(reports->ending, outcome::success);
  run("echo no space; exit 75");
  EXPECT_EQ(reports->ending, outcome::failed);
  EXPECT_TRUE(reports->again);
  EXPECT_EQ(reports->text, "no space");
  run("exit 1");
  EXPECT_EQ(reports->ending, outcome::failed);
  EXPECT_FALSE(reports->again);
  EXPECT_EQ(reports->text, "the command exited with 1");
  options.retry_any = true;
  run("kill -SEGV $$");
  EXPECT_TRUE(reports->again);
  EXPECT_EQ(reports->text, "the command was ended by signal 11");
}

TEST_F(job_run_test, LinesOnDescriptor3BecomeProgress) {
  run("echo 'progress: one' >&3; echo 'not a word' >&3; echo 'progress:two' >&3; printf 'progress: "
      "half' >&3");
  EXPECT_EQ(reports->progress(), (std::vector<std::string>{"one", "two"}));
}

TEST_F(job_run_test, ACommandThatCannotBeStartedFailsAndMayBeTriedAgain) {
  prepare("");
  options.program = "/nonexistent";
  run_job(client::job(work), options, children);
  EXPECT_EQ(reports->ending, outcome::failed);
  EXPECT_TRUE(reports->again);
  EXPECT_NE(reports->text.find("could not be started"), std::string::npos);
}

TEST_F(job_run_test, ACancelIsReportedOnceTheWholeGroupIsGone) {
  const auto file = testing::TempDir() + "job_run_group";
  run_and_stop("sleep 600 & echo $! >" + file + "; echo 'progress: up' >&3; wait",
               stop_reason::cancelled);
  EXPECT_EQ(reports->ending, outcome::cancelled);
  pid_t background = 0;
  std::ifstream(file) >> background;
  ASSERT_GT(background, 0);
  EXPECT_NE(kill(background, 0), 0) << "the command's own child lives on";
}

TEST_F(job_run_test, ACommandThatIgnoresTermIsKilledAfterTheGrace) {
  options.grace = {150};
  run_and_stop("trap '' TERM; echo 'progress: up' >&3; while :; do sleep 0.05; done",
               stop_reason::cancelled);
  EXPECT_EQ(reports->ending, outcome::cancelled);
}

TEST_F(job_run_test, ACommandMayEndItselfOnTerm) {
  run_and_stop(
      "trap 'echo tidied; exit 0' TERM; echo 'progress: up' >&3; while :; do sleep 0.02; done",
      stop_reason::cancelled);
  EXPECT_EQ(reports->ending, outcome::cancelled);
  EXPECT_EQ(reports->text, "tidied");
}

TEST_F(job_run_test, ALostLeaseEndsTheCommandWithinTheMarginAndIsReportedAsAFailure) {
  facts.lease_duration = {1000};
  options.grace = {60000};
  run_and_stop("trap '' TERM; echo 'progress: up' >&3; while :; do sleep 0.05; done",
               stop_reason::lost);
  EXPECT_EQ(reports->ending, outcome::failed);
  EXPECT_TRUE(reports->again);
}

TEST_F(job_run_test, AStoppingWorkerHandsTheJobBack) {
  run_and_stop("echo 'progress: up' >&3; sleep 600", stop_reason::worker_stops);
  EXPECT_EQ(reports->ending, outcome::none);
}

TEST_F(job_run_test, AnImpatientEndKillsWhatLivesAndHandsItBack) {
  prepare("trap '' TERM; echo 'progress: up' >&3; while :; do sleep 0.05; done");
  std::thread runs([&] { run_job(client::job(work), options, children); });
  EXPECT_TRUE(reports->wait_for_progress("up"));
  children.kill_all();
  runs.join();
  EXPECT_EQ(reports->finishes, 1);
  EXPECT_EQ(reports->ending, outcome::none) << "outcome none is what release() reports";
}

TEST_F(job_run_test, AJobThatWasStoppedBeforeItBeganStartsNothing) {
  prepare("echo 'progress: up' >&3");
  work->must_stop(stop_reason::cancelled);
  run_job(client::job(work), options, children);
  EXPECT_TRUE(reports->progress().empty());
  EXPECT_EQ(reports->ending, outcome::cancelled);
}

TEST_F(job_run_test, TheChildHasNoDescriptorsOfOurs) {
  const int leaked = dup(1);  // open and not marked to close
  run("ls /proc/self/fd | sort -n | tr '\\n' ' '");
  close(leaked);
  EXPECT_EQ(reports->text.find("0 1 2 3"), 0U) << reports->text;
  EXPECT_LE(std::count(reports->text.begin(), reports->text.end(), ' '), 5) << reports->text;
}

TEST(line_reader, CutsLinesAndKeepsTheLastWithSomethingInIt) {
  line_reader lines(4);
  EXPECT_EQ(lines.feed("ab\ncdefgh"), std::vector<std::string>{"ab"});
  EXPECT_EQ(lines.last(), "cdef");
  EXPECT_EQ(lines.feed("i\r\n\n"), (std::vector<std::string>{"cdef", ""}));
  EXPECT_EQ(lines.last(), "cdef");
}

}  // namespace
}  // namespace leasehold::tools
