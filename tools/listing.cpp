#include "tools/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tools/json_fields.hpp"
#include "tools/output.hpp"

namespace leasehold::tools {

exit_code each_listed(api& coordinator, const listing& what,
                      const std::function<void(const boost::json::object&)>& take) {
  std::int64_t left = what.all ? std::numeric_limits<std::int64_t>::max() : what.limit;
  std::string token;
  do {
    const auto target = what.target(std::min(left, what.page_size), token);
    const auto result = coordinator.get(target, [&](const boost::json::object& page) {
      for (const auto& entry : array_in(page, what.name)) {
        if (entry.is_object()) take(entry.get_object());
        --left;
      }
      token = text_in(page, "next_page_token");
      return exit_code::ok;
    });
    if (result != exit_code::ok) return result;
  } while (!token.empty() && left > 0 && !output_is_lost());
  if (!token.empty() && !output_is_lost()) {
    print_error("more {}: --limit N or --all shows them\n", what.name);
  }
  return exit_code::ok;
}

}  // namespace leasehold::tools
