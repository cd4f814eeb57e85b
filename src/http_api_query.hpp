// Targets of requests: the path against the patterns of the routing table, and the query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/http_api_body.hpp"

namespace leasehold::server {

/// A request's target: the path's parts as they were sent, the query's parameters decoded.
struct request_target {
  std::vector<std::string> parts;
  std::vector<std::pair<std::string, std::string>> parameters;
};

/// Nothing when it is no path with an optional query, or its encoding is broken.
std::optional<request_target> parse_target(std::string_view target);

/// Compares a path with a pattern such as "/v1/jobs/{id}:cancel". A colon in the pattern is a colon
/// in the path; a colon of an id may be written %3A to tell it from the verb's. Yields the decoded
/// id, empty where the pattern has none; nothing when they do not match.
std::optional<std::string> match_path(const request_target& target, std::string_view pattern);

/// Takes parameters one by one, as field_reader takes fields.
class query_reader {
 public:
  query_reader() = default;
  explicit query_reader(std::vector<std::pair<std::string, std::string>> parameters)
      : parameters_(std::move(parameters)) {}

  std::optional<std::string> text(std::string_view name, std::size_t most_bytes = 512);
  std::optional<std::int64_t> number(std::string_view name, std::int64_t lowest,
                                     std::int64_t highest);
  /// Whether it is there; it takes no value.
  bool flag(std::string_view name);
  std::vector<std::string> many(std::string_view name, std::size_t most = 16);
  void refuse(std::string sentence);
  std::optional<input_fault> fault();

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
  std::vector<std::string> known_;
  std::optional<input_fault> fault_;
};

}  // namespace leasehold::server
