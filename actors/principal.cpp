#include <algorithm>

#include "leasehold/actors/gateway.hpp"

namespace leasehold::actors {

bool principal::has(role wanted) const { return std::ranges::find(roles, wanted) != roles.end(); }

bool principal::may_use_queue(std::string_view queue) const {
  return std::ranges::any_of(queues, [&](const std::string& q) { return q == "*" || q == queue; });
}

}  // namespace leasehold::actors
