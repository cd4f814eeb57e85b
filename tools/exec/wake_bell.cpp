#include "tools/exec/wake_bell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace leasehold::tools {

wake_bell::wake_bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void wake_bell::ring() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(number(), &one, sizeof one);
}

void wake_bell::clear() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(number(), &count, sizeof count);
}

}  // namespace leasehold::tools
