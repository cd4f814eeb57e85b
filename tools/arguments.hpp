// Reading what people type: pairs, times, files.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tools {

/// "key=value" pairs as a JSON object of strings. Sets `fault` to a sentence when one is none, or a
/// key stands in two.
boost::json::object read_labels(const std::vector<std::string>& pairs, std::string& fault);

/// "key=value" pairs as policy keys: numbers and words, in ms where the key ends in _ms; such a key
/// also takes a length of time ("30s"). Sets `fault` when a key is unknown or stands in two pairs,
/// or a value does not fit.
boost::json::object read_policy(const std::vector<std::string>& pairs, std::string& fault);

/// A length of time in ms: "250ms", "30s", "5m", "2h", "1d", or a plain number of seconds.
std::optional<std::int64_t> read_length_ms(std::string_view text);

/// What is wrong with a job's id before anybody is asked about it; empty: nothing.
std::string find_id_fault(const std::string& id);

/// Puts a payload into the body of a submit: as text, or as base64 where it is no UTF-8.
void put_payload(boost::json::object& body, const std::string& payload);

/// The whole of a file, or of standard input for "-", up to `limit` bytes. Sets `fault`.
std::string read_file(const std::string& path, std::size_t limit, std::string& fault);

enum class line_read : std::uint8_t { whole, none, too_long };
/// The next line, without its end. One of more than `limit` bytes is not read to its end: what
/// never ends a line, as /dev/zero, would be read for ever.
line_read read_line(std::istream& from, std::string& line, std::size_t limit);

/// The longest line that is read: a row with a payload, every character of it escaped, has less.
inline constexpr std::size_t line_limit = std::size_t{4} << 20;

/// The most bytes that a payload may have (protocol.md 1).
inline constexpr std::size_t payload_limit = std::size_t{64} * 1024;

}  // namespace leasehold::tools
