// A PostgreSQL server of a test's own, whose data outlives its processes: it is stopped in every
// way that there is and started again. It listens on a socket in a new directory only, runs as the
// user that tools/pg-sandbox names, and is gone with the test.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "e2e/program_run.hpp"
#include "support/temporary_directory.hpp"

namespace leasehold::tests {

class postgres_server {
 public:
  /// Parameters of postgresql.conf by name.
  using settings = std::map<std::string, std::string>;
  /// What a test of durability adds; without it nothing is synced.
  static settings durable() { return {{"fsync", "on"}}; }

  /// Makes it and starts it. What fails is a failure of the test.
  explicit postgres_server(settings chosen = {});
  /// Ends all that runs.
  ~postgres_server();
  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;

  /// Starts it on what is there and waits until it takes sessions.
  void start();
  /// Sessions are ended, what they wrote is flushed.
  void stop() { end_with(SIGINT); }
  /// As when the machine loses power, except for what the kernel still has of it.
  void stop_immediately() { end_with(SIGQUIT); }
  /// SIGKILL to its first process and then to all the others.
  void kill();
  /// SIGSTOP to all of its processes: who is connected hears nothing; nobody else gets in.
  void stand_still();
  void go_on();
  [[nodiscard]] bool runs() { return !process_->wait(std::chrono::milliseconds{0}); }

  /// A parameter from the next start on.
  void set(const std::string& name, const std::string& value) { settings_[name] = value; }

  /// A new database; a copy of `like`, which nobody may use meanwhile.
  void make_database(const std::string& name, const std::string& like = "template1");
  /// Ends its sessions.
  void drop_database(const std::string& name);
  /// Statements without parameters, in a session of their own; false: one failed.
  bool execute(const std::string& statements, const std::string& database = "postgres") const;
  /// The one value that a query yields; empty when it yields none.
  [[nodiscard]] std::string value(const std::string& query,
                                  const std::string& database = "postgres") const;

  /// Where its socket is: a host as libpq takes it.
  [[nodiscard]] std::filesystem::path directory() const { return place_.path(); }
  [[nodiscard]] std::filesystem::path socket() const { return directory() / ".s.PGSQL.5432"; }
  /// The URL of a database; `through`: the directory of another socket that leads to it.
  [[nodiscard]] std::string url(const std::string& database = "postgres",
                                const std::filesystem::path& through = {}) const;
  [[nodiscard]] std::string log() const { return e2e::content_of(log_file()); }

 private:
  [[nodiscard]] std::filesystem::path log_file() const { return place_.path() / "log"; }
  [[nodiscard]] std::filesystem::path data() const { return place_.path() / "data"; }
  [[nodiscard]] std::vector<pid_t> processes() const;
  void end_with(int signal);

  temporary_directory place_;
  settings settings_;
  std::unique_ptr<e2e::program_run> process_;
};

}  // namespace leasehold::tests
