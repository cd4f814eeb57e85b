// `leasehold exec` and a fence in SQLite, with the shell scripts that docs/LOCKS.md shows: the
// token is in the environment, and a hook writes it before the command starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "live_server.hpp"
#include "support/fenced_sqlite.hpp"

namespace leasehold::e2e {
namespace {

using testing::IsEmpty;
using testing::Optional;
using tests::written_row;

/// Ends with 0 only where a row came back.
constexpr auto fence_script = R"(#!/bin/sh
row=$(sqlite3 "$D/work.db" <<END
.timeout 20000
.parameter set ?1 "'$LEASEHOLD_LEASE_ID'"
.parameter set ?2 $LEASEHOLD_TOKEN
.read $SQL/sqlite-fence.sql
END
)
[ -n "$row" ]
)";

/// Writes its argument behind the fence, in one transaction: without its row nothing is inserted.
constexpr auto write_script = R"(#!/bin/sh
row=$(sqlite3 -bail "$D/work.db" <<END
.timeout 20000
.parameter set ?1 "'$LEASEHOLD_LEASE_ID'"
.parameter set ?2 $LEASEHOLD_TOKEN
BEGIN IMMEDIATE;
.read $SQL/sqlite-fence.sql
INSERT INTO work (key, token, text) SELECT ?1, ?2, '$1'
WHERE EXISTS (SELECT 1 FROM fence WHERE key = ?1 AND token = ?2);
COMMIT;
END
)
[ -n "$row" ]
)";

class fenced_exec : public testing::Test {
 protected:
  void SetUp() override {
    put("fence.sh", fence_script);
    put("write.sh", write_script);
    put("token", server_.token("client"));
    table_ = tests::fenced_sqlite::open(kept_.path() / "work.db");
    ASSERT_NE(table_, nullptr);
    const auto named =
        server_.post("/v1/keys:normalize", {{"program", "p"}, {"target", {{"opaque", "x"}}}});
    ASSERT_EQ(named.status, 200) << named.text;
    lease_id_ = named.body.at("lease_id").as_string();
  }

  void put(const std::string& name, std::string_view text) {
    std::ofstream(kept_.path() / name) << text;
    std::filesystem::permissions(kept_.path() / name, std::filesystem::perms::owner_all);
  }
  bool is_there(const std::string& name) { return std::filesystem::exists(kept_.path() / name); }
  std::string written(const std::string& name) {
    const auto file = kept_.path() / name;
    EXPECT_TRUE(eventually([&] { return content_of(file).ends_with('\n'); })) << output();
    return content_of(file);
  }
  std::string output() { return content_of(kept_.path() / "output"); }

  /// exec with the hook in front of `sh -c SCRIPT`.
  std::unique_ptr<program_run> start(const std::string& script) {
    const std::vector<std::string> words{"--url",
                                         server_.url(),
                                         "--token-file",
                                         kept_.path() / "token",
                                         "exec",
                                         "--program",
                                         "p",
                                         "--opaque",
                                         "x",
                                         "--wait",
                                         "20s",
                                         "--token-hook",
                                         kept_.path() / "fence.sh",
                                         "--",
                                         "/bin/sh",
                                         "-c",
                                         script};
    return std::make_unique<program_run>(
        LEASEHOLD, words, kept_.path() / "output",
        std::vector<std::string>{"D=" + kept_.path().string(),
                                 "SQL=" LEASEHOLD_SOURCE_DIR "/tools/sql"});
  }

  tests::temporary_directory kept_;
  live_server server_{1};
  std::unique_ptr<tests::fenced_sqlite> table_;
  std::string lease_id_;
};

TEST_F(fenced_exec, WhatACommandLeftBehindIsRefusedBeforeTheNextCommandHasWrittenAnything) {
  // The first leaves a process outside of its group, which exec and its watchdog do not end.
  const auto first = start(
      "$D/write.sh first || exit 1\n"
      "setsid sh -c 'echo > $D/left; while [ ! -e $D/go ]; do sleep 0.01; done;"
      " $D/write.sh late; echo $? > $D/late' > /dev/null 2>&1 &\n"
      "while [ ! -e $D/left ]; do sleep 0.01; done");
  ASSERT_THAT(first->wait(), Optional(0)) << output();
  const auto second =
      start("echo > $D/runs; while [ ! -e $D/late ]; do sleep 0.01; done; $D/write.sh second");
  written("runs");
  put("go", "");
  EXPECT_EQ(written("late"), "1\n");
  EXPECT_THAT(second->wait(), Optional(0)) << output();
  EXPECT_EQ(table_->rows(lease_id_), (std::vector<written_row>{{1, "first"}, {2, "second"}}));
}

TEST_F(fenced_exec, WhatACommandLeftBehindIsAcceptedAsLongAsThereIsNoOtherToken) {
  const auto first = start(
      "setsid sh -c 'echo > $D/left; while [ ! -e $D/go ]; do sleep 0.01; done;"
      " $D/write.sh late; echo $? > $D/late' > /dev/null 2>&1 &\n"
      "while [ ! -e $D/left ]; do sleep 0.01; done");
  ASSERT_THAT(first->wait(), Optional(0)) << output();
  const auto fence = server_.get("/v1/fences/" + lease_id_ + "?token=1");
  EXPECT_FALSE(fence.body.at("live").as_bool()) << "the lock was released";
  put("go", "");
  EXPECT_EQ(written("late"), "0\n");
  EXPECT_EQ(table_->rows(lease_id_), (std::vector<written_row>{{1, "late"}}));
}

TEST_F(fenced_exec, ATokenThatTheTargetRefusesKeepsTheCommandFromStarting) {
  ASSERT_EQ(table_->raise(lease_id_, 1'000'000), tests::write_end::written);
  const auto run = start("echo > $D/ran");
  EXPECT_THAT(run->wait(), Optional(125));
  EXPECT_FALSE(is_there("ran"));
  EXPECT_THAT(table_->rows(lease_id_), IsEmpty());
}

}  // namespace
}  // namespace leasehold::e2e
