// `leasehold verify --lines ROWS --jobs JOBS` against jobs that are not all there.
#include <gmock/gmock.h>

#include <fstream>

#include "live_server.hpp"
#include "shell_run.hpp"

namespace leasehold::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The exported rows of three jobs, and those jobs, as lines.
class VerifyJobs : public testing::Test {
 protected:
  VerifyJobs() {
    for (const auto* job : {"one", "two", "three"}) server_.submit(job);
    std::ofstream(rows()) << print({"export"});
    std::istringstream in(print({"jobs", "--all", "--json"}));
    for (std::string line; std::getline(in, line);) jobs_.push_back(line);
    EXPECT_EQ(jobs_.size(), 3U);
  }

  /// Without the jobs whose lines have one of these words.
  [[nodiscard]] shell_end verify_without(const std::vector<std::string>& names,
                                         std::vector<std::string> more = {}) const {
    const auto file = kept_.path() / "jobs.jsonl";
    {
      std::ofstream out(file);
      for (const auto& line : jobs_) {
        const auto id = std::string(json::parse(line).at("job_id").as_string());
        if (std::ranges::find(names, id) == names.end()) out << line << '\n';
      }
    }
    more.insert(more.begin(), {"verify", "--lines", rows(), "--jobs", file});
    return run_in_shell(more, "");
  }

  [[nodiscard]] std::string data() const { return server_.data(); }

 private:
  [[nodiscard]] std::string rows() const { return kept_.path() / "rows.jsonl"; }
  [[nodiscard]] std::string print(std::vector<std::string> call) const {
    call.insert(call.begin(),
                {"--url", server_.url(), "--token-file", server_.data() / "operator.token"});
    return run_in_shell(call, "").out;
  }
  tests::temporary_directory kept_;
  live_server server_{1};
  std::vector<std::string> jobs_;
};

TEST_F(VerifyJobs, AnEmptyHeadIsRefusedAndNotPassedOver) {
  const auto ran = run_leasehold({"verify", "--data", data(), "--head", ""});
  EXPECT_EQ(ran.exit_code, 2) << ran.output;
}

TEST_F(VerifyJobs, AllJobsAreProven) {
  const auto end = verify_without({});
  EXPECT_EQ(end.exit_code, 0) << end.out;
  EXPECT_THAT(end.out, Not(HasSubstr("not among")));
}

TEST_F(VerifyJobs, AnyJobThatIsMissingIsNamed) {
  // The first, one between, and the newest, after which the jobs show no row.
  for (const auto* missing : {"one", "two", "three"}) {
    const auto end = verify_without({missing});
    EXPECT_EQ(end.exit_code, 1) << missing;
    EXPECT_THAT(end.out,
                HasSubstr("job '" + std::string(missing) + "' is not among the jobs given"));
    EXPECT_THAT(end.out, HasSubstr("1 problems"));
  }
}

TEST_F(VerifyJobs, NoJobAtAllIsEveryJobMissingAndOnlySomeAreShown) {
  const auto end = verify_without({"one", "two", "three"}, {"--most", "2"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.out, HasSubstr("3 problems"));
  EXPECT_THAT(end.out, HasSubstr("and 1 more"));
}

TEST_F(VerifyJobs, AMissingJobIsAProblemInJsonToo) {
  const auto end = verify_without({"two"}, {"--json"});
  EXPECT_EQ(end.exit_code, 1);
  const auto verdict = json::parse(end.out).as_object();
  EXPECT_FALSE(verdict.at("proven").as_bool());
  EXPECT_EQ(verdict.at("problems").at(0).at("column"), "job_id");
}

}  // namespace
}  // namespace leasehold::e2e
