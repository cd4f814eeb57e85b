// Bodies of requests, read strictly: what is not understood is refused, never passed over.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leasehold/protocol/reason.hpp"

namespace leasehold::server {

inline constexpr std::size_t largest_body = std::size_t{1} << 20;
inline constexpr int deepest_body = 32;

/// Why a body or query is refused: malformed, invalid_frame, invalid_policy or too_large.
struct input_fault {
  protocol::reason reason = protocol::reason::invalid_frame;
  std::string sentence;
};

/// One JSON object and nothing after it; an empty body counts as {}. Refused: anything else, a
/// field that stands twice, depth over 32, a number beyond 2^53, broken UTF-8.
std::variant<boost::json::object, input_fault> parse_body(std::string_view body);

/// Takes the fields of an object one by one and remembers the first that is wrong; what was not
/// taken is unknown.
class field_reader {
 public:
  explicit field_reader(const boost::json::object& from) : from_(from) {}

  /// Nothing when the field is missing or wrong; then fault() says so.
  std::optional<std::string> text(std::string_view name, std::size_t most_bytes);
  std::optional<std::int64_t> number(
      std::string_view name, std::int64_t lowest, std::int64_t highest,
      protocol::reason out_of_range = protocol::reason::invalid_frame);
  std::optional<bool> toggle(std::string_view name);
  const boost::json::object* object(std::string_view name);

  /// Remembers a fault unless there is one already.
  void refuse(std::string sentence, protocol::reason why = protocol::reason::invalid_frame);
  /// The first fault; call it last, for it also finds unknown fields.
  std::optional<input_fault> fault();

 private:
  const boost::json::value* take(std::string_view name);

  const boost::json::object& from_;
  std::vector<std::string_view> known_;
  std::optional<input_fault> fault_;
};

/// 1 to 128 of A-Z a-z 0-9 . _ : - : ids of jobs and names of queues.
bool is_id(std::string_view text) noexcept;

std::string to_base64(std::string_view bytes);
/// Strict: padded, no other character, no line ends.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace leasehold::server
