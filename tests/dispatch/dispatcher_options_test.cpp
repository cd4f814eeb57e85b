// What `leaseholdd dispatcher` takes, and how it refuses the rest.
#include "src/dispatcher_options.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace leasehold::server {
namespace {

using words = std::vector<std::string>;

std::variant<dispatcher_options, say_and_exit> load(words more, const environment& env = {}) {
  words all{"--store", "sqlite:/var/lib/leasehold", "--controllers", "process"};
  all.insert(all.end(), more.begin(), more.end());
  return load_dispatcher_options(all, env);
}

void expect_refused(const std::variant<dispatcher_options, say_and_exit>& got,
                    const std::string& part) {
  const auto* end = std::get_if<say_and_exit>(&got);
  ASSERT_NE(end, nullptr) << part;
  EXPECT_EQ(end->exit_code, exit_bad_options);
  EXPECT_NE(end->text.find(part), std::string::npos) << end->text;
  EXPECT_TRUE(end->text.starts_with("leaseholdd dispatcher: ")) << end->text;
  EXPECT_EQ(std::ranges::count(end->text, '\n'), 1) << end->text;
}

TEST(DispatcherOptions, TheStoreAndTheControllersAreEnough) {
  const auto got = load({});
  const auto* out = std::get_if<dispatcher_options>(&got);
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->store, (storage::store_place{storage::sqlite_place{"/var/lib/leasehold"}}));
  EXPECT_EQ(out->profile_name, "standalone");
  EXPECT_EQ(out->profile.page, 32U);
  EXPECT_EQ(out->term_grace, protocol::duration{10'000});
  EXPECT_EQ(out->kill_wait, protocol::duration{5'000});
  EXPECT_EQ(out->pace.claim, protocol::duration{30'000});
  EXPECT_FALSE(out->once);
}

TEST(DispatcherOptions, EveryOneIsTaken) {
  const auto got =
      load({"--profile", "edge", "--host", "10c57e73-a9fd-46f1-aecb-71b60c3b41fc", "--owner",
            "host-1/a.b:c_d", "--term-grace", "250ms", "--kill-wait", "1s", "--claim", "2m",
            "--once", "--log-level", "debug", "--log-format", "json"});
  const auto* out = std::get_if<dispatcher_options>(&got);
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->profile.page, 1U);
  EXPECT_EQ(out->host, "10c57e73-a9fd-46f1-aecb-71b60c3b41fc");
  EXPECT_EQ(out->owner, "host-1/a.b:c_d");
  EXPECT_EQ(out->term_grace, protocol::duration{250});
  EXPECT_EQ(out->kill_wait, protocol::duration{1'000});
  EXPECT_EQ(out->pace.claim, protocol::duration{120'000});
  EXPECT_TRUE(out->once);
}

TEST(DispatcherOptions, TheStoreMayStandInAVariableAndAFlagOverrulesIt) {
  const environment variables{{"LEASEHOLD_STORE", "sqlite:/elsewhere"}};
  const auto from_variable = load_dispatcher_options({"--controllers", "process"}, variables);
  ASSERT_TRUE(std::holds_alternative<dispatcher_options>(from_variable));
  EXPECT_EQ(std::get<dispatcher_options>(from_variable).store,
            (storage::store_place{storage::sqlite_place{"/elsewhere"}}));
  EXPECT_EQ(std::get<dispatcher_options>(load({}, variables)).store,
            (storage::store_place{storage::sqlite_place{"/var/lib/leasehold"}}));
}

TEST(DispatcherOptions, NothingIsSignalledUnlessItIsSaid) {
  const words store{"--store", "sqlite:/var/lib/leasehold"};
  expect_refused(load_dispatcher_options(store, {}), "--controllers is missing");
  for (const auto* word : {"stream", "Process", "process,stream", ""}) {
    auto all = store;
    all.insert(all.end(), {"--controllers", word});
    expect_refused(load_dispatcher_options(all, {}), "--controllers");
  }
}

TEST(DispatcherOptions, WhatIsWrongIsNamedInOneSentence) {
  expect_refused(load_dispatcher_options({"--controllers", "process"}, {}), "--store is missing");
  expect_refused(load_dispatcher_options({"--controllers", "process", "--store", "mysql://x"}, {}),
                 "mysql");
  expect_refused(load({"--profile", "Edge"}), "edge, standalone or cluster");
  expect_refused(load({"--host", "here"}), "boot_id");
  expect_refused(load({"--owner", "a b"}), "--owner");
  expect_refused(load({"--owner", std::string(129, 'a')}), "--owner");
  EXPECT_TRUE(std::holds_alternative<dispatcher_options>(load({"--owner", std::string(128, 'a')})));
  expect_refused(load({"--term-grace", "10"}), "--term-grace");
  expect_refused(load({"--kill-wait", "-1s"}), "--kill-wait");
  expect_refused(load({"--claim", "soon"}), "--claim");
  expect_refused(load({"--log-level", "loud"}), "--log-level");
  expect_refused(load({"--log-format", "xml"}), "--log-format");
  expect_refused(load({"--unknown"}), "--help");
  expect_refused(load({"more"}), "--help");
}

TEST(DispatcherOptions, APasswordIsNotRepeated) {
  const auto got = load_dispatcher_options(
      {"--controllers", "process", "--store", "postgres://u:canary@h:port/db"}, {});
  if (const auto* end = std::get_if<say_and_exit>(&got)) {
    EXPECT_EQ(end->text.find("canary"), std::string::npos) << end->text;
  }
}

TEST(DispatcherOptions, HelpNamesEveryFlagAndExitCode) {
  const auto got = load_dispatcher_options({"--help"}, {});
  const auto* end = std::get_if<say_and_exit>(&got);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->exit_code, 0);
  for (const auto* part :
       {"--store", "--controllers", "--profile", "--host", "--owner", "--term-grace", "--kill-wait",
        "--claim", "--once", "--log-level", "--log-format", "Exit codes", "LEASEHOLD_STORE"}) {
    EXPECT_NE(end->text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace leasehold::server
