// The evidence of one lease, job or lock, read and shown.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "tools/api.hpp"

namespace leasehold::tools {

/// Reads all rows behind `target`, the path of a lease's evidence.
exit_code read_rows(api& coordinator, const std::string& target,
                    std::vector<boost::json::object>& rows);

/// One JSON object a line, or a matrix for people.
void print_rows(const std::vector<boost::json::object>& rows, bool as_json);

/// All columns, as the coordinator writes them.
exit_code print_csv(api& coordinator, const std::string& target);

}  // namespace leasehold::tools
