// The evidence of a running coordinator, page by page.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tools/api.hpp"

namespace leasehold::tools {

/// The row at which the log ends now; 0: it has none. What one event wrote becomes durable
/// together, so that a log which is read up to here never ends between a row and those that
/// follow from it.
exit_code ask_newest_row(api& coordinator, std::int64_t& newest);

struct row_range {
  std::int64_t first = 1;
  std::int64_t last = 0;
};

/// Hands on the line of each row of the range that the tenant has, until `use` wants no more;
/// `pass` hears after each page which row was the last that is done with.
exit_code each_row(api& coordinator, row_range which,
                   const std::function<bool(std::string_view line)>& use,
                   const std::function<void(std::int64_t row)>& pass = {});

}  // namespace leasehold::tools
