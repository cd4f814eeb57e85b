// The real leaseholdd on a directory and a port of its own, and what is asked of it over HTTP.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program_run.hpp"
#include "support/temporary_directory.hpp"
#include "tools/http_client.hpp"

namespace leasehold::e2e {

namespace json = boost::json;

/// An answer of the API.
struct api_answer {
  int status = 0;  ///< 0: there was none
  json::object body;
  std::string text;
};

/// What a start waits for.
enum class waits_for { ready, listening };

/// How the coordinator is reached over TLS: the files of a client.
struct tls_trust {
  std::string ca_file;  ///< empty: it speaks no TLS
  std::string cert_file;
  std::string key_file;
};

/// Principals: `w1`, `w2` (workers), `client`, `auditor` and `operator` of the tenant `default`,
/// and `stranger` and `keeper` (workers and clients) of the tenants `elsewhere` and `t`.
class live_server {
 public:
  /// Starts it and waits until it is ready. `more`: further arguments; `variables`: NAME=value;
  /// `fill`: what is put into the data directory before the first start; `launcher`: a program and
  /// its first arguments, which becomes leaseholdd by exec.
  explicit live_server(int threads, std::vector<std::string> more = {},
                       std::vector<std::string> variables = {},
                       const std::function<void(const std::filesystem::path&)>& fill = {},
                       std::vector<std::string> launcher = {}, tls_trust trust = {},
                       waits_for begun = waits_for::ready);
  live_server(const live_server&) = delete;
  live_server& operator=(const live_server&) = delete;

  /// Starts it again on the same directory and port, `once` with further arguments, and waits until
  /// it is ready.
  void start(const std::vector<std::string>& once = {});
  /// What a start waits for from now on: a standby listens only.
  void wait_for(waits_for begun) { begun_ = begun; }
  /// The principals are those of another one, whose file this one was given.
  void share_tokens(const live_server& with) {
    tokens_ = with.tokens_;
    clients_.clear();
  }
  /// The same with other arguments from now on.
  void start_with(std::vector<std::string> more) {
    more_ = std::move(more);
    start();
  }
  /// Starts it again when it must not get far, `once` with further arguments: its exit code and
  /// what it said.
  program_end start_in_vain(const std::vector<std::string>& once = {});
  /// Kills it without a warning.
  void kill();
  void signal(int number) const { process_->signal(number); }
  void stand_still() const { process_->stand_still(); }
  void go_on() const { process_->go_on(); }
  void limit(__rlimit_resource resource, rlim_t soft) const { process_->limit(resource, soft); }
  /// Its exit code once it has ended; nothing when it does not.
  std::optional<int> wait_for_end() { return process_->wait(); }
  [[nodiscard]] pid_t process() const noexcept { return process_->id(); }
  [[nodiscard]] bool runs() { return !process_->wait(std::chrono::milliseconds{0}); }

  /// Waits until the log has said `text` as often.
  [[nodiscard]] bool has_logged(std::string_view text, int times = 1) const;
  [[nodiscard]] std::string log() const { return content_of(log_file()); }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const {
    return (trust_.ca_file.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") +
           std::to_string(port_);
  }
  [[nodiscard]] std::filesystem::path data() const { return kept_.path() / "data"; }
  [[nodiscard]] std::filesystem::path principals_file() const { return data() / "principals.toml"; }
  [[nodiscard]] const std::string& token(const std::string& principal) const {
    return tokens_.at(principal);
  }
  /// The arguments that it was started with, for a second one.
  [[nodiscard]] std::vector<std::string> arguments() const;
  /// A new worker of the tenant `default`, written to the principals file: takes effect at SIGHUP.
  void add_worker(const std::string& principal);

  api_answer get(const std::string& target, const std::string& principal = "client");
  api_answer post(const std::string& target, const json::object& body = {},
                  const std::string& principal = "client");

  // ---- jobs
  /// Submits a job that must be taken.
  void submit(const std::string& job, const json::object& policy = {},
              const std::string& queue = "q");
  json::object job(const std::string& id);
  /// Waits until the job's state is this.
  [[nodiscard]] bool reaches(const std::string& job, std::string_view state);
  /// The evidence of a job, oldest first.
  std::vector<json::object> evidence(const std::string& job);
  /// The first thousand rows of the tenant, oldest first.
  std::vector<json::object> all_evidence();
  std::string metrics() { return get("/metrics", "operator").text; }

 private:
  [[nodiscard]] std::filesystem::path log_file() const { return kept_.path() / "log"; }
  void make_principals();
  api_answer call(const tools::http_call& what, const std::string& principal);

  tests::temporary_directory kept_;
  int threads_;
  std::vector<std::string> more_;
  std::vector<std::string> variables_;
  std::vector<std::string> launcher_;
  tls_trust trust_;
  waits_for begun_;
  std::uint16_t port_ = 0;
  int starts_ = 0;
  std::map<std::string, std::string> tokens_;
  std::map<std::string, tools::http_client> clients_;
  std::unique_ptr<program_run> process_;
};

/// Expects that `leasehold verify` proves everything in the directory.
void expect_proven(const live_server& server);
/// Expects that the job's history, as a scenario, replays to the same decisions.
void expect_replayable(const live_server& server, const std::string& job);

/// What a row must say: any columns.
void expect_columns(const json::object& row, const json::object& wanted);
/// The newest row of an event; an empty one and a failure when there is none.
json::object last_row(const std::vector<json::object>& rows, std::string_view event);
/// The columns that tell how the lease stands, without the row's own, as text.
std::string standing_of(const json::object& row);

/// Every test of this part runs with 1 and with 3 threads.
class on_threads : public testing::TestWithParam<int> {};
#define LEASEHOLD_ON_THREADS(suite)          \
  INSTANTIATE_TEST_SUITE_P(                  \
      Threads, suite, testing::Values(1, 3), \
      [](const testing::TestParamInfo<int>& with) { return std::to_string(with.param); })

}  // namespace leasehold::e2e
