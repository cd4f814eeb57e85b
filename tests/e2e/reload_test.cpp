// What SIGHUP changes while the coordinator runs: limits, and what waits for the next start.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "live_server.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::e2e {
namespace {

class reload_of : public on_threads {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(config()) << text;
    return config();
  }
  [[nodiscard]] std::filesystem::path config() const { return kept.path() / "leaseholdd.toml"; }
  int status_of_submit(const std::string& job) {
    return server.post("/v1/jobs", {{"queue", "q"}, {"job_id", job}}).status;
  }
  void reload(const std::string& text, int times = 1) {
    write(text);
    server.signal(SIGHUP);
    ASSERT_TRUE(server.has_logged("\"event\":\"reloaded\"", times));
  }

  tests::temporary_directory kept;
  live_server server{GetParam(), {"--config", write("[limits]\nleases_per_tenant = 2\n")}};
};
LEASEHOLD_ON_THREADS(reload_of);

TEST_P(reload_of, LimitsHoldFromThenOn) {
  EXPECT_EQ(status_of_submit("a"), 201);
  EXPECT_EQ(status_of_submit("b"), 201);
  EXPECT_EQ(status_of_submit("c"), 429);
  reload("[limits]\nleases_per_tenant = 3\n");
  EXPECT_EQ(status_of_submit("c"), 201);
  EXPECT_EQ(status_of_submit("d"), 429);
  reload("[limits]\nleases_per_tenant = 1\n", 2);
  EXPECT_EQ(status_of_submit("d"), 429);
  EXPECT_EQ(status_of_submit("a"), 200) << "what is there stays";
}

TEST_P(reload_of, ABadFileKeepsWhatHoldsAndIsNamedWithItsLine) {
  write("[limits]\nleases_per_tenant = \"many\"\n");
  server.signal(SIGHUP);
  ASSERT_TRUE(server.has_logged("options not reloaded; the old ones stay"));
  EXPECT_TRUE(server.has_logged("leaseholdd.toml, line 2"));
  EXPECT_EQ(server.log().find("why\":\"leaseholdd:"), std::string::npos);
  EXPECT_EQ(status_of_submit("a"), 201);
  EXPECT_EQ(status_of_submit("b"), 201);
  EXPECT_EQ(status_of_submit("c"), 429);
}

TEST_P(reload_of, WhatOnlyAStartReadsIsNamed) {
  reload("threads = 7\nmax_downtime = \"1h\"\n[limits]\nleases_per_tenant = 9\n");
  EXPECT_TRUE(server.has_logged("some changes wait for the next start"));
  EXPECT_TRUE(server.has_logged("max_downtime"));
}

}  // namespace
}  // namespace leasehold::e2e
