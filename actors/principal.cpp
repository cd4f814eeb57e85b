#include <algorithm>

#include "leasehold/actors/gateway.hpp"

namespace leasehold::actors {

bool principal::has(role wanted) const { return std::ranges::find(roles, wanted) != roles.end(); }

namespace {

bool names(const std::vector<std::string>& granted, std::string_view one) {
  return std::ranges::any_of(granted, [&](const std::string& g) { return g == "*" || g == one; });
}

}  // namespace

bool principal::may_use_queue(std::string_view queue) const { return names(queues, queue); }
bool principal::may_use_program(std::string_view program) const { return names(programs, program); }

}  // namespace leasehold::actors
