// One job as one child process: `leasehold worker` runs one of these for each job.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "leasehold/client/job.hpp"
#include "tools/child_process.hpp"

namespace leasehold::tools {

/// How jobs are run; the same for all of a worker.
struct run_options {
  std::string program;                 ///< absolute path
  std::vector<std::string> arguments;  ///< the first is the program's name
  protocol::duration grace{5000};      ///< between TERM and KILL, at most
  bool retry_any = false;              ///< every failure may be tried again, not only exit 75
};

/// The children that live, so that an impatient end can reach them all.
class live_children {
 public:
  void add(const child_process* child);
  void remove(const child_process* child);
  void kill_all();
  [[nodiscard]] bool killed();

 private:
  std::mutex lock_;
  std::set<const child_process*> children_;
  bool ended_ = false;
};

/// Runs the job's command to its end and reports it. Blocks; never throws.
void run_job(const client::job& job, const run_options& options, live_children& children);

/// The environment of a job's command: ours without LEASEHOLD_*, then the facts of the job.
std::vector<std::string> job_environment(const client::job& job);

/// Cuts a stream of bytes into lines, each at most `most` bytes; what is longer is cut off.
class line_reader {
 public:
  explicit line_reader(std::size_t most) : most_(most) {}
  /// The lines that these bytes complete.
  std::vector<std::string> feed(std::string_view bytes);
  /// The last line that had something in it, complete or not.
  [[nodiscard]] const std::string& last() const noexcept { return line_.empty() ? last_ : line_; }

 private:
  std::size_t most_;
  std::string line_;
  std::string last_;
};

}  // namespace leasehold::tools
