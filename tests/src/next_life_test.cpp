// What the next life of a process is begun with.
#include "src/next_life.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace leasehold::server {
namespace {

using words = std::vector<std::string>;

TEST(next_life, HasTheArgumentsOfThisOne) {
  const words all{"--data", "/d", "--listen", "127.0.0.1:7878", "--insecure"};
  EXPECT_EQ(next_arguments(all, ""), all);
}

TEST(next_life, IsNoStartOnARestoredBackup) {
  EXPECT_EQ(next_arguments({"--restored-backup", "--data", "/d", "--restored-backup=true"}, ""),
            (words{"--data", "/d"}));
}

TEST(next_life, KeepsThePortThatWasFree) {
  const words kept{"--data", "/d", "--listen=127.0.0.1:41234"};
  for (const words& all : {words{"--listen", "127.0.0.1:0", "--data", "/d"},
                           words{"--data", "/d", "--listen=127.0.0.1:0"}, words{"--data", "/d"}}) {
    EXPECT_EQ(next_arguments(all, "127.0.0.1:41234"), kept);
  }
}

TEST(next_life, BeginsTheProgramAnewInTheSameProcess) {
  // The program is this test, which has nothing to do under that filter and ends well.
  EXPECT_EXIT(
      {
        begin_next_life({"--gtest_filter=nothing.at_all"});
        _exit(1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace leasehold::server
