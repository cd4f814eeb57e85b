// Lines of `leasehold replay`: compact JSON, written into one growing buffer.
#pragma once

#include <string>
#include <string_view>

#include "leasehold/protocol/evidence.hpp"

namespace leasehold::tools {

/// Writes JSON objects, one a line, member by member in the order in which they are given.
class line_writer {
 public:
  explicit line_writer(std::string& out) : out_(out) {}

  void begin() { out_ += '{'; }
  void put(std::string_view name, const protocol::cell& value);
  /// A member whose value is JSON already.
  void put_json(std::string_view name, std::string_view json);
  /// Ends the object; `end_line` ends the line as well.
  void end(bool end_line = true);

 private:
  void put_name(std::string_view name);
  std::string& out_;
};

/// A value as JSON.
std::string json_text(const protocol::cell& value);

}  // namespace leasehold::tools
