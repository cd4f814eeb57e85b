#include "figures.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace leasehold::bench {

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

latency_figures::latency_figures(std::vector<std::uint32_t> all_us) : us_(std::move(all_us)) {
  std::ranges::sort(us_);
}

double latency_figures::at(double part) const {
  if (us_.empty()) return 0;
  const auto index = static_cast<std::size_t>(part * static_cast<double>(us_.size() - 1));
  return static_cast<double>(us_[index]) / 1000;
}

double metric(const std::string& page, const std::string& name) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  }
  return 0;
}

std::string number(double value, int digits) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(digits);
  out << value;
  return out.str();
}

}  // namespace leasehold::bench
