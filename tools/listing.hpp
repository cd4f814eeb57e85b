// A list of the API, page after page.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tools/api.hpp"
#include "tools/exit_codes.hpp"

namespace leasehold::tools {

struct listing {
  std::string_view name;  ///< of the list on its page, and for people: "locks"
  std::int64_t page_size = 500;
  std::int64_t limit = 100;  ///< entries; not looked at with `all`
  bool all = false;
  /// What is asked for a page.
  std::function<std::string(std::int64_t size, const std::string& token)> target;
};

/// Hands on each entry until the limit is reached or output is lost, and says that there are more.
exit_code each_listed(api& coordinator, const listing& what,
                      const std::function<void(const boost::json::object&)>& take);

}  // namespace leasehold::tools
