// What racers and their tests agree on.
#pragma once

#include <cstdint>
#include <string>

#include "leasehold/protocol/dispatch.hpp"

namespace leasehold::tests {

/// A racer that has made so many cycles goes on to the next job, whatever becomes of this one.
inline constexpr std::int64_t most_raced_cycles = 20'000;

inline protocol::lease_key raced_key(int number) {
  auto digits = std::to_string(number);
  digits.insert(0, 3 - digits.size(), '0');
  return {protocol::tenant_id{"t"}, protocol::lease_id{"j" + digits}};
}

}  // namespace leasehold::tests
