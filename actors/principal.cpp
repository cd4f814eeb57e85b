#include <algorithm>

#include "leasehold/actors/gateway.hpp"

namespace leasehold::actors {

static bool grants(const std::vector<std::string>& names, std::string_view wanted) {
  return std::ranges::any_of(names, [&](const auto& n) { return n == "*" || n == wanted; });
}

bool principal::has(role wanted) const { return std::ranges::find(roles, wanted) != roles.end(); }

bool principal::may_use_queue(std::string_view queue) const { return grants(queues, queue); }

bool principal::may_use_program(std::string_view program) const {
  return grants(programs, program);
}

}  // namespace leasehold::actors
