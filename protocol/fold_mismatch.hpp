// How a row that does not follow from the rows before it is named.
#pragma once

#include <string>
#include <string_view>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::protocol {

inline std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

inline fold::mismatch differs(const stored_row& r, std::string_view column, std::string_view stored,
                              std::string_view wanted) {
  return {r.row, std::string(column),
          "the log says " + quoted(stored) + ", from the inputs follows " + quoted(wanted)};
}

inline fold::mismatch differs(const stored_row& r, std::string_view column, std::int64_t stored,
                              std::int64_t wanted) {
  return differs(r, column, std::to_string(stored), std::to_string(wanted));
}

inline fold::mismatch differs(const stored_row& r, std::string_view column, bool stored,
                              bool wanted) {
  return differs(r, column, stored ? std::string_view("true") : "false",
                 wanted ? std::string_view("true") : "false");
}

}  // namespace leasehold::protocol
