// What `leasehold` does when nobody can read what it prints.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "live_server.hpp"
#include "shell_run.hpp"
#include "src/token_file.hpp"
#include "stream_peer.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::e2e {
namespace {

using testing::HasSubstr;
using words = std::vector<std::string>;

constexpr auto no_space = "Cannot write the output: No space left on device";
constexpr int broken = static_cast<int>(tools::exit_code::broken);
constexpr int ended_by_sigpipe = 128 + 13;

/// Adds the path of each subcommand that has none below it.
void add_leaves(const CLI::App& app, const std::string& path, std::set<std::string>& out) {
  const auto inner = app.get_subcommands([](const CLI::App*) { return true; });
  if (inner.empty()) out.insert(path);
  for (const auto* each : inner) {
    add_leaves(*each, path.empty() ? each->get_name() : path + ' ' + each->get_name(), out);
  }
}

std::set<std::string> all_subcommands() {
  CLI::App app;
  tools::command_line line;
  tools::build_program(app, line);
  std::set<std::string> out;
  add_leaves(app, "", out);
  return out;
}

/// A coordinator with two jobs, and what each subcommand is called with to print something.
class printing {
 public:
  printing() {
    server_.submit("one");
    server_.submit("two");
    leave_a_dispatch("three");
    leave_a_dispatch("four");
    server_.post("/v1/locks:acquire", {{"program", "p"}, {"target", {{"opaque", "x"}}}});
    std::ofstream(token_of_w1()) << server_.token("w1") << '\n';
    std::filesystem::permissions(token_of_w1(), std::filesystem::perms::owner_read);
    std::ofstream(rows()) << run_in_shell(as_operator({"export"}), "").out;
  }

  /// A cancelled job whose holder is away.
  void leave_a_dispatch(const std::string& job) {
    server_.submit(job, {{"lease_duration_ms", 3'600'000}, {"cancel_grace_ms", 3'600'000}}, job);
    stream_peer hand(server_, "w1");
    hand.hello({}, job);
    hand.credit(1, job);
    EXPECT_TRUE(hand.offer_of(job));
    hand.start(job, 1);
    hand.vanish();
    EXPECT_EQ(server_.post("/v1/jobs/" + job + ":cancel").status, 200);
    EXPECT_TRUE(eventually([&] {
      const auto said = server_.get("/v1/dispatches/" + job, "operator");
      return said.status == 200 && said.body.at("dispatch").at("status") == "retry_wait";
    }));
  }

  [[nodiscard]] words as(const std::string& token_file, words call) const {
    call.insert(call.begin(), {"--url", server_.url(), "--token-file", token_file});
    return call;
  }
  [[nodiscard]] words as_operator(words call) const {
    return as(server_.data() / "operator.token", std::move(call));
  }
  [[nodiscard]] std::map<std::string, words> calls() const {
    const auto scenario =
        std::string(LEASEHOLD_SOURCE_DIR) + "/tests/scenario/probe-2-ack-is-not-completion.json";
    return {
        {"submit", as_operator({"submit", "--queue", "idle", "--payload", "x"})},
        {"worker",
         as(token_of_w1(), {"worker", "--queue", "none", "--exit-when-idle", "1ms", "--", "true"})},
        {"jobs", as_operator({"jobs", "--all"})},
        {"job show", as_operator({"job", "show", "one"})},
        {"job why", as_operator({"job", "why", "one"})},
        {"job evidence", as_operator({"job", "evidence", "one"})},
        {"job cancel", as_operator({"job", "cancel", "two"})},
        {"job redrive", as_operator({"job", "redrive", "two"})},
        {"job revoke", as_operator({"job", "revoke", "one"})},
        {"job resolve", as_operator({"job", "resolve", "one"})},
        {"job reconcile",
         as_operator({"--json", "job", "reconcile", "one", "--outcome", "failed"})},
        {"queues", as_operator({"queues"})},
        {"key", {"key", "--program", "p", "--opaque", "x"}},
        {"locks", as_operator({"locks"})},
        {"lock show", as_operator({"lock", "show", "default/p/opaque:x//"})},
        {"lock evidence", as_operator({"lock", "evidence", "default/p/opaque:x//"})},
        {"lock revoke", as_operator({"lock", "revoke", "default/p/opaque:x//", "--reason", "r"})},
        {"workers", as_operator({"workers"})},
        {"watch", as_operator({"watch", "--from", "1", "--until", "2"})},
        {"export", as_operator({"export"})},
        {"token add", {"token", "add", "new", "--role", "worker", "--principals", principals()}},
        {"token list", {"token", "list", "--data", server_.data()}},
        {"token revoke", {"token", "revoke", "gone", "--principals", principals()}},
        {"reasons", {"reasons"}},
        {"completion bash", {"completion", "bash"}},
        {"replay", {"replay", scenario}},
        {"verify", {"verify", "--lines", rows()}},
        {"head", {"head", "--data", server_.data()}},
        {"store backup",
         {"store", "backup", "--data", server_.data(), "--to", kept_.path() / "backup"}},
        {"store copy",
         {"store", "copy", "sqlite:" + server_.data().string(),
          "sqlite:" + (kept_.path() / "copy").string()}},
        {"dispatch list", as_operator({"dispatch", "list", "--all"})},
        {"dispatch show", as_operator({"dispatch", "show", "three"})},
        {"dispatch retry", as_operator({"dispatch", "retry", "three", "--reason", "r"})},
        {"dispatch resolve", as_operator({"dispatch", "resolve", "four", "--reason", "r"})},
        {"version", {"version"}},
    };
  }
  [[nodiscard]] std::string principals() const { return kept_.path() / "principals.toml"; }

 private:
  [[nodiscard]] std::string token_of_w1() const { return kept_.path() / "w1.token"; }
  [[nodiscard]] std::string rows() const { return kept_.path() / "rows.jsonl"; }
  tests::temporary_directory kept_;
  live_server server_{1, {"--dispatch-backoff", "1h", "--dispatch-backoff-max", "1h"}};
};

TEST(Output, OfEverySubcommandThatCannotBeWrittenIsAFailureOfItsOwnCode) {
  const printing all;
  server::add_token(all.principals(), {.name = "gone", .roles = {actors::role::worker}});
  const auto calls = all.calls();
  for (const auto& path : all_subcommands()) {
    if (path == "exec") continue;  // what is written there is its command's
    ASSERT_TRUE(calls.contains(path)) << path << " is not tried";
    const auto end = run_in_shell(calls.at(path), ">/dev/full");
    EXPECT_EQ(end.exit_code, broken) << path << ": " << end.error;
    EXPECT_THAT(end.error, HasSubstr(no_space)) << path;
  }
}

TEST(Output, ThatCanBeWrittenIsNoFailure) {
  // The same calls: what is shown above is the lost output, and no other fault of theirs.
  const printing all;
  server::add_token(all.principals(), {.name = "gone", .roles = {actors::role::worker}});
  auto calls = all.calls();
  calls.erase("job reconcile");  // it is refused: nothing is unresolved
  for (const auto& [path, call] : calls) {
    const auto end = run_in_shell(call, "");
    EXPECT_EQ(end.exit_code, 0) << path << ": " << end.error;
    EXPECT_FALSE(end.out.empty()) << path;
  }
}

TEST(Output, OfJsonAndHelpIsCheckedToo) {
  for (const auto& call : {words{"--help"},
                           {"submit", "--help"},
                           {"--json", "reasons"},
                           {"reasons", "--markdown"},
                           {"--json", "version"}}) {
    const auto end = run_in_shell(call, ">/dev/full");
    EXPECT_EQ(end.exit_code, broken) << call.back();
    EXPECT_THAT(end.error, HasSubstr(no_space)) << call.back();
  }
}

TEST(Output, ThatIsClosedIsLostAndGoesIntoNoFileOfOurs) {
  const auto end = run_in_shell({"reasons"}, ">&-");
  EXPECT_EQ(end.exit_code, broken);
  EXPECT_THAT(end.error, HasSubstr("Cannot write the output: Bad file descriptor"));
  const tests::temporary_directory kept;
  const auto principals = kept.path() / "principals.toml";
  const auto added = run_in_shell(
      {"token", "add", "new", "--role", "worker", "--principals", principals}, "<&- >&-");
  EXPECT_EQ(added.exit_code, broken);
  EXPECT_THAT(content_of(principals), testing::StartsWith("# Who may speak"));
}

TEST(Output, WhoseReaderHasEndedEndsWithoutAWord) {
  const printing all;
  const auto calls = all.calls();
  for (const auto& path : {"version", "reasons", "export", "jobs", "watch", "replay"}) {
    const auto end = run_without_reader(calls.at(path));
    EXPECT_EQ(end.exit_code, ended_by_sigpipe) << path;
    EXPECT_EQ(end.error, "") << path;
  }
}

TEST(Output, ErrorsThatCannotBeWrittenChangeNoExitCode) {
  const auto end = run_in_shell({"verify", "--lines", "/dev/null"}, "2>/dev/full");
  EXPECT_EQ(end.exit_code, static_cast<int>(tools::exit_code::differs));
}

// ---- tokens ------------------------------------------------------------------------------------

class TokenThatCannotBeShown : public testing::Test {
 protected:
  /// Its names, as the file has them.
  std::vector<std::string> tokens() const {
    std::vector<std::string> out;
    const auto listed = server::list_tokens(file());
    if (const auto* lines = std::get_if<std::vector<server::token_line>>(&listed)) {
      for (const auto& line : *lines) out.push_back(line.token);
    }
    return out;
  }
  words adding() const {
    return {"token", "add", "builder", "--role", "worker", "--principals", file()};
  }
  std::string file() const { return kept_.path() / "principals.toml"; }

 private:
  tests::temporary_directory kept_;
};

TEST_F(TokenThatCannotBeShown, IsRevokedAgain) {
  const auto end = run_in_shell(adding(), ">/dev/full");
  EXPECT_EQ(end.exit_code, broken);
  EXPECT_THAT(end.error, HasSubstr("builder has not got it: it is revoked again"));
  EXPECT_THAT(tokens(), testing::IsEmpty());
}

TEST_F(TokenThatCannotBeShown, LeavesTheOthersOfItsPrincipal) {
  ASSERT_EQ(run_in_shell(adding(), "").exit_code, 0);
  const auto before = tokens();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(run_in_shell(adding(), ">/dev/full").exit_code, broken);
  EXPECT_EQ(tokens(), before);
}

TEST_F(TokenThatCannotBeShown, IsRevokedAlsoWhereItsReaderHasEnded) {
  EXPECT_EQ(run_without_reader(adding()).exit_code, ended_by_sigpipe);
  EXPECT_THAT(tokens(), testing::IsEmpty());
}

TEST_F(TokenThatCannotBeShown, AsJsonIsRevokedToo) {
  auto call = adding();
  call.emplace_back("--json");
  EXPECT_EQ(run_in_shell(call, ">/dev/full").exit_code, broken);
  EXPECT_THAT(tokens(), testing::IsEmpty());
}

}  // namespace
}  // namespace leasehold::e2e
