// leasehold_bench renew: what durable renews cost the coordinator, what its leases take of memory,
// and how soon it is back with them after a kill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::bench {

struct renew_options {
  std::int64_t leases = 200'000;
  std::size_t connections = 64;
  std::vector<std::size_t> batches{1, 128};
  std::size_t frames_in_flight = 8;  ///< of a connection with one frame a message
  double warm_up_s = 5;
  double seconds = 60;
  int threads = 1;
  bool json = false;
};

/// Measures and prints; the exit code.
int measure_renews(const renew_options& how);

}  // namespace leasehold::bench
