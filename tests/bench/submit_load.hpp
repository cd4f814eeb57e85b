// Submits many jobs over several HTTP connections at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace leasehold::bench {

struct submit_options {
  std::uint16_t port = 0;
  std::string token;
  std::string queue = "q";
  std::string policy;  ///< a JSON object
  std::int64_t jobs = 0;
  std::size_t connections = 64;
};

/// Submits them all; how many were taken. `progress` hears that number now and then.
std::int64_t submit_jobs(const submit_options& how,
                         const std::function<void(std::int64_t)>& progress);

}  // namespace leasehold::bench
