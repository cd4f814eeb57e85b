// leasehold_bench locks: what acquiring and releasing a lock costs the coordinator, over streams
// and durably.
#pragma once

#include <cstddef>
#include <vector>

namespace leasehold::bench {

struct lock_options {
  std::size_t connections = 64;
  std::vector<std::size_t> batches{1, 64};
  double warm_up_s = 3;
  double seconds = 20;
  int threads = 1;
  bool json = false;
};

/// Measures and prints; the exit code.
int measure_locks(const lock_options& how);

}  // namespace leasehold::bench
