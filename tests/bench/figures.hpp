// What the measurements of a load have in common: spreads, metrics by name, numbers as text.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::bench {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point begin);

/// Latencies in order.
class latency_figures {
 public:
  explicit latency_figures(std::vector<std::uint32_t> all_us);
  /// The latency, in ms, that a part of them (0 to 1) do not exceed; 0 when there are none.
  [[nodiscard]] double at(double part) const;
  [[nodiscard]] std::size_t count() const noexcept { return us_.size(); }

 private:
  std::vector<std::uint32_t> us_;
};

/// A metric without labels on a page of /metrics; 0 when it is not there.
double metric(const std::string& page, const std::string& name);

std::string number(double value, int digits = 0);

}  // namespace leasehold::bench
