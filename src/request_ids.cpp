#include "src/request_ids.hpp"

#include <algorithm>

namespace leasehold::server {
namespace {

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool is_request_id(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

bool is_trace_id(std::string_view text) noexcept {
  return text.size() == 55 && text.starts_with("00-") && text[35] == '-' && text[52] == '-' &&
         is_lower_hex(text.substr(3, 32)) && is_lower_hex(text.substr(36, 16)) &&
         is_lower_hex(text.substr(53));
}

request_ids ids_of(const http_request& request) {
  request_ids out;
  const std::string_view id = request.header("x-request-id");
  if (is_request_id(id)) out.request_id = id;
  const std::string_view trace = request.header("traceparent");
  if (is_trace_id(trace)) out.trace_id = trace;
  return out;
}

}  // namespace leasehold::server
