// leasehold_bench slow-readers: what many workers that do not read cost the coordinator and the
// workers that do.
#pragma once

#include <cstddef>

namespace leasehold::bench {

struct slow_reader_options {
  std::size_t readers = 1000;
  std::size_t workers = 10;  ///< that read and renew
  double seconds = 60;       ///< without the readers, then again with them
  int rounds = 3;            ///< the best ratio of latencies counts; all else holds in each
  int threads = 1;
  bool json = false;
};

/// Measures and prints; the exit code is 1 when a bound is broken.
int measure_slow_readers(const slow_reader_options& how);

}  // namespace leasehold::bench
