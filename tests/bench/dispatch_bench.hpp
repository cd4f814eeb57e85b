// leasehold_bench dispatch: how long a claim and its result take beside a coordinator's store that
// commits renews back to back.
#pragma once

#include <cstddef>
#include <string>

namespace leasehold::bench {

struct dispatch_options {
  std::string store;          ///< URL of a PostgreSQL database without a store; empty: SQLite
  std::size_t batch = 256;    ///< rows of a commit; one always runs and one waits
  std::size_t claims = 2000;  ///< that are measured, one after the other
  double most_p99_ms = 250;   ///< above it the measurement fails
  bool json = false;
};

/// Measures and prints; the exit code.
int measure_dispatches(const dispatch_options& how);

}  // namespace leasehold::bench
