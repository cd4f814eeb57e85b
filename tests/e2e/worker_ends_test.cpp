// When `leasehold worker` gives up at once instead of trying for ever, and with which code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "live_server.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::e2e {
namespace {

using testing::HasSubstr;

class WorkerEnds : public testing::Test {
 protected:
  program_end run(std::vector<std::string> worker) {
    worker.insert(worker.begin(),
                  {"--url", server_.url(), "--token-file", token_.string(), "worker"});
    return run_leasehold(worker);
  }
  /// The token of a principal that may serve the queue `mine` only.
  void use_token_for_mine() {
    const auto added = run_leasehold({"token", "add", "picky", "--role", "worker", "--queue",
                                      "mine", "--principals", server_.principals_file().string()});
    ASSERT_EQ(added.exit_code, 0) << added.output;
    const auto at = added.output.find("lh_");
    ASSERT_NE(at, std::string::npos);
    std::ofstream(token_) << added.output.substr(at, added.output.find_first_of("\n \"", at) - at);
    std::filesystem::permissions(token_, std::filesystem::perms::owner_read);
    server_.signal(SIGHUP);
    ASSERT_TRUE(server_.has_logged("\"event\":\"reloaded\""));
  }

  live_server server_{1};
  tests::temporary_directory kept_;
  std::filesystem::path token_ = kept_.path() / "token";
};

TEST_F(WorkerEnds, AQueueThatIsNotGrantedIsToldAndTheWorkerEnds) {
  use_token_for_mine();
  const auto ended = run({"--queue", "other", "--", "true"});
  EXPECT_EQ(ended.exit_code, 5) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("queue"));
}

TEST_F(WorkerEnds, ACommandThatIsADirectoryIsRefused) {
  use_token_for_mine();
  EXPECT_EQ(run({"--queue", "mine", "--", kept_.path().string()}).exit_code, 2);
}

TEST_F(WorkerEnds, AWorkerWithoutWorkEndsWhenAsked) {
  use_token_for_mine();
  EXPECT_EQ(run({"--queue", "mine", "--exit-when-idle", "1ms", "--", "true"}).exit_code, 0);
}

}  // namespace
}  // namespace leasehold::e2e
