// leasehold_bench jobs: what the whole life of a job costs the coordinator: submit, offer, ACK, one
// renew, result, each of them durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::bench {

struct job_options {
  std::size_t connections = 64;    ///< workers
  std::size_t submitters = 64;     ///< HTTP connections
  std::int64_t open_jobs = 4'096;  ///< submitted and not ended, at most
  double warm_up_s = 3;
  double seconds = 20;
  int threads = 1;
  bool json = false;
};

/// Measures and prints; the exit code.
int measure_jobs(const job_options& how);

}  // namespace leasehold::bench
