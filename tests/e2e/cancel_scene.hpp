// A coordinator, the workers of one cancel and what a person is told of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live_server.hpp"
#include "stream_peer.hpp"

namespace leasehold::e2e {

/// Which store the coordinator is on.
struct cancel_store {
  std::string name;
  std::vector<std::string> arguments;  ///< of leaseholdd
};
/// SQLite, and the database that LEASEHOLD_TEST_STORE names (a URL), when it names one.
std::vector<cancel_store> cancel_stores();

/// How a cancel stands at some point; a dispatch that is "" is not looked at.
struct cancel_standing {
  std::string state;
  std::string reason;  ///< of the newest row that the coordinator or a client brought about; ""
  std::string dispatch;  ///< its status; none: there is no record
  std::string sentence;  ///< a part of what `leasehold job show` says, as a regular expression
};

/// A process that a test works with: the leader of its group, ended with the test.
class working_process {
 public:
  explicit working_process(const std::string& script);
  ~working_process();
  working_process(const working_process&) = delete;
  working_process& operator=(const working_process&) = delete;
  [[nodiscard]] pid_t number() const noexcept { return number_; }
  /// Its wait status once it has ended; nothing when it does not.
  std::optional<int> wait();

 private:
  pid_t number_ = -1;
  std::optional<int> ended_;
};

class cancel_scene {
 public:
  /// A name that no other case uses: the cases may share one database.
  const std::string job;

  explicit cancel_scene(const cancel_store& store);

  /// Submits the job with a policy of its own over that of all cases.
  void submit(const json::object& policy = {});
  /// The worker by hand takes the job's generation and works on it.
  stream_peer& take(std::int64_t gen = 1, const std::string& principal = "w1");
  /// `leasehold worker` runs a script for the job.
  void run_worker(const std::string& script, const std::string& grace = "10s");
  [[nodiscard]] program_run& worker() { return *worker_; }
  /// The process works on the job of the worker by hand.
  void name_process(const working_process& process, std::int64_t gen = 1);

  api_answer operate(const std::string& what, const json::object& body = {},
                     const std::string& principal = "operator");
  void cancel();
  protocol::frame_verdict tell(protocol::event_kind kind, std::int64_t gen = 1);
  protocol::frame_verdict report(protocol::outcome how, std::int64_t gen = 1);

  /// Waits until everything stands like this.
  void expect(const cancel_standing& wanted);

  live_server server;
  std::optional<stream_peer> hand;  ///< the worker by hand

 private:
  [[nodiscard]] cancel_standing now();

  tests::temporary_directory kept_;
  std::unique_ptr<program_run> worker_;
};

}  // namespace leasehold::e2e
