// Submits many jobs over several HTTP connections at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "load_socket.hpp"

namespace leasehold::bench {

struct submit_options {
  std::uint16_t port = 0;
  std::string token;
  std::string queue = "q";
  std::string policy;  ///< a JSON object
  std::int64_t jobs = 0;
  std::size_t connections = 64;
};

/// Submits over several connections, one unanswered request on each.
class job_submitter {
 public:
  explicit job_submitter(submit_options how);

  /// Asks until `upto` jobs were asked for in all, and takes what has come; false once every
  /// connection is gone.
  bool turn(std::int64_t upto, int wait_ms = 100);
  [[nodiscard]] std::int64_t answered() const noexcept { return answered_; }
  [[nodiscard]] std::int64_t taken() const noexcept { return taken_; }

 private:
  void ask(load_socket& socket);

  submit_options how_;
  std::vector<load_socket> sockets_;
  std::vector<std::size_t> idle_;
  std::int64_t asked_ = 0;
  std::int64_t answered_ = 0;
  std::int64_t taken_ = 0;
};

/// Submits them all; how many were taken. `progress` hears that number now and then.
std::int64_t submit_jobs(const submit_options& how,
                         const std::function<void(std::int64_t)>& progress);

}  // namespace leasehold::bench
