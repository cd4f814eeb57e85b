// A lock of the API as people read it, and as they name it.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tools {

/// The lock inside an answer: its member "lock", else the answer itself.
const boost::json::object& lock_in(const boost::json::object& answer);

/// "/v1/locks/KEY" with the suffix; KEY is a canonical key or a lease id (k:...).
std::string lock_path(std::string_view key, std::string_view suffix = {});

/// The member by which a body names the lock: lease_id for k:..., else key.
std::string_view naming_member(std::string_view key);

/// What is wrong with a key before anybody is asked about it; empty: nothing.
std::string find_key_fault(const std::string& key);

/// Several lines for `lock show`.
std::string describe_lock(const boost::json::object& lock);

extern const std::vector<std::string> lock_headings;
/// A row of the list, a cell for each heading.
std::vector<std::string> lock_cells(const boost::json::object& lock);

}  // namespace leasehold::tools
