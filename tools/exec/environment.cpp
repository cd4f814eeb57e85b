#include "tools/exec/environment.hpp"

#include <fmt/format.h>

#include <string_view>

namespace leasehold::tools {

std::vector<std::string> command_environment(const char* const* caller, const lock_grant& grant,
                                             boot_time deadline, boot_time now) {
  std::vector<std::string> out;
  for (; *caller != nullptr; ++caller) {
    if (!std::string_view(*caller).starts_with("LEASEHOLD_")) out.emplace_back(*caller);
  }
  const auto left = boot_ms(deadline) - boot_ms(now);
  out.push_back(fmt::format("LEASEHOLD_TOKEN={}", grant.generation));
  out.push_back(fmt::format("LEASEHOLD_KEY={}", grant.key));
  out.push_back(fmt::format("LEASEHOLD_LEASE_ID={}", grant.lease_id));
  out.push_back(fmt::format("LEASEHOLD_DEADLINE={}", boot_ms(deadline)));
  out.push_back(fmt::format("LEASEHOLD_DEADLINE_MS={}", left));
  return out;
}

}  // namespace leasehold::tools
