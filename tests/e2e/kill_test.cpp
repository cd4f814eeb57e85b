// The server is killed under load, again and again; what it answered is there afterwards, whole.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "live_server.hpp"
#include "socket_load.hpp"
#include "support/stored_log.hpp"

namespace leasehold::e2e {
namespace {

int kills_wanted(int otherwise) {
  const char* wanted = std::getenv("LEASEHOLD_KILLS");
  return wanted == nullptr ? otherwise : static_cast<int>(std::strtol(wanted, nullptr, 10));
}

class Kill : public testing::Test {
 protected:
  /// Loads the server until it has answered some hundred frames more, and kills it then.
  void load_and_kill(live_server& server, int life) {
    std::mt19937_64 random(static_cast<std::uint64_t>(life));
    const std::size_t answered = seen.heard() + 500 + random() % 3000;
    const socket_load load(server, seen, {.life = life, .seed = random()});
    EXPECT_TRUE(eventually([&] { return seen.heard() >= answered; })) << server.log();
    server.kill();
  }

  std::vector<std::string> losses(const live_server& server) {
    const auto log = tests::read_log(server.data());
    rows = log.rows.size();
    return tests::loss_search(log, seen).run();
  }

  tests::driver_log seen;
  std::size_t rows = 0;
};

TEST_F(Kill, NothingThatWasAnsweredIsLostAndNothingIsHalfThere) {
  live_server server(2);
  const int kills = kills_wanted(3);
  for (int life = 0; life < kills; ++life) {
    load_and_kill(server, life);
    server.start();
    const auto lost = losses(server);
    ASSERT_TRUE(lost.empty()) << "after kill " << life << ": " << lost.size()
                              << " losses, the first: " << lost.front();
    expect_proven(server);
  }
  std::cout << kills << " kills, " << seen.verdicts().size() << " verdicts, " << rows << " rows\n";
}

}  // namespace
}  // namespace leasehold::e2e
