// A PostgreSQL server of its own (tools/pg-sandbox), gone with the test.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "program_run.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::e2e {

class pg_sandbox {
 public:
  pg_sandbox() {
    EXPECT_TRUE(eventually([this] {
      return content_of(output()).ends_with('\n') || server_.wait(std::chrono::milliseconds{0});
    }));
    EXPECT_TRUE(content_of(output()).starts_with("host=")) << content_of(output());
  }
  ~pg_sandbox() {
    server_.signal(SIGTERM);
    EXPECT_TRUE(server_.wait()) << "it does not end";
  }
  pg_sandbox(const pg_sandbox&) = delete;
  pg_sandbox& operator=(const pg_sandbox&) = delete;

  /// The connection string.
  [[nodiscard]] std::string where() const {
    const auto said = content_of(output());
    return said.substr(0, said.find('\n'));
  }

 private:
  [[nodiscard]] std::filesystem::path output() const { return kept_.path() / "output"; }

  tests::temporary_directory kept_;
  program_run server_{LEASEHOLD_SOURCE_DIR "/tools/pg-sandbox", {}, output()};
};

}  // namespace leasehold::e2e
