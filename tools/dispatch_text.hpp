// Cancellation dispatches for people.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

namespace leasehold::tools {

/// The cells of one line of the list.
std::vector<std::string> dispatch_cells(const boost::json::object& dispatch);

/// One with its events, as GET /v1/dispatches/JOB answers it.
std::string describe_dispatch(const boost::json::object& answer);

}  // namespace leasehold::tools
