// What other processes and threads bring about is asked for again and again: a test that passes
// waits no longer than it must, and only one that fails waits to the end.
#pragma once

#include <chrono>
#include <thread>

namespace leasehold::tests {

/// False when it does not hold within the time.
template <class Condition>
bool eventually(const Condition& holds, std::chrono::milliseconds within = std::chrono::seconds{30},
                std::chrono::milliseconds pause = std::chrono::milliseconds{5}) {
  const auto by = std::chrono::steady_clock::now() + within;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > by) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace leasehold::tests
