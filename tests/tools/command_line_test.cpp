// The program's options, as far as no coordinator is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "src/store/sqlite_store.hpp"
#include "tools/http_client.hpp"
#include "tools/subcommands.hpp"

namespace leasehold::tests {
namespace {

using testing::HasSubstr;
using tools::command_line;
using tools::exit_code;

/// Runs the program with these arguments; what it prints is caught.
struct outcome {
  int parse_code = 0;
  exit_code result = exit_code::ok;
  std::string out;
  std::string error;
};

outcome run(std::vector<std::string> arguments) {
  CLI::App app;
  command_line line;
  tools::build_program(app, line);
  outcome end;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& wrong) {
    end.parse_code = app.exit(wrong);
  }
  end.out = testing::internal::GetCapturedStdout();
  end.error = testing::internal::GetCapturedStderr();
  end.result = line.result;
  return end;
}

/// Every subcommand of the program with its path.
void each_command(const CLI::App& app, const std::string& path,
                  const std::function<void(const CLI::App&, const std::string&)>& visit) {
  for (const auto* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto inner_path = path + ' ' + inner->get_name();
    visit(*inner, inner_path);
    each_command(*inner, inner_path, visit);
  }
}

TEST(CommandLine, WithoutASubcommandSaysHowItIsUsed) {
  EXPECT_NE(run({}).parse_code, 0);
  EXPECT_THAT(run({"--help"}).out, HasSubstr("submit"));
}

TEST(CommandLine, AnUnknownSubcommandIsNamedWithTheNearestThatThereIs) {
  for (const auto& words : {std::vector<std::string>{"sumbit"}, {"--json", "sumbit", "--queue"}}) {
    const auto end = run(words);
    EXPECT_NE(end.parse_code, 0);
    EXPECT_THAT(end.error, HasSubstr("\"sumbit\"; did you mean submit?"));
  }
  EXPECT_THAT(run({"job", "shwo", "x"}).error, HasSubstr("\"shwo\"; did you mean show?"));
  const auto far = run({"xxxxxxxxxx"}).error;
  EXPECT_THAT(far, HasSubstr("\"xxxxxxxxxx\"\n"));
  EXPECT_THAT(run({"job"}).error, HasSubstr("subcommand is required"));
}

TEST(CommandLine, AnEmptyJobIdIsRefusedBeforeAnybodyIsAsked) {
  for (const auto& words : {std::vector<std::string>{"job", "show", ""},
                            {"job", "evidence", ""},
                            {"job", "cancel", ""},
                            {"submit", "--job", "", "--payload", "x"},
                            {"watch", "--job", ""}}) {
    const auto end = run(words);
    EXPECT_NE(end.parse_code, 0) << words.front();
    EXPECT_THAT(end.error, HasSubstr("empty")) << words.front();
  }
}

TEST(CommandLine, APayloadThatCannotBeReadIsNotSubmittedAsNothing) {
  for (const char* path : {"/", "/nowhere/at/all"}) {
    for (const char* option : {"--payload-file", "--lines"}) {
      const auto end = run({"submit", option, path});
      EXPECT_EQ(end.result, exit_code::malformed) << option << path;
      EXPECT_THAT(end.error, HasSubstr("cannot be read")) << option << path;
    }
  }
}

TEST(CommandLine, AWatchThatEndsBeforeItBeginsIsRefused) {
  const auto end = run({"watch", "--from", "5", "--until", "3"});
  EXPECT_EQ(end.result, exit_code::malformed);
  EXPECT_THAT(end.error, HasSubstr("--until 3"));
}

TEST(CommandLine, LinesWithoutARowProveNothing) {
  const auto end = run({"verify", "--lines", "/dev/null"});
  EXPECT_EQ(end.result, exit_code::differs);
  EXPECT_THAT(end.error, HasSubstr("nothing to prove"));
}

TEST(CommandLine, AStoreWithoutARowProvesNothing) {
  const auto directory = std::filesystem::path(testing::TempDir()) / "store_without_a_row";
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(std::holds_alternative<std::unique_ptr<actors::store>>(
      storage::open_sqlite_store({.directory = directory})));
  const auto end = run({"verify", "--data", directory.string()});
  std::filesystem::remove_all(directory);
  EXPECT_EQ(end.result, exit_code::differs);
  EXPECT_THAT(end.error, HasSubstr("nothing to prove"));
}

TEST(CommandLine, WhatNeverEndsALineIsMalformedAndNotReadForEver) {
  const auto lines = run({"verify", "--lines", "/dev/zero"});
  EXPECT_EQ(lines.result, exit_code::malformed);
  EXPECT_THAT(lines.error, HasSubstr("/dev/zero, line 1: it has more than 4194304 bytes"));
  const auto token = run({"queues", "--token-file", "/dev/zero"});
  EXPECT_EQ(token.result, exit_code::forbidden);
  EXPECT_THAT(token.error, HasSubstr("/dev/zero"));
  const auto scenario = run({"replay", "/dev/zero"});
  EXPECT_EQ(scenario.result, exit_code::malformed);
  EXPECT_THAT(scenario.error, HasSubstr("more than 67108864 bytes"));
}

TEST(CommandLine, ALineThatIsNoRowIsNamedByItsNumber) {
  const auto file = std::filesystem::path(testing::TempDir()) / "lines_with_a_wrong_one";
  std::ofstream(file) << "\n{}\n";
  const auto end = run({"verify", "--lines", file.string()});
  std::filesystem::remove(file);
  EXPECT_EQ(end.result, exit_code::malformed);
  EXPECT_THAT(end.error, HasSubstr("line 2"));
}

TEST(CommandLine, ATokenForANameThatCannotBeOneIsMalformed) {
  const auto file = std::filesystem::path(testing::TempDir()) / "no_principals.toml";
  const auto end = run({"token", "add", "a/b", "--role", "worker", "--principals", file.string()});
  EXPECT_EQ(end.result, exit_code::malformed);
  EXPECT_THAT(end.error, HasSubstr("\"a/b\""));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(CommandLine, WhereNoTokenIsMadeStandardOutputHasNone) {
  const auto file = std::filesystem::path(testing::TempDir()) / "principals_of_certificates.toml";
  const auto end = run({"token", "add", "shop", "--role", "client", "--certificate", "shop.example",
                        "--principals", file.string()});
  std::filesystem::remove(file);
  EXPECT_EQ(end.result, exit_code::ok);
  EXPECT_EQ(end.out, "");
  EXPECT_THAT(end.error, HasSubstr("shop.example"));
}

TEST(CommandLine, AFileForTlsThatIsNoUseIsNamedWithItsOption) {
  const auto no_pem = std::filesystem::path(testing::TempDir()) / "no.pem";
  std::ofstream(no_pem) << "nothing\n";
  const auto calls = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"--url", "https://127.0.0.1:1"});
    options.push_back("jobs");
    return run(options);
  };
  for (const auto& file : {std::string("/nonexistent.pem"), no_pem.string()}) {
    auto end = calls({"--ca-file", file});
    EXPECT_EQ(end.result, exit_code::malformed);
    EXPECT_THAT(end.error, HasSubstr("--ca-file \"" + file + "\" cannot be used"));
    end = calls({"--cert-file", file, "--key-file", file});
    EXPECT_EQ(end.result, exit_code::malformed);
    EXPECT_THAT(end.error, HasSubstr("--cert-file \"" + file + "\" cannot be used"));
  }
  std::filesystem::remove(no_pem);
}

TEST(CommandLine, EverySubcommandSaysWhatItIsFor) {
  CLI::App app;
  command_line line;
  tools::build_program(app, line);
  each_command(app, "leasehold", [](const CLI::App& command, const std::string& path) {
    EXPECT_FALSE(command.get_description().empty()) << path;
    for (const auto* option : command.get_options()) {
      EXPECT_FALSE(option->get_description().empty()) << path << ' ' << option->get_name();
    }
  });
}

TEST(CommandLine, EverySubcommandOfTheTopHasExamplesUnlessItTakesNothing) {
  CLI::App app;
  command_line line;
  tools::build_program(app, line);
  const std::set<std::string> take_nothing{"version", "completion"};
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (take_nothing.contains(command->get_name())) continue;
    EXPECT_THAT(command->get_footer(), HasSubstr("leasehold " + command->get_name()))
        << command->get_name();
  }
}

TEST(CommandLine, CompletionKnowsEverySubcommandAndOption) {
  CLI::App app;
  command_line line;
  tools::build_program(app, line);
  const auto script = run({"completion", "bash"}).out;
  each_command(app, "leasehold", [&](const CLI::App& command, const std::string& path) {
    EXPECT_THAT(script, HasSubstr("'" + path + "')"));
    for (const auto* option : command.get_options()) {
      for (const auto& name : option->get_lnames()) EXPECT_THAT(script, HasSubstr("--" + name));
    }
  });
}

TEST(CommandLine, PayloadsExcludeEachOther) {
  EXPECT_NE(run({"submit", "--payload", "a", "--payload-file", "b"}).parse_code, 0);
  EXPECT_NE(run({"submit", "--payload", "a", "--lines", "b"}).parse_code, 0);
  EXPECT_NE(run({"submit", "--lines", "a", "--wait"}).parse_code, 0);
}

TEST(CommandLine, PriorityHasBounds) {
  EXPECT_NE(run({"submit", "--priority", "-1001", "--url", "x"}).parse_code, 0);
  EXPECT_EQ(run({"submit", "--priority", "-1000", "--url", "x"}).parse_code, 0);
  EXPECT_EQ(run({"submit", "--priority", "1000", "--url", "x"}).parse_code, 0);
  EXPECT_NE(run({"submit", "--priority", "1001", "--url", "x"}).parse_code, 0);
}

TEST(CommandLine, AUrlThatIsNoneIsMalformedUsage) {
  const auto end = run({"queues", "--url", "127.0.0.1:7878"});
  EXPECT_EQ(end.result, exit_code::malformed);
  EXPECT_THAT(end.error, HasSubstr("http://HOST:PORT"));
}

TEST(CommandLine, ATokenFileThatCannotBeReadIsNamed) {
  const auto end = run({"queues", "--token-file", "/nowhere/token"});
  EXPECT_EQ(end.result, exit_code::forbidden);
  EXPECT_THAT(end.error, HasSubstr("/nowhere/token"));
}

TEST(CommandLine, NobodyThereIsUnreachable) {
  // Port 1 of this machine is closed.
  const auto end = run({"queues", "--url", "http://127.0.0.1:1"});
  EXPECT_EQ(end.result, exit_code::unreachable);
  EXPECT_THAT(end.error, HasSubstr("127.0.0.1:1"));
}

TEST(CommandLine, ALabelWithoutValueIsMalformed) {
  const auto end = run({"submit", "--payload", "x", "--label", "gpu"});
  EXPECT_EQ(end.result, exit_code::malformed);
  EXPECT_THAT(end.error, HasSubstr("KEY=VALUE"));
}

TEST(CommandLine, AKeyThatIsGivenTwiceIsMalformedAndNamed) {
  for (const char* option : {"--policy", "--label"}) {
    // The same value is a second one too: nobody writes it twice on purpose.
    for (const char* second : {"max_attempts=3", "max_attempts=2"}) {
      const auto end = run({"submit", "--payload", "x", option, "max_attempts=2", option, second});
      EXPECT_EQ(end.result, exit_code::malformed) << option << second;
      EXPECT_THAT(end.error, HasSubstr(std::string(option) + " max_attempts is given twice"));
    }
  }
}

TEST(CommandLine, GlobalOptionsMayStandOnEitherSide) {
  EXPECT_EQ(run({"--json", "version"}).out, run({"version", "--json"}).out);
  EXPECT_THAT(run({"version", "--json"}).out, HasSubstr("rule_version"));
}

TEST(Endpoint, IsReadFromUrlsOfBothSchemes) {
  using tools::endpoint;
  EXPECT_EQ(tools::parse_endpoint("http://127.0.0.1:7878"), (endpoint{false, "127.0.0.1", "7878"}));
  EXPECT_EQ(tools::parse_endpoint("https://lease.example/"),
            (endpoint{true, "lease.example", "443"}));
  EXPECT_EQ(tools::parse_endpoint("http://[::1]:80"), (endpoint{false, "::1", "80"}));
}

TEST(Endpoint, RefusesWhatWouldBeDropped) {
  for (const char* url :
       {"", "localhost:7878", "ftp://x", "http://", "http://user:pw@x", "http://x/y",
        "http://x?y=1", "http://x y", "http://x:0", "http://x:65536", "http://x:125053"}) {
    EXPECT_EQ(tools::parse_endpoint(url), std::nullopt) << url;
  }
}

TEST(UrlEncoding, LetsNoSeparatorThrough) {
  EXPECT_EQ(tools::url_encoded("a-b.c_d~9"), "a-b.c_d~9");
  EXPECT_EQ(tools::url_encoded("a/b:c?d&e%"), "a%2Fb%3Ac%3Fd%26e%25");
  EXPECT_EQ(tools::url_encoded("\xc3\xa9 "), "%C3%A9%20");
}

}  // namespace
}  // namespace leasehold::tests
