// `leasehold exec` as a program, against a coordinator that can go wrong.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fstream>
#include <memory>
#include <sstream>

#include "e2e/program_run.hpp"
#include "support/fake_lock_server.hpp"
#include "support/temporary_directory.hpp"
#include "tools/exec/boot_clock.hpp"
#include "tools/exec/process_group.hpp"

namespace leasehold::tests {
namespace {

using e2e::eventually;
using e2e::program_run;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

constexpr auto stubborn =
    "trap '' TERM INT; sleep 60 & echo $$ > $D/group; while :; do sleep 60; done";

class exec_test : public testing::Test {
 protected:
  /// exec with these options in front of `sh -c SCRIPT`; $D is a directory of its own.
  program_run& start(std::vector<std::string> options, const std::string& script) {
    std::vector<std::string> words{"--url", server_.url(), "exec", "--program",
                                   "p",     "--opaque",    "x"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string word : {"--", "/bin/sh", "-c", script.c_str()}) words.push_back(word);
    std::vector<std::string> variables{"D=" + kept_.path().string(), "HOME=/nonexistent",
                                       "XDG_DATA_HOME=/nonexistent"};
    variables.insert(variables.end(), more_.begin(), more_.end());
    run_ = std::make_unique<program_run>(LEASEHOLD, words, output_file(), variables);
    return *run_;
  }
  std::optional<int> run(std::vector<std::string> options, const std::string& script) {
    return start(std::move(options), script).wait();
  }
  std::string written(const std::string& name) {
    const auto file = kept_.path() / name;
    EXPECT_TRUE(eventually([&] { return e2e::content_of(file).ends_with('\n'); })) << name;
    auto text = e2e::content_of(file);
    if (!text.empty()) text.pop_back();
    return text;
  }
  bool has_written(const std::string& name) { return std::filesystem::exists(kept_.path() / name); }
  /// Waits until the group is gone; how long after the coordinator's own deadline that was.
  milliseconds gone_after_expiry() {
    const auto group = static_cast<pid_t>(std::stoi(written("group")));
    EXPECT_TRUE(eventually([&] { return !tools::group_lives(group); }));
    return milliseconds(boot_ms(tools::boot_clock::now()) - server_.expires_boot_ms());
  }
  std::filesystem::path output_file() { return kept_.path() / "output"; }
  std::string output() { return e2e::content_of(output_file()); }

  temporary_directory kept_;
  std::vector<std::string> more_;  // variables of exec's environment
  fake_lock_server server_;
  std::unique_ptr<program_run> run_;
};

TEST_F(exec_test, ACommandRunsOnceTheLockIsHeldAndTheLockIsReleasedAfterwards) {
  EXPECT_THAT(run({}, "echo $LEASEHOLD_TOKEN $LEASEHOLD_KEY > $D/seen; exit 3"), Optional(3));
  EXPECT_EQ(written("seen"), "1 acme/p/opaque:x//");
  EXPECT_EQ(server_.so_far().grants, 1);
  EXPECT_EQ(server_.so_far().releases, 1);
  EXPECT_THAT(output(), IsEmpty());
}

TEST_F(exec_test, TheDeadlineInTheEnvironmentIsThatOfTheClockOfUptime) {
  EXPECT_THAT(run({"--ttl", "10s"},
                  "echo $(( LEASEHOLD_DEADLINE - $(cut -d. -f1 /proc/uptime) * 1000 )) > $D/left"),
              Optional(0));
  const auto left = std::stoi(written("left"));
  EXPECT_GT(left, 2'000);
  EXPECT_LE(left, 11'000);
}

TEST_F(exec_test, StandardInputAndOutputAreThoseOfTheCommandAndNothingElseIsOpen) {
  constexpr auto script = "ls /proc/self/fd | wc -l; echo done >&2";
  EXPECT_THAT(program_run("/bin/sh", {"-c", script}, output_file()).wait(), Optional(0));
  const auto without_exec = output();
  EXPECT_THAT(without_exec, HasSubstr("done"));
  EXPECT_THAT(run({}, script), Optional(0));
  EXPECT_EQ(output(), without_exec + without_exec);
}

TEST_F(exec_test, TheWordsOfTheCommandAreTakenAsTheyWereTyped) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"[ x = y ]", "[a,b]", "", "--", "--ttl", "-h", "{}", "exec"},
        {"[]"}}) {
    std::filesystem::remove(output_file());
    std::vector<std::string> all{"--url",    server_.url(), "exec", "--program", "p",
                                 "--opaque", "x",           "--",   "printf",    "<%s>"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_THAT(program_run(LEASEHOLD, all, output_file(), {"HOME=/nonexistent"}).wait(),
                Optional(0));
    std::string expected;
    for (const auto& word : words) expected += "<" + word + ">";
    EXPECT_EQ(output(), expected);
  }
}

TEST_F(exec_test, TheCommandDoesNotGetTheCredential) {
  const auto token = kept_.path() / "token";
  std::ofstream(token) << "very-secret\n";
  more_ = {"LEASEHOLD_TOKEN_FILE=" + token.string(), "LEASEHOLD_TOKEN=not-the-fencing-token"};
  EXPECT_THAT(
      run({}, "env | grep -c LEASEHOLD_ ; env | grep -e TOKEN_FILE -e very-secret -e not-the"),
      Optional(1));
  EXPECT_EQ(output(), "5\n");
}

TEST_F(exec_test, AHeldLockIsExitCode75OrTheOneAskedFor) {
  server_.hold();
  EXPECT_THAT(run({}, "echo > $D/ran"), Optional(75));
  EXPECT_THAT(output(), HasSubstr("already_held"));
  EXPECT_THAT(run({"--conflict-exit-code", "0"}, "echo > $D/ran"), Optional(0));
  EXPECT_FALSE(has_written("ran"));
}

TEST_F(exec_test, AWaitThatPassesIsExitCode124) {
  server_.hold();
  EXPECT_THAT(run({"--wait", "200ms"}, "echo > $D/ran"), Optional(124));
  EXPECT_FALSE(has_written("ran"));
}

TEST_F(exec_test, AGrantThatWasWaitedForLongerThanATermIsRenewedBeforeTheCommandStarts) {
  server_.hold_for(milliseconds(1200));
  EXPECT_THAT(run({"--wait", "20s", "--ttl", "1s"}, "echo $LEASEHOLD_DEADLINE_MS > $D/left"),
              Optional(0));
  EXPECT_GE(server_.so_far().renews, 1);
  EXPECT_GT(std::stoi(written("left")), 0);
}

TEST_F(exec_test, ATermToExecWhileItWaitsEndsIt) {
  server_.hold();
  auto& waiting = start({"--wait", "60s"}, "echo > $D/ran");
  ASSERT_TRUE(eventually([&] { return !server_.so_far().acquires.empty(); }));
  waiting.signal(SIGTERM);
  EXPECT_THAT(waiting.wait(), Optional(128 + SIGTERM));
  EXPECT_FALSE(has_written("ran"));
}

TEST_F(exec_test, AGrantWhoseAnswerWasLostIsFoundAgain) {
  server_.lose_answers(2);
  EXPECT_THAT(run({}, "echo $LEASEHOLD_TOKEN > $D/token"), Optional(0));
  EXPECT_EQ(written("token"), "1");
  EXPECT_EQ(server_.so_far().grants, 1);
  EXPECT_THAT(server_.so_far().request_ids, SizeIs(1));
}

TEST_F(exec_test, TheLockIsRenewedForAsLongAsTheCommandRuns) {
  auto& running = start({"--ttl", "1200ms"}, "echo > $D/runs; sleep 2.5; exit 4");
  written("runs");
  server_.lose_answers(1);  // of a renew: sent again with its sequence
  EXPECT_THAT(running.wait(), Optional(4));
  EXPECT_GE(server_.so_far().renews, 4);
  EXPECT_EQ(server_.so_far().releases, 1);
}

TEST_F(exec_test, ARenewThatTellsOfALossEndsTheGroupBeforeTheDeadline) {
  auto& running = start({"--ttl", "2s"}, stubborn);
  written("group");
  server_.refuse_renews(412, "stale_generation");
  EXPECT_LT(gone_after_expiry(), milliseconds(0));
  EXPECT_THAT(running.wait(), Optional(120));
  EXPECT_THAT(output(), HasSubstr("stale_generation"));
}

TEST_F(exec_test, ALossIsHeardOfLongBeforeTheNextRenew) {
  auto& running = start({"--ttl", "10m"},
                        "trap 'echo > $D/asked; exit' TERM; echo $$ > $D/group; "
                        "while :; do sleep 0.01; done");
  written("group");
  server_.end_generation("lease_revoked");
  EXPECT_THAT(running.wait(), Optional(120));
  EXPECT_TRUE(has_written("asked"));
}

TEST_F(exec_test, ACoordinatorThatIsSilentIsNotOutlived) {
  auto& running = start({"--ttl", "2s"}, stubborn);
  written("group");
  server_.fall_silent();
  EXPECT_LT(gone_after_expiry(), milliseconds(0));
  EXPECT_THAT(running.wait(), Optional(120));
}

TEST_F(exec_test, AtItsMaxLifetimeTheCommandIsEndedWithinTheLastTerm) {
  auto& running = start({"--ttl", "2s", "--max-lifetime", "2s"}, stubborn);
  written("group");
  server_.refuse_renews(410, "max_lifetime_reached");
  EXPECT_LT(gone_after_expiry(), milliseconds(0));
  EXPECT_THAT(running.wait(), Optional(120));
  EXPECT_THAT(output(), HasSubstr("max_lifetime_reached"));
}

TEST_F(exec_test, ARevokeThatOnlyTheReleaseHearsOfIsALoss) {
  auto& running = start({}, "echo > $D/runs; while [ ! -e $D/go ]; do sleep 0.01; done");
  written("runs");
  server_.refuse_renews(410, "lease_revoked");
  std::ofstream(kept_.path() / "go") << '\n';
  EXPECT_THAT(running.wait(), Optional(120));
}

TEST_F(exec_test, TheHookWritesTheTokenBeforeTheCommandStarts) {
  EXPECT_THAT(run({"--token-hook", "echo $LEASEHOLD_TOKEN > $D/fence"},
                  "[ \"$(cat $D/fence)\" = $LEASEHOLD_TOKEN ]"),
              Optional(0));
}

TEST_F(exec_test, TheHookHasNothingToDoWithTheCommandsInputAndOutput) {
  const auto line = std::string("echo from-outside | exec ") + LEASEHOLD + " --url " +
                    server_.url() +
                    " exec --program p --opaque x --token-hook 'echo hook-says; cat; echo end' -- "
                    "/bin/sh -c 'cat; echo command-says' 2> $D/errors";
  EXPECT_THAT(program_run("/bin/sh", {"-c", line}, output_file(),
                          {"D=" + kept_.path().string(), "HOME=/nonexistent"})
                  .wait(),
              Optional(0));
  EXPECT_EQ(output(), "from-outside\ncommand-says\n");
  EXPECT_EQ(e2e::content_of(kept_.path() / "errors"), "hook-says\nend\n");
}

TEST_F(exec_test, AHookThatIsNoProgramIsALineAndSoItIsSaid) {
  const auto directory = kept_.path() / "directory";
  std::filesystem::create_directory(directory);
  for (const auto& hook : {directory.string(), std::string("/nonexistent/hook")}) {
    EXPECT_THAT(run({"--token-hook", hook}, "echo > $D/ran"), Optional(125));
    EXPECT_THAT(output(), HasSubstr("the path of no executable file and so a line for a shell"));
    std::filesystem::remove(output_file());
  }
  EXPECT_FALSE(has_written("ran"));
}

TEST_F(exec_test, AHookThatFailsKeepsTheCommandFromStarting) {
  EXPECT_THAT(run({"--token-hook", "exit 1"}, "echo > $D/ran"), Optional(125));
  EXPECT_FALSE(has_written("ran"));
  EXPECT_EQ(server_.so_far().releases, 1);
  EXPECT_THAT(output(), HasSubstr("hook"));
}

TEST_F(exec_test, ALongHookIsRenewedUnder) {
  EXPECT_THAT(run({"--ttl", "1200ms", "--token-hook", "sleep 1.5"}, "exit 8"), Optional(8));
  EXPECT_GE(server_.so_far().renews, 2);
}

TEST_F(exec_test, ASignalThatEndsTheHookIsTheCode) {
  auto& running = start({"--token-hook", "echo > $D/hook; sleep 60"}, "echo > $D/ran");
  written("hook");
  running.signal(SIGTERM);
  EXPECT_THAT(running.wait(), Optional(128 + SIGTERM));
  EXPECT_FALSE(has_written("ran"));
}

TEST_F(exec_test, ASignalToExecIsOneToTheCommand) {
  auto& running = start({}, "echo > $D/runs; sleep 60");
  written("runs");
  running.signal(SIGTERM);
  EXPECT_THAT(running.wait(), Optional(128 + SIGTERM));
  EXPECT_EQ(server_.so_far().releases, 1);
}

TEST_F(exec_test, ASignalThatItsCallerIgnoresStaysIgnored) {
  const auto line = std::string("trap '' HUP; exec ") + LEASEHOLD + " --url " + server_.url() +
                    " exec --program p --opaque x -- /bin/sh -c "
                    "'echo > $D/runs; while [ ! -e $D/go ]; do sleep 0.01; done; exit 4'";
  program_run running("/bin/sh", {"-c", line}, output_file(),
                      {"D=" + kept_.path().string(), "HOME=/nonexistent"});
  written("runs");
  running.signal(SIGHUP);
  std::ofstream(kept_.path() / "go") << '\n';
  EXPECT_THAT(running.wait(), Optional(4));
}

TEST_F(exec_test, WhatCannotBeRunIs126And127) {
  const auto file = kept_.path() / "file";
  std::ofstream(file) << "nothing\n";
  const auto code = [&](const std::string& command) {
    return program_run(
               LEASEHOLD,
               {"--url", server_.url(), "exec", "--program", "p", "--opaque", "x", "--", command},
               output_file(), {"HOME=/nonexistent"})
        .wait();
  };
  EXPECT_THAT(code(file), Optional(126));
  EXPECT_THAT(code("/nonexistent/program"), Optional(127));
  EXPECT_THAT(code("no-such-program-anywhere"), Optional(127));
  EXPECT_EQ(server_.so_far().releases, 3);
}

TEST_F(exec_test, ACoordinatorThatCannotBeReachedIsTriedForTwoSecondsOrForTheWait) {
  // A port that is taken and that nobody listens at.
  boost::asio::io_context io;
  const boost::asio::ip::tcp::socket deaf(io, {boost::asio::ip::address_v4::loopback(), 0});
  const auto url = "http://127.0.0.1:" + std::to_string(deaf.local_endpoint().port());
  const auto time_of = [&](const char* wait) {
    const auto began = tools::boot_clock::now();
    EXPECT_THAT(program_run(LEASEHOLD,
                            {"--url", url, "exec", "--program", "p", "--opaque", "x", "--wait",
                             wait, "--", "true"},
                            output_file(), {"HOME=/nonexistent"})
                    .wait(),
                Optional(125));
    return tools::boot_clock::now() - began;
  };
  EXPECT_LT(time_of("0s"), milliseconds(4000));
  EXPECT_LT(time_of("1ms"), milliseconds(1500));
  const auto second = time_of("1s");
  EXPECT_GE(second, milliseconds(1000));
  EXPECT_LT(second, milliseconds(3000));
}

TEST_F(exec_test, ItsOwnFailuresAre125) {
  EXPECT_THAT(run({"--no-such-option"}, "true"), Optional(125));
  EXPECT_THAT(run({"--host", "h"}, "true"), Optional(125));
  EXPECT_THAT(run({"--ttl", "1ms"}, "true"), Optional(125));
  server_.refuse_everybody();
  EXPECT_THAT(run({}, "echo > $D/ran"), Optional(125));
  EXPECT_FALSE(has_written("ran"));
}

TEST_F(exec_test, ACommandThatReadsFromTheTerminalGetsIt) {
  int master = -1;
  const auto url = server_.url();
  const auto child = forkpty(&master, nullptr, nullptr, nullptr);
  if (child == 0) {
    execl(LEASEHOLD, "leasehold", "--url", url.c_str(), "exec", "--program", "p", "--opaque", "x",
          "--", "/bin/sh", "-c", "read line; echo got:$line; read line", nullptr);
    _exit(99);
  }
  ASSERT_EQ(write(master, "hello\n", 6), 6);
  std::string shown;
  char byte = 0;
  while (shown.find("got:hello") == shown.npos && read(master, &byte, 1) == 1) shown += byte;
  EXPECT_THAT(shown, HasSubstr("got:hello"));
  ASSERT_EQ(write(master, "\x03", 1), 1);  // ^C goes to who has the terminal
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  close(master);
}

}  // namespace
}  // namespace leasehold::tests
