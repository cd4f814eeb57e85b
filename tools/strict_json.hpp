// JSON read without mercy: what two readers could understand differently is refused.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace leasehold::tools {

/// Why a text was refused: one sentence without a full stop.
struct malformed_text {
  std::string sentence;
};

/// Parses one JSON value and nothing after it. Refuses invalid UTF-8, a key that stands twice in
/// one object, and nesting deeper than 16.
std::variant<boost::json::value, malformed_text> parse_strictly(std::string_view text);

}  // namespace leasehold::tools
